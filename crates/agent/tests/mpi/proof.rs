//! The launch proof of real runs: which ranks were seen where, and how each launch ended.

use std::collections::{BTreeMap, BTreeSet};

use unisono_agent::proof::{self, Event};
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::ends::GONE_WITHIN;
use crate::run::{THREE, assert_hosts_are_quiet, cluster, start};

crate::for_every_flavour!(the_proof_tells_which_ranks_ran_where);

fn the_proof_tells_which_ranks_ran_where(flavour: Flavour) {
    let cluster = cluster(THREE);
    // Ranks are looked for every second once they run.
    start(&cluster, flavour, 6, Program::Wait, &["3"]).end().expect_success();
    // A launcher may leave before those who wait for its daemons have told how they ended.
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);

    let records = proof::read(&cluster.folder().join("proof"), 0).unwrap();
    let mut seen: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for record in &records {
        if let Event::Rank(rank) = &record.event {
            seen.entry(&record.host).or_default().insert(rank.rank);
            assert_eq!((rank.local_size, rank.world_size), (Some(2), Some(6)), "{record:?}");
        }
    }
    // The ranks of the launcher's own host are mpirun's children and pass no agent here.
    let expected = [("worker-1", BTreeSet::from([2, 3])), ("worker-2", BTreeSet::from([4, 5]))];
    assert_eq!(seen, BTreeMap::from(expected), "{records:#?}");
    // Open MPI 4 leaves before its daemons have ended, and they with it.
    let is_end =
        |event: &Event| matches!(event, Event::Exited { code: 0 } | Event::Abandoned { .. });
    let ended = |host: &str| records.iter().any(|it| it.host == host && is_end(&it.event));
    assert!(ended("worker-1") && ended("worker-2"), "{records:#?}");
    assert!(!records.iter().any(|it| matches!(it.event, Event::Lost { .. })), "{records:#?}");
}
