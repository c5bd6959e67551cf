//! Letting a held command go: the plan and everybody's keys and addresses enter, the host table that the command waits for is written.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use unisono_agent::table::{Host as TableHost, HostTable, TableError};
use unisono_plan::hostfile::aliases;
use unisono_plan::{Host, Plan};

use crate::furnish::Shared;

/// The table of one attempt: every host by name, address and key.
pub(super) fn table(
    plan: &Plan,
    shared: &Shared,
    run: &Path,
    attempt: u32,
    epoch: u32,
) -> Result<HostTable, TableError> {
    let hosts = plan
        .hosts
        .iter()
        .filter_map(|host| {
            Some(TableHost {
                name: host.name.clone(),
                address: address_of(host, shared),
                slots: host.slots,
                key: shared.keys.hosts.get(&host.name)?.public().into(),
                port: None,
                aliases: aliases(plan, host)
                    .into_iter()
                    .filter(|name| *name != host.name)
                    .collect(),
            })
        })
        .collect();
    HostTable::new(run.display().to_string(), attempt, epoch, hosts)
}

/// Where a host is reached.
pub(super) fn address_of(host: &Host, shared: &Shared) -> IpAddr {
    let given = shared.addresses.get(&host.member).copied();
    given.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into())
}

/// Writes a table where a command waits for it: all of it at once.
pub(super) fn write(table: &HostTable, path: &Path) -> io::Result<()> {
    let next = path.with_extension("next");
    write_anew(&next, &table.to_string())?;
    std::fs::rename(&next, path)
}

/// Writes a file that was not there: a command of the host's may have laid a link, which is not followed.
fn write_anew(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
