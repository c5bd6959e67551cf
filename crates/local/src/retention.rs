//! How long directories of ended runs stay: what is known of them enters, those to be removed leave.

use std::io;
use std::path::Path;
use std::time::Duration;

use unisono_plan::{Status, Time};

use crate::{RunDirectory, RunRecord};

/// What may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many runs, the newest.
    pub runs: u32,
    /// Runs that began at most so many days ago.
    pub days: u32,
}

/// An ended run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ended {
    began: Time,
    /// When the job's own file wants it to be removed.
    due: Option<Time>,
    /// Whether the user wants it to stay.
    keep: bool,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes directories of runs that have ended and are outdated. One that cannot be removed is left for the next time.
///
/// # Errors
///
/// When the runs cannot be listed.
pub fn sweep(runs: &Path, limits: Limits, now: Time) -> io::Result<()> {
    let ended: Vec<(RunDirectory, RunRecord)> = RunDirectory::all(runs)?
        .into_iter()
        .filter(|(directory, _)| !directory.is_running())
        .collect();
    let known: Vec<Ended> =
        ended.iter().map(|(directory, record)| known(directory, record)).collect();
    for at in outdated(&known, limits, now) {
        if let Some((directory, _)) = ended.get(at) {
            // Somebody else may be removing it at this moment.
            let _removed = directory.remove();
        }
    }
    Ok(())
}

fn known(directory: &RunDirectory, record: &RunRecord) -> Ended {
    let began = Time(record.began);
    let due = record.ttl_seconds.map(|seconds| {
        let status: Status = directory.read("status.json").unwrap_or_default();
        status.completed.unwrap_or(began).after_seconds(seconds)
    });
    Ended { began, due, keep: record.keep }
}

/// Which of these runs, the oldest first, are to be removed.
fn outdated(runs: &[Ended], limits: Limits, now: Time) -> Vec<usize> {
    let counted = runs.iter().filter(|run| !run.keep).count();
    let mut surplus = counted.saturating_sub(limits.runs as usize);
    let oldest = DAY.saturating_mul(limits.days);
    let mut gone = Vec::new();
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| !run.keep) {
        let is_surplus = surplus > 0;
        surplus = surplus.saturating_sub(1);
        let is_due = run.due.is_some_and(|due| now >= due);
        if is_surplus || is_due || now.since(run.began) > oldest {
            gone.push(at);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { runs: 3, days: 2 };
    const TODAY: Time = Time(10 * 24 * 60 * 60 * 1000);

    fn run(hours_ago: u64) -> Ended {
        Ended { began: Time(TODAY.0 - hours_ago * 60 * 60 * 1000), due: None, keep: false }
    }

    #[test]
    fn the_newest_stay_and_the_oldest_go() {
        let runs = [run(5), run(4), run(3), run(2), run(1)];
        assert_eq!(outdated(&runs, LIMITS, TODAY), [0, 1]);
    }

    #[test]
    fn age_alone_is_enough_to_go() {
        assert_eq!(outdated(&[run(49), run(1)], LIMITS, TODAY), [0]);
    }

    #[test]
    fn a_files_own_time_to_live_counts_from_the_end() {
        let due = |at| Ended { due: Some(Time(at)), ..run(1) };
        assert_eq!(outdated(&[due(TODAY.0), due(TODAY.0 + 1)], LIMITS, TODAY), [0]);
    }

    #[test]
    fn what_is_to_stay_stays_and_is_not_counted() {
        let kept = Ended { keep: true, due: Some(Time(0)), ..run(200) };
        assert_eq!(outdated(&[kept, run(3), run(2), run(1)], LIMITS, TODAY), [0; 0]);
    }
}
