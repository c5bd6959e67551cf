//! How a command came to its bad end: its exit code, its last lines and the launch proof enter; the rank that failed first leaves.

use unisono_agent::proof::{self, Event, Record};
use unisono_plan::{Cause, FailedRank, Time};

use crate::RunDirectory;
use crate::complaints::{Blame, unrunnable_by_launcher};
use crate::first_end::{self, ENDED_BY_LAUNCHER, End, First, KILLED};
use crate::lives::Launched;
use crate::tails::Tails;

/// What is to be told about a bad end.
pub(crate) struct PostMortem {
    /// The exit code; where a launcher could not start a program at all, that of shells for it.
    pub(crate) code: i32,
    /// What ended it.
    pub(crate) cause: Cause,
    /// The rank that failed first.
    pub(crate) rank: Option<FailedRank>,
    /// The last lines worth reading.
    pub(crate) last_lines: Vec<String>,
}

/// A command that ended.
pub(crate) struct Case<'run> {
    /// What it ended with.
    pub(crate) code: i32,
    /// The host that ran it.
    pub(crate) host: &'run str,
    /// Since when it ran.
    pub(crate) since: Option<Time>,
    /// Hosts of which the kernel killed processes for want of memory.
    pub(crate) starved: &'run [String],
    /// Whether all ranks of the job are its own: nobody else launches.
    pub(crate) launches_alone: bool,
    pub(crate) tails: &'run Tails,
    pub(crate) run: &'run RunDirectory,
}

impl Case<'_> {
    /// Finds out what can be known.
    pub(crate) fn examine(&self) -> PostMortem {
        let plain = |cause| {
            let (code, last_lines) = (self.code, self.tails.last());
            PostMortem { code, cause, rank: None, last_lines }
        };
        if self.code == 0 {
            return plain(Cause::Exited);
        }
        let said = self.tails.of_launcher();
        if let Some(program) = unrunnable_by_launcher(&said) {
            let last_lines = program.told_in(&said);
            return PostMortem { code: program.code(), last_lines, ..plain(Cause::Exited) };
        }
        let (rank, suspects) = self.first_rank();
        let is_starved = |host: Option<&str>| self.starved.iter().any(|it| Some(&**it) == host);
        let killed = rank.as_ref().filter(|rank| rank.code == Some(KILLED));
        if killed.is_some_and(|rank| is_starved(rank.host.as_deref())) {
            return PostMortem { rank, ..plain(Cause::OutOfMemory) };
        }
        if is_starved(Some(self.host)) {
            return plain(Cause::OutOfMemory);
        }
        let own = rank.as_ref().map(|rank| self.tails.of_rank(rank.rank)).unwrap_or_default();
        let last_lines = if own.is_empty() { self.tails.last() } else { own };
        // Which process was killed may not be known, but that one was explains the end better than most lines do.
        let starved = self.starved.iter().map(|host| format!("{host} ran out of memory"));
        let suspects = suspects.iter().map(|suspect| suspect.sentence(self.code));
        let last_lines = starved.chain(suspects).chain(last_lines).collect();
        PostMortem { rank, last_lines, ..plain(Cause::Exited) }
    }

    /// The rank that failed first, or those of which it was one. What was seen counts more than what is said.
    fn first_rank(&self) -> (Option<FailedRank>, Vec<FailedRank>) {
        let records = self.records();
        let blame = self.tails.blamed();
        let launched =
            if self.launches_alone { Launched::last(&records) } else { Launched::default() };
        let seen = launched.ends();
        if let Some(end) = first_end::starved(&seen, self.starved) {
            return (Some(failed(end)), Vec::new());
        }
        match first_end::first(&seen, launched.have_all_ended(), blame.as_ref()) {
            First::Rank(end) => (Some(failed(end)), Vec::new()),
            First::OneOf(ends) => (None, ends.into_iter().map(failed).collect()),
            First::Unseen => (blame.and_then(|blame| named(blame, &records)), Vec::new()),
        }
    }

    /// What the launch proof tells of this command's time, in order.
    fn records(&self) -> Vec<Record> {
        records(self.run, self.since)
    }
}

/// Whether every rank that was launched last since a moment has ended, as far as there are witnesses.
pub(crate) fn have_all_ranks_ended(run: &RunDirectory, since: Time) -> bool {
    Launched::last(&records(run, Some(since))).have_all_ended()
}

/// How ranks of a run ended by themselves while their launcher goes on, or went on until it was stopped at that time: one sentence each.
pub fn failed_ranks(run: &RunDirectory, stopped: Option<Time>) -> Vec<String> {
    let launched = Launched::last(&records(run, None));
    let mut own = launched.ends();
    own.retain(|end| !ENDED_BY_LAUNCHER.contains(&end.code));
    // What ranks do when they are asked to stop is no failure.
    own.retain(|end| stopped.is_none_or(|stopped| end.at <= stopped.0));
    let ends = match first_end::first(&own, launched.have_all_ended(), None) {
        First::Rank(end) => vec![end],
        First::OneOf(ends) => ends,
        First::Unseen => Vec::new(),
    };
    ends.into_iter().map(failed).map(|rank| rank.sentence(0)).collect()
}

/// What the launch proofs of a run tell since a moment, in order.
fn records(run: &RunDirectory, since: Option<Time>) -> Vec<Record> {
    let folders = std::fs::read_dir(run.path().join("hosts")).into_iter().flatten().flatten();
    let mut records: Vec<Record> = folders
        .flat_map(|it| proof::read(&it.path().join("proof"), 0).unwrap_or_default())
        .filter(|record| since.is_none_or(|since| record.at >= since.0))
        .collect();
    records.sort_by_key(|record| record.at);
    records
}

fn failed(End { rank, host, code, .. }: End) -> FailedRank {
    FailedRank { rank, host: Some(host), code: Some(code) }
}

/// Whom a launcher names, completed by where ranks were seen.
fn named(blame: Blame, records: &[Record]) -> Option<FailedRank> {
    let seats = || {
        records.iter().rev().filter_map(|record| match &record.event {
            Event::Rank(rank) => Some((rank, &record.host)),
            _ => None,
        })
    };
    let by_process = || {
        let is_it = |process: i32, host: &String| {
            blame.process == Some(process) && blame.host.as_ref() == Some(host)
        };
        seats().find(|(rank, host)| is_it(rank.pid, host)).map(|(rank, _)| rank.rank)
    };
    let rank = blame.rank.or_else(by_process)?;
    let seen_on = || seats().find(|(seen, _)| seen.rank == rank).map(|(_, host)| host.clone());
    Some(FailedRank { rank, host: blame.host.clone().or_else(seen_on), code: blame.code })
}
