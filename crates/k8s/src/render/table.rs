//! The host table of a launching pod.

use serde_json::Value;
use unisono_agent::table::{Host as TableHost, HostKey, HostTable, TableError};
use unisono_dialect::pod_template;
use unisono_job::Group;
use unisono_plan::bind::Addresses;
use unisono_plan::hostfile::aliases;
use unisono_plan::{Plan, env, ports};

use super::{answers, key_name};

/// The longest table that goes into an annotation: half of what all annotations of an object may hold together.
const LONGEST_ANNOTATION: usize = 128 << 10;

/// Where the ConfigMap has a table that is longer.
pub(crate) fn key(epoch: u32) -> String {
    format!("table-{epoch}")
}

/// The table for a launching pod of that uid; none as long as a host has no address.
pub(crate) fn table(
    plan: &Plan,
    identity: &str,
    attempt: u32,
    epoch: u32,
    addresses: &Addresses,
) -> Result<Option<String>, TableError> {
    let shares_node: Vec<bool> = plan.job.groups.iter().map(shares_its_nodes_network).collect();
    let answering = plan.hosts.iter().filter(|host| answers(plan, host));
    let hosts: Option<Vec<TableHost>> = answering
        .map(|host| {
            let longer = format!("{}.", host.name);
            Some(TableHost {
                name: host.name.clone(),
                address: *addresses.get(&host.member)?,
                slots: host.slots,
                key: HostKey::Named(key_name(plan.group_of(host))),
                port: shares_node
                    .get(host.member.group as usize)
                    .is_some_and(|shares| *shares)
                    .then(|| ports::of_agent(plan, host)),
                // The agent finds longer names by itself.
                aliases: aliases(plan, host)
                    .into_iter()
                    .filter(|name| *name != host.name && !name.starts_with(&longer))
                    .collect(),
            })
        })
        .collect();
    let Some(hosts) = hosts else { return Ok(None) };
    let late = env::late(plan, addresses);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut table = HostTable::new(identity.to_owned(), attempt, epoch, hosts)?;
    table.variables = late.shared.into_iter().map(|it| (it.name, it.value)).collect();
    table.own_address = names(late.own_address);
    table.own_folder = names(late.own_folder);
    Ok(Some(table.to_string()))
}

fn shares_its_nodes_network(group: &Group) -> bool {
    pod_template(group).pointer("/spec/hostNetwork") == Some(&Value::Bool(true))
}

/// Whether the table may be too long for an annotation. Told from the plan alone, because pods are made before tables.
pub(crate) fn is_large(plan: &Plan) -> bool {
    // Everything on a host's line but its name, with the longest address and numbers.
    const LINE: usize = 150;
    const ADDRESS: usize = 46;
    let length: usize = plan
        .hosts
        .iter()
        .filter(|host| answers(plan, host))
        .map(|host| LINE + host.name.len())
        .sum();
    // Each variable with quotes, and each host's address in two lists.
    let late = env::late(plan, &Addresses::new()).shared;
    let variables: usize = late.iter().map(|it| it.name.len() + it.value.len() + ADDRESS).sum();
    let lists = if late.is_empty() { 0 } else { 2 * ADDRESS * plan.hosts.len() };
    length + variables + lists > LONGEST_ANNOTATION
}

/// A short mark by which two tables are told apart (FNV-1a).
pub(crate) fn digest(table: &str) -> String {
    let hash = table.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures::{JOBS, plan};
    use unisono_plan::Member;

    #[test]
    fn a_table_waits_for_every_address_and_names_keys_and_ports() {
        let plan = plan(JOBS[7].1);
        let worker = |index| Member { group: 1, index };
        let node = [10, 0, 0, 1].into();
        let one: Addresses = [(worker(0), node)].into();
        assert_eq!(table(&plan, "uid", 0, 2, &one).unwrap(), None);
        let both: Addresses = [(worker(0), node), (worker(1), node)].into();
        let text = table(&plan, "uid", 0, 2, &both).unwrap().unwrap();
        let table = HostTable::parse(text.as_bytes()).unwrap();
        assert_eq!((table.identity.as_str(), table.epoch), ("uid", 2));
        assert!(table.hosts.iter().all(|host| host.key == HostKey::Named("worker".to_owned())));
        let ports: Vec<_> = table.hosts.iter().filter_map(|host| host.port).collect();
        assert!(ports.len() == 2 && ports[0] != ports[1], "two pods of one node: {ports:?}");
    }
}
