//! Hosts that were lost: what the launch proof tells enters, the first of them leaves.

use std::collections::{BTreeMap, BTreeSet};

use crate::proof::{Event, Record};

/// Why nobody knows what became of ranks: whoever was connected to them was killed. Open MPI 5's launcher kills its connections when it
/// loses a host, and may do so before they have told of the loss.
const SILENCED: &str = "the process that was connected to it was killed";

/// A host that was lost while the command ran.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) host: String,
    pub(crate) reason: String,
    /// Whether the proof tells of it already.
    pub(crate) is_told: bool,
}

/// The first host that was lost. These processes were killed by us, because they outlived the command.
pub(crate) fn first(records: &[Record], by_us: &[u32]) -> Option<Loss> {
    let told = records.iter().find_map(|record| match &record.event {
        Event::Lost { reason } => {
            Some(Loss { host: record.host.clone(), reason: reason.clone(), is_told: true })
        }
        _ => None,
    });
    told.or_else(|| {
        let host = silenced(records, by_us)?;
        Some(Loss { host: host.to_owned(), reason: SILENCED.to_owned(), is_told: false })
    })
}

/// A host with ranks that were there when the last was heard of it, of a launch whose end nobody told.
fn silenced<'proof>(records: &'proof [Record], by_us: &[u32]) -> Option<&'proof str> {
    let mut ranks: BTreeMap<(u32, &str), BTreeSet<u32>> = BTreeMap::new();
    for Record { host, launch, event, .. } in records {
        let of_launch = (*launch, host.as_str());
        match event {
            Event::Reached { .. } => drop(ranks.insert(of_launch, BTreeSet::new())),
            Event::Rank(rank) => {
                ranks.get_mut(&of_launch).map(|ranks| ranks.insert(rank.rank));
            }
            Event::RankGone(rank) => {
                ranks.get_mut(&of_launch).map(|ranks| ranks.remove(&rank.rank));
            }
            Event::Exited { .. }
            | Event::Killed { .. }
            | Event::Lost { .. }
            | Event::Abandoned { .. } => drop(ranks.remove(&of_launch)),
            _ => {}
        }
    }
    let is_unknown = |(launch, _): &(u32, &str)| !by_us.contains(launch);
    ranks.into_iter().find_map(|(of_launch, ranks)| {
        (!ranks.is_empty() && is_unknown(&of_launch)).then_some(of_launch.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Rank;

    fn record(launch: u32, event: Event) -> Record {
        Record { at: 0, host: format!("w{launch}"), launch, event }
    }

    fn rank(number: u32) -> Rank {
        Rank { rank: number, pid: 7, local_size: None, world_size: None }
    }

    /// A launch that was reached, and what came after that.
    fn launch(number: u32, events: &[Event]) -> Vec<Record> {
        let reached = Event::Reached { address: "127.0.0.1:1".to_owned() };
        let all = std::iter::once(&reached).chain(events);
        all.map(|event| record(number, event.clone())).collect()
    }

    fn lost(records: &[Record], by_us: &[u32]) -> Option<(String, bool)> {
        first(records, by_us).map(|loss| (loss.host, loss.is_told))
    }

    #[test]
    fn what_the_proof_tells_comes_first() {
        let cut = Event::Lost { reason: "cut".to_owned() };
        let both = [launch(1, &[Event::Rank(rank(0))]), launch(2, &[cut])].concat();
        assert_eq!(lost(&both, &[]), Some(("w2".to_owned(), true)));
    }

    #[test]
    fn a_launch_with_ranks_that_was_killed_is_a_loss() {
        let killed =
            launch(1, &[Event::Rank(rank(0)), Event::Rank(rank(1)), Event::RankGone(rank(1))]);
        assert_eq!(lost(&killed, &[]), Some(("w1".to_owned(), false)));
        assert_eq!(lost(&killed, &[1]), None, "it outlived the command");
    }

    #[test]
    fn a_launch_that_ended_or_had_no_ranks_any_more_is_none() {
        let abandoned = Event::Abandoned { reason: "gone".to_owned() };
        for end in [Event::Exited { code: 0 }, Event::Killed { signal: 15 }, abandoned] {
            assert_eq!(lost(&launch(1, &[Event::Rank(rank(0)), end]), &[]), None);
        }
        assert_eq!(lost(&launch(1, &[Event::Rank(rank(0)), Event::RankGone(rank(0))]), &[]), None);
        assert_eq!(lost(&launch(1, &[Event::Started { pid: 3 }]), &[]), None, "no rank was there");
        // The ranks of the launching host itself are its own business.
        assert_eq!(lost(&[record(1, Event::Rank(rank(0)))], &[]), None);
    }
}
