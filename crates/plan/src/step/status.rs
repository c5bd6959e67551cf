//! The status of a job: all that must survive a restart of whoever runs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::{Cause, Ended, Member, Time};

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
    /// Since when everything is being stopped for a suspension.
    pub stopping_since: Option<Time>,
    /// What failed first in the last attempt that failed.
    pub first_failure: Option<Failure>,
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
    /// Somebody asked.
    StopRequested,
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
        let rank = ended.rank.map(|rank| format!("rank {rank} on ")).unwrap_or_default();
        match (ended.cause, ended.code) {
            (Cause::Exited, code) if code > 128 => {
                format!("{rank}{host} was ended by signal {}", code - 128)
            }
            (Cause::Exited, code) => format!("{rank}{host} ended with exit code {code}"),
            (cause, _) => format!("{rank}{host} {}", cause.text()),
        }
    }
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
}
