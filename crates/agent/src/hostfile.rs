//! Hostfiles of both MPI families: a host table goes in, the file's text comes out. Counts always stand in it: without one Open MPI 4 takes all cores.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::table::{Host, HostTable};

/// Which MPIs read the file. No one file serves both: each refuses or misreads the other's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `host slots=n`: Open MPI 4 and 5.
    OpenMpi,
    /// `host:n`: MPICH and Intel MPI.
    Hydra,
    /// `host`: whoever takes every host for one rank.
    Bare,
}

/// What hosts are called in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// By address: nothing has to be resolved. Hosts that share one (a node's, where pods use its network) go by name.
    #[default]
    Address,
    /// By name: needed where Open MPI must recognise its own host and all addresses are loopback ones.
    Name,
}

/// The text of a hostfile. Hosts without slots are left out.
pub fn hostfile(table: &HostTable, family: Family, by: By) -> String {
    let hosts = || table.hosts.iter().filter(|host| host.slots > 0);
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    hosts().for_each(|host| *counts.entry(host.address).or_default() += 1);
    let shares = |host: &Host| counts.get(&host.address).is_some_and(|count| *count > 1);
    hosts().map(|host| line(host, family, if shares(host) { By::Name } else { by })).collect()
}

fn line(host: &Host, family: Family, by: By) -> String {
    let called = match (by, host.address, family) {
        (By::Name, _, _) => host.name.clone(),
        // Hydra splits at the last colon unless brackets say otherwise.
        (By::Address, IpAddr::V6(address), Family::Hydra) => format!("[{address}]"),
        (By::Address, address, _) => address.to_string(),
    };
    match family {
        Family::OpenMpi => format!("{called} slots={}\n", host.slots),
        Family::Hydra => format!("{called}:{}\n", host.slots),
        Family::Bare => format!("{called}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::host;

    #[test]
    fn each_family_gets_its_own_form() {
        let hosts = vec![
            host("launcher", "10.0.0.1", 0),
            host("w-0", "10.0.0.2", 2),
            host("w-1", "fd00::3", 1),
        ];
        let table = HostTable::new(String::new(), 1, 1, hosts).unwrap();
        assert_eq!(
            hostfile(&table, Family::OpenMpi, By::Address),
            "10.0.0.2 slots=2\nfd00::3 slots=1\n"
        );
        assert_eq!(hostfile(&table, Family::Hydra, By::Address), "10.0.0.2:2\n[fd00::3]:1\n");
        assert_eq!(hostfile(&table, Family::OpenMpi, By::Name), "w-0 slots=2\nw-1 slots=1\n");
        assert_eq!(hostfile(&table, Family::Hydra, By::Name), "w-0:2\nw-1:1\n");
        assert_eq!(hostfile(&table, Family::Bare, By::Name), "w-0\nw-1\n");
    }

    #[test]
    fn hosts_that_share_an_address_go_by_name() {
        let mut second = host("w-1", "10.0.0.2", 1);
        second.port = Some(7712);
        let hosts = vec![host("w-0", "10.0.0.2", 2), second, host("w-2", "10.0.0.3", 1)];
        let table = HostTable::new(String::new(), 1, 1, hosts).unwrap();
        assert_eq!(
            hostfile(&table, Family::OpenMpi, By::Address),
            "w-0 slots=2\nw-1 slots=1\n10.0.0.3 slots=1\n"
        );
    }
}
