//! Finds the MPI ranks below a supervisor by the number each carries in its environment; `/proc` goes in, ranks come out.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::polling::until;
use crate::processes;
use crate::witness;

/// A rank's number, by MPI: Open MPI sets the first two, Hydra (MPICH, Intel MPI) the third.
const RANK: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// How many ranks share the host, so that one rank seen tells the count of all.
const LOCAL_SIZE: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/// How many ranks there are in all.
const WORLD_SIZE: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// An environment longer than this is not searched to its end.
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

/// The kernel cuts names at 16 bytes.
const LONGEST_NAME: u64 = 64;

/// The first look comes soon and each later one after twice the time, up to the last: a job of a third of a second is seen, and one of a day costs nothing.
const FIRST_LOOK: Duration = Duration::from_millis(25);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// A rank as its process shows itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// Its number in the job.
    pub rank: u32,
    /// Its process id on its host.
    pub pid: i32,
    /// Ranks on its host, when its MPI tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_size: Option<u32>,
    /// Ranks in the job, when its MPI tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world_size: Option<u32>,
}

/// What one look found out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Ranks not seen before.
    pub(crate) appeared: Vec<Rank>,
    /// Ranks that were there and are not any more.
    pub(crate) gone: Vec<Rank>,
}

/// Looks for ranks from time to time.
pub(crate) struct Watch {
    look_at: Instant,
    pause: Duration,
    present: HashMap<Pid, Rank>,
}

impl Watch {
    pub(crate) fn new(now: Instant) -> Self {
        Self { look_at: now + FIRST_LOOK, pause: FIRST_LOOK, present: HashMap::new() }
    }

    /// Time until the next look.
    pub(crate) fn due_in(&self, now: Instant) -> Duration {
        until(self.look_at, now)
    }

    /// Whether looks have become rare.
    pub(crate) fn is_settled(&self) -> bool {
        self.pause == LAST_LOOK
    }

    /// Looks if it is time to.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<Changes> {
        if now < self.look_at {
            return None;
        }
        self.pause = (self.pause * 2).min(LAST_LOOK);
        self.look_at = now + self.pause;
        Some(self.look())
    }

    /// Looks now.
    pub(crate) fn look(&mut self) -> Changes {
        let tree = processes::descendants(rustix::process::getpid());
        let alive: HashSet<Pid> = tree.iter().copied().collect();
        let mut changes = Changes::default();
        self.present.retain(|pid, rank| {
            let stays = alive.contains(pid);
            if !stays {
                changes.gone.push(rank.clone());
            }
            stays
        });
        // A rank's own children inherit its environment; parents come first in the tree, so the rank itself is seen first.
        let mut known: HashSet<u32> = self.present.values().map(|rank| rank.rank).collect();
        for pid in tree {
            if !self.present.contains_key(&pid)
                && let Some(rank) = rank_of(pid)
                && known.insert(rank.rank)
            {
                changes.appeared.push(rank.clone());
                self.present.insert(pid, rank);
            }
        }
        changes
    }
}

/// The rank that this very process is. It asks no `/proc`: the agent keeps even its own user from looking into it.
pub(crate) fn own() -> Option<Rank> {
    let number = |names: &[&str]| {
        names.iter().find_map(|name| std::env::var(name).ok()?.parse::<u32>().ok())
    };
    Some(Rank {
        rank: number(&RANK)?,
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        local_size: number(&LOCAL_SIZE),
        world_size: number(&WORLD_SIZE),
    })
}

fn rank_of(pid: Pid) -> Option<Rank> {
    let pid = pid.as_raw_nonzero().get();
    let environment =
        processes::contents(&format!("/proc/{pid}/environ"), LONGEST_ENVIRONMENT).ok()?;
    let rank = number(&environment, &RANK)?;
    let name = processes::contents(&format!("/proc/{pid}/comm"), LONGEST_NAME).ok()?;
    if name.trim_ascii_end() == witness::NAME.as_bytes() {
        return None;
    }
    Some(Rank {
        rank,
        pid,
        local_size: number(&environment, &LOCAL_SIZE),
        world_size: number(&environment, &WORLD_SIZE),
    })
}

/// The value of the first of these variables that holds a number.
fn number(environment: &[u8], names: &[&str]) -> Option<u32> {
    let value = |name: &str| {
        environment.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok()?.parse().ok()
        })
    };
    names.iter().find_map(|name| value(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn numbers_come_from_whole_names_only() {
        let environment = b"XPMI_RANK=9\0PMI_RANKS=8\0PMI_RANK=3\0PMI_SIZE=6\0";
        assert_eq!(number(environment, &RANK), Some(3));
        assert_eq!(number(environment, &WORLD_SIZE), Some(6));
        assert_eq!(number(environment, &LOCAL_SIZE), None);
    }

    #[test]
    fn a_rank_is_seen_once_and_then_seen_gone() {
        let mut child = Command::new("cat")
            .env("OMPI_COMM_WORLD_RANK", "4242")
            .env("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut watch = Watch::new(Instant::now());
        let seen = |rank: &Rank| rank.rank == 4242 && rank.local_size == Some(2);
        // One look can miss a process while another test's child ends beside it.
        let end = Instant::now() + Duration::from_secs(10);
        while !watch.look().appeared.iter().any(seen) {
            assert!(Instant::now() < end, "it was never seen");
        }
        assert!(!watch.look().appeared.iter().any(seen));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(watch.look().gone.iter().any(seen));
    }
}
