//! The status of a job: all that must survive a restart of whoever runs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::{Cause, Ended, FailedRank, Member, Time};

/// All that is known about a job's life so far. The default is a job nobody has looked at yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The version of the job that was last looked at.
    pub generation: u64,
    /// Where the job is in its life.
    pub stage: Stage,
    /// How many attempts went before this one. Only grows.
    pub attempt: u32,
    /// Grows with everything that makes older members stale. Only grows.
    pub epoch: u32,
    /// Members that run commands are stale when they are older than this epoch.
    pub launched_epoch: u32,
    /// All members are stale when they are older than this epoch.
    pub hosts_epoch: u32,
    /// Members that were lost: they are stale when they are older than the epoch beside them.
    pub replaced: BTreeMap<Member, u32>,
    /// Failures that count against the job's retries.
    pub counted_failures: u32,
    /// Restarts because members were lost.
    pub gang_restarts: u32,
    /// Launches that failed, for whatever reason.
    pub failed_launches: u32,
    /// When the job was first looked at.
    pub created: Option<Time>,
    /// When it began; again when it was resumed.
    pub started: Option<Time>,
    /// When it ended.
    pub completed: Option<Time>,
    /// Commands of the next attempt do not begin before this.
    pub not_before: Option<Time>,
    /// How commands of this attempt ended.
    pub ended: BTreeMap<Member, Ended>,
    /// Members of this attempt that were there and are not seen now, and since when.
    pub missing: BTreeMap<Member, Time>,
    /// Members of each group when the commands were let go; empty before.
    pub released: Vec<u32>,
    /// When a command of this attempt was first seen to run.
    pub running_since: Option<Time>,
    /// When a command of the job first ran at all.
    pub first_ran: Option<Time>,
    /// Since when everything is being stopped for a suspension.
    pub stopping_since: Option<Time>,
    /// What failed first in the last attempt that failed.
    pub first_failure: Option<Failure>,
    /// What was odd about where ranks ran.
    pub odd_spread: Option<String>,
    /// Members of each group by what they are doing.
    pub groups: Vec<GroupCounts>,
    /// The dialect's own conditions.
    pub conditions: Vec<Condition>,
}

/// Where a job is in its life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Nobody has looked at it.
    #[default]
    New,
    /// It waits for somebody to resume it.
    Suspended,
    /// It waits for room.
    Queued,
    /// Its hosts come up; commands are held.
    Starting,
    /// Commands run.
    Running,
    /// It has ended and will never do anything else.
    Ended(End),
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Well or not.
    pub verdict: Verdict,
    /// By which rule.
    pub reason: EndReason,
    /// The member that decided it.
    pub by: Option<Member>,
    /// The job's exit code.
    pub code: i32,
    /// What ended that member.
    pub cause: Option<Cause>,
}

/// Whether a job ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Well.
    Succeeded,
    /// Not well.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

/// The rule by which a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Its commands ended as its rules want.
    Completed,
    /// It failed and no retry is left.
    RetriesExhausted,
    /// It failed in a way that a retry cannot cure.
    NotRetriable,
    /// Members were lost more often than is allowed.
    LostTooOften,
    /// It took too long.
    DeadlineExceeded,
    /// An image could not be had.
    ImageUnavailable,
    /// Somebody asked.
    StopRequested,
}

impl EndReason {
    /// The rule, as a clause for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Completed => "its commands ended as its rules want",
            Self::RetriesExhausted => "no retry was left",
            Self::NotRetriable => "a retry cannot cure it",
            Self::LostTooOften => "hosts were lost more often than it may start again",
            Self::DeadlineExceeded => "its deadline passed",
            Self::ImageUnavailable => {
                "an image could not be had: check its name and its pull secrets, then submit again"
            }
            Self::StopRequested => "somebody stopped it",
        }
    }
}

impl EndReason {
    /// Reason and message on the batch Job of a launcher that failed so; Kubernetes' own, where it has any.
    pub const fn of_the_job(self) -> (&'static str, &'static str) {
        match self {
            Self::DeadlineExceeded => {
                ("DeadlineExceeded", "Job was active longer than specified deadline")
            }
            Self::StopRequested => ("Stopped", "somebody stopped the job"),
            Self::ImageUnavailable => ("ImageUnavailable", self.text()),
            Self::RetriesExhausted | Self::NotRetriable | Self::LostTooOften | Self::Completed => {
                ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
            }
        }
    }
}

/// What failed first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// In which epoch.
    pub epoch: u32,
    /// On which host.
    pub host: String,
    /// Which member.
    pub member: Member,
    /// How it ended.
    pub ended: Ended,
}

impl Failure {
    /// The failure as one sentence.
    pub fn sentence(&self) -> String {
        let Self { host, ended, .. } = self;
        match (ended.cause, &ended.rank) {
            (Cause::Exited, Some(rank)) => rank.sentence(ended.code),
            (Cause::Exited, None) => format!("{host} {}", how_it_ended(ended.code)),
            (Cause::OutOfMemory, Some(rank)) => format!("{} {}", rank.name(), ended.cause.text()),
            (cause, _) => format!("{host} {}", cause.text()),
        }
    }

    /// The host on which it happened: that of the rank, where a rank failed.
    pub fn place(&self) -> &str {
        let of_rank = self.ended.rank.as_ref().and_then(|rank| rank.host.as_deref());
        of_rank.unwrap_or(&self.host)
    }
}

impl FailedRank {
    /// How it ended as one sentence, by its own code or else by that of its launcher.
    pub fn sentence(&self, launchers: i32) -> String {
        format!("{} {}", self.name(), how_it_ended(self.code.unwrap_or(launchers)))
    }

    fn name(&self) -> String {
        let place = self.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        format!("rank {}{place}", self.rank)
    }
}

/// What an exit code tells, as the end of a sentence.
fn how_it_ended(code: i32) -> String {
    match code {
        126 => "ended with exit code 126: a program cannot be executed".to_owned(),
        127 => "ended with exit code 127: a program was not found".to_owned(),
        // Real-time signals reach up to 64; larger codes are a program's own.
        129..=192 => match signal_name(code - 128) {
            Some(name) => format!("was ended by signal {} ({name})", code - 128),
            None => format!("was ended by signal {}", code - 128),
        },
        _ => format!("ended with exit code {code}"),
    }
}

/// The name of a signal that ends programs.
const fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Members of a group by what they are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Existing and not ended.
    pub existing: u32,
    /// Up.
    pub active: u32,
    /// Ended well.
    pub succeeded: u32,
    /// Ended badly.
    pub failed: u32,
}

impl Status {
    /// How the job ended, if it has.
    pub const fn end(&self) -> Option<&End> {
        match &self.stage {
            Stage::Ended(end) => Some(end),
            Stage::New | Stage::Suspended | Stage::Queued | Stage::Starting | Stage::Running => {
                None
            }
        }
    }

    /// Whether the job has ended.
    pub const fn is_terminal(&self) -> bool {
        self.end().is_some()
    }

    /// Whether nothing of the job is to run: it has ended, or is suspended.
    pub const fn is_at_rest(&self) -> bool {
        matches!(self.stage, Stage::Suspended | Stage::Ended(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LAUNCHER, ended};

    fn told(code: i32, rank: Option<FailedRank>) -> String {
        let ended = Ended { rank, ..ended(1, code) };
        Failure { epoch: 0, host: "ring-launcher".to_owned(), member: LAUNCHER, ended }.sentence()
    }

    #[test]
    fn a_failure_names_the_rank_its_host_and_its_own_code() {
        let host = Some("ring-worker-1".to_owned());
        let rank = FailedRank { rank: 2, host: host.clone(), code: Some(139) };
        assert_eq!(
            told(14, Some(rank)),
            "rank 2 on ring-worker-1 was ended by signal 11 (SIGSEGV)"
        );
        let rank = FailedRank { rank: 2, host, code: None };
        assert_eq!(told(42, Some(rank)), "rank 2 on ring-worker-1 ended with exit code 42");
        let rank = FailedRank { rank: 0, host: None, code: Some(3) };
        assert_eq!(told(255, Some(rank)), "rank 0 ended with exit code 3");
    }

    #[test]
    fn a_rank_that_ran_out_of_memory_is_named_and_else_its_host_is() {
        let told = |rank| {
            let ended = Ended { rank, cause: Cause::OutOfMemory, ..ended(1, 137) };
            let host = "ring-launcher".to_owned();
            Failure { epoch: 0, host, member: LAUNCHER, ended }.sentence()
        };
        let host = Some("ring-worker-1".to_owned());
        let rank = FailedRank { rank: 2, host, code: Some(137) };
        assert_eq!(told(Some(rank)), "rank 2 on ring-worker-1 ran out of memory");
        assert_eq!(told(None), "ring-launcher ran out of memory");
    }

    #[test]
    fn only_codes_of_signals_are_told_as_signals() {
        assert_eq!(told(255, None), "ring-launcher ended with exit code 255");
        assert_eq!(told(143, None), "ring-launcher was ended by signal 15 (SIGTERM)");
        assert!(told(127, None).ends_with("exit code 127: a program was not found"));
    }
}
