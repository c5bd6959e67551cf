//! Where ranks really ran: tags and the launch proof enter, each rank's host and whether that is as planned leave.

use std::collections::{BTreeMap, BTreeSet};

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

impl Seats {
    /// Takes note of what a tag told.
    pub(super) fn learn(&mut self, rank: u32, host: &str) {
        if self.hosts.get(&rank).is_none_or(|known| known != host) {
            self.hosts.insert(rank, host.to_owned());
        }
    }

    /// The host of a rank, when anybody knows it.
    pub(super) fn host_of(
        &mut self,
        rank: u32,
        plan: &Plan,
        directory: &RunDirectory,
    ) -> Option<&str> {
        if !self.hosts.contains_key(&rank) {
            self.read(plan, directory);
        }
        self.hosts.get(&rank).map(String::as_str)
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

    /// The ranks that ran on each host.
    pub(super) fn by_host(&self) -> BTreeMap<&str, BTreeSet<u32>> {
        let mut ran: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (rank, host) in &self.hosts {
            ran.entry(host).or_default().insert(*rank);
        }
        ran
    }

    /// What is odd about where ranks ran, as a sentence.
    pub(super) fn odd_spread(&self, plan: &Plan) -> Option<String> {
        let counted = |(host, ranks): (_, BTreeSet<u32>)| (host, u32::try_from(ranks.len()).ok());
        let ran = self.by_host().into_iter().map(counted);
        spread::odd(plan, &ran.filter_map(|(host, count)| Some((host, count?))).collect())
    }
}
