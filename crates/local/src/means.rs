//! What this machine allows, and what a run makes of it. [`look`] looks, the rest decides.

use std::path::Path;

use unisono_job::Note;
use unisono_plan::{Limits, Plan};

pub use crate::control_groups::ControlGroups;
use crate::host::{self, Isolation};
use crate::notes::{LIMITS_NOT_KEPT, NAMESPACES_REFUSED, NO_NETWORK, OFFLINE};

/// What this machine allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// How far hosts can be kept apart.
    pub isolation: Isolation,
    /// Whether it has a network beside `lo`.
    pub has_network: bool,
}

/// The network that hosts are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The machine's own; each host has a loopback address of its own.
    Shared,
    /// One of the job's own, with a network namespace for every host.
    Private,
}

/// A network of their own was asked for, and the machine refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine refuses namespaces, so its hosts cannot have a network of their own")]
pub struct NoPrivateNetwork;

/// Finds out what this machine allows. The folder is only mounted on, unseen by anybody.
pub fn look(program: &Path, folder: &Path) -> Means {
    let root = rustix::process::geteuid().is_root();
    let ways = [Isolation::Namespaces, Isolation::UserNamespace];
    let isolation = ways
        .into_iter()
        .filter(|way| root || *way != Isolation::Namespaces)
        .find(|way| host::is_possible(program, *way, folder))
        .unwrap_or(Isolation::Processes);
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    Means { isolation, has_network: leads_anywhere(&routes) }
}

/// Whether a table of routes has one that is not over `lo`: every interface with an address has one.
fn leads_anywhere(routes: &str) -> bool {
    let interfaces = routes.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    interfaces.into_iter().any(|interface| interface != "lo")
}

impl Means {
    /// The network that the hosts get, when `asked` for one of their own or not.
    ///
    /// # Errors
    ///
    /// When one was asked for and is refused.
    pub fn network(&self, asked: bool) -> Result<Network, NoPrivateNetwork> {
        match (self.isolation, asked || !self.has_network) {
            (Isolation::Processes, _) if asked => Err(NoPrivateNetwork),
            (Isolation::Processes, _) | (_, false) => Ok(Network::Shared),
            (Isolation::Namespaces | Isolation::UserNamespace, true) => Ok(Network::Private),
        }
    }

    /// What is to be told about a run on this machine.
    pub fn notes(&self, asked: bool) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.isolation == Isolation::Processes {
            let message = "this machine refuses namespaces: hosts are plain processes that share its name and files";
            notes.push(Note::new(&NAMESPACES_REFUSED, message));
        }
        if !self.has_network && !asked {
            notes.push(match self.isolation {
                Isolation::Processes => Note::new(
                    &NO_NETWORK,
                    "this machine has no network beside lo, which most MPIs cannot use",
                ),
                Isolation::Namespaces | Isolation::UserNamespace => Note::new(
                    &OFFLINE,
                    "this machine has no network beside lo: the hosts are joined by one of their own",
                ),
            });
        }
        notes
    }
}

/// A note when a job states limits that cannot be kept here.
pub fn unkept_limits(plan: &Plan, groups: &ControlGroups) -> Option<Note> {
    let stated = |group| Limits::of(&plan.job, group);
    let unkept: Vec<&str> = plan
        .job
        .groups
        .iter()
        .filter(|group| !stated(group).is_empty() && !groups.can_keep(stated(group)))
        .map(|group| group.name.as_str())
        .collect();
    (!unkept.is_empty()).then(|| {
        let message =
            format!("cpu and memory limits of {} are not kept on this machine", unkept.join(", "));
        Note::new(&LIMITS_NOT_KEPT, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(isolation: Isolation, has_network: bool, asked: bool) -> (Option<Network>, String) {
        let means = Means { isolation, has_network };
        let codes: Vec<&str> = means.notes(asked).iter().map(|note| note.code.name).collect();
        (means.network(asked).ok(), codes.join(" "))
    }

    #[test]
    fn hosts_share_the_machines_network_unless_there_is_none_or_one_is_asked_for() {
        for isolation in [Isolation::Namespaces, Isolation::UserNamespace] {
            let told = |network, asked| told(isolation, network, asked);
            assert_eq!(told(true, false), (Some(Network::Shared), String::new()));
            assert_eq!(told(true, true), (Some(Network::Private), String::new()));
            assert_eq!(told(false, true), (Some(Network::Private), String::new()));
            assert_eq!(told(false, false), (Some(Network::Private), "offline".to_owned()));
        }
    }

    #[test]
    fn without_namespaces_less_is_possible_and_all_of_it_is_told() {
        let told = |network, asked| told(Isolation::Processes, network, asked);
        let refused = "namespaces-refused".to_owned();
        assert_eq!(told(true, false), (Some(Network::Shared), refused.clone()));
        assert_eq!(told(true, true), (None, refused));
        assert_eq!(told(false, false).1, "namespaces-refused no-network");
    }

    #[test]
    fn a_route_that_is_not_over_lo_is_a_network() {
        let header = "Iface\tDestination\tGateway \tFlags\n";
        assert!(!leads_anywhere(header) && !leads_anywhere(""));
        assert!(!leads_anywhere(&format!("{header}lo\t0000007F\t00000000\t0001\n")));
        assert!(leads_anywhere(&format!("{header}eth0\t00000000\t0101A8C0\t0003\n")));
    }
}
