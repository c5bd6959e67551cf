//! The host table of a launching pod.

use unisono_agent::table::{DEFAULT_PORT, Host as TableHost, HostKey, HostTable, TableError};
use unisono_dialect::pod_template;
use unisono_plan::bind::Addresses;
use unisono_plan::hostfile::aliases;
use unisono_plan::{Host, Plan, ports};

use super::answers;

/// The longest table that goes into an annotation: half of what all annotations of an object may hold together.
const LONGEST_ANNOTATION: usize = 128 << 10;

/// Where the ConfigMap has a table that is longer.
pub(crate) const KEY: &str = "table";

/// The table for a launching pod of that uid; none as long as a host has no address.
pub(crate) fn table(
    plan: &Plan,
    identity: &str,
    attempt: u32,
    epoch: u32,
    addresses: &Addresses,
) -> Result<Option<String>, TableError> {
    let answering = plan.hosts.iter().filter(|host| answers(plan, host));
    let hosts: Option<Vec<TableHost>> = answering
        .map(|host| {
            let longer = format!("{}.", host.name);
            Some(TableHost {
                name: host.name.clone(),
                address: *addresses.get(&host.member)?,
                slots: host.slots,
                key: HostKey::Named(plan.group_of(host).name.clone()),
                port: port(plan, host),
                // The agent finds longer names by itself.
                aliases: aliases(plan, host)
                    .into_iter()
                    .filter(|name| *name != host.name && !name.starts_with(&longer))
                    .collect(),
            })
        })
        .collect();
    let Some(hosts) = hosts else { return Ok(None) };
    HostTable::new(identity.to_owned(), attempt, epoch, hosts).map(|table| Some(table.to_string()))
}

/// A host's own port, where it shares its node's network.
fn port(plan: &Plan, host: &Host) -> Option<u16> {
    let template = pod_template(plan.group_of(host));
    let shares = template.pointer("/spec/hostNetwork") == Some(&serde_json::Value::Bool(true));
    shares.then(|| ports::of_agent(plan, host)).filter(|port| *port != DEFAULT_PORT)
}

/// Whether the table may be too long for an annotation. Told from the plan alone, because pods are made before tables.
pub(crate) fn is_large(plan: &Plan) -> bool {
    // Everything on a host's line but its name, with the longest address and numbers.
    const LINE: usize = 150;
    let length: usize = plan
        .hosts
        .iter()
        .filter(|host| answers(plan, host))
        .map(|host| LINE + host.name.len())
        .sum();
    length > LONGEST_ANNOTATION
}

/// A short mark by which two tables are told apart (FNV-1a).
pub(crate) fn digest(table: &str) -> String {
    let hash = table.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
