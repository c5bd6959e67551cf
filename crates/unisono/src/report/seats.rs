//! Where ranks really ran: tags and the launch proof enter, each rank's host and whether that is as planned leave.

use std::collections::BTreeMap;

use unisono_agent::proof::{self, Event};
use unisono_local::RunDirectory;
use unisono_plan::{Plan, spread};

/// Where ranks really ran, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Seats {
    read_to: BTreeMap<String, u64>,
    hosts: BTreeMap<u32, String>,
    /// When the first rank was seen, in milliseconds since 1970.
    pub(super) first_rank: Option<u64>,
}

/// Whether ranks ran where they were planned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// They did, as far as anybody can tell.
    pub(crate) as_planned: bool,
    /// What is odd, as a sentence.
    pub(crate) told: Option<String>,
}

impl Seats {
    /// Takes note of what a tag told.
    pub(super) fn learn(&mut self, rank: u32, host: &str) {
        if self.hosts.get(&rank).is_none_or(|known| known != host) {
            self.hosts.insert(rank, host.to_owned());
        }
    }

    /// The host of a rank; empty when nobody knows it.
    pub(super) fn host_of(&mut self, rank: u32, plan: &Plan, directory: &RunDirectory) -> &str {
        if !self.hosts.contains_key(&rank) {
            self.read(plan, directory);
        }
        self.hosts.get(&rank).map_or("", String::as_str)
    }

    /// Reads what was added to the launch proof.
    pub(super) fn read(&mut self, plan: &Plan, directory: &RunDirectory) {
        for host in &plan.hosts {
            let path = directory.path().join("hosts").join(&host.name).join("proof");
            let from = self.read_to.get(&host.name).copied().unwrap_or(0);
            let Ok(length) = std::fs::metadata(&path).map(|it| it.len()) else {
                continue;
            };
            if length <= from {
                continue;
            }
            for record in proof::read(&path, from).unwrap_or_default() {
                if let Event::Rank(rank) = &record.event {
                    self.hosts.insert(rank.rank, record.host.clone());
                    let first = self.first_rank.get_or_insert(record.at);
                    *first = (*first).min(record.at);
                }
            }
            self.read_to.insert(host.name.clone(), length);
        }
    }

    /// Compares where ranks ran with where they were planned.
    pub(super) fn spread(&self, plan: &Plan) -> Spread {
        let mut ran: BTreeMap<&str, u32> = BTreeMap::new();
        for host in self.hosts.values() {
            *ran.entry(host).or_default() += 1;
        }
        let told = spread::odd(plan, &ran);
        Spread { as_planned: told.is_none(), told }
    }
}
