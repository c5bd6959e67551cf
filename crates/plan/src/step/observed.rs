//! What an engine sees: every incarnation of every member, and what is asked of the job from outside.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Member, Time};

/// Everything an engine sees of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What exists, older tries included, in any order.
    pub seen: Vec<Seen>,
    /// Whether there is room for the job.
    pub room: Room,
    /// Whether somebody asked to stop the job.
    pub stop_requested: bool,
    /// What the platform refused to do for the job when it was last asked, in its own words.
    pub refused: Option<String>,
    /// What is odd about where the ranks of the last try ran, as a sentence.
    pub odd_spread: Option<String>,
}

/// Whether there is room for all of a job at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// There is, or nobody keeps count.
    #[default]
    Given,
    /// Not yet, and why.
    Waiting(String),
}

/// One incarnation of a member: something that exists, or existed and left its end behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which one.
    pub incarnation: Incarnation,
    /// How far it is.
    pub state: SeenState,
    /// Where it is, once it has an address.
    pub address: Option<IpAddr>,
}

/// A member as it was created in one epoch. Never starts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation {
    /// The member.
    pub member: Member,
    /// The epoch it was created in.
    pub epoch: u32,
}

/// How far an incarnation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenState {
    /// It exists and is not up, for this reason.
    Coming(String),
    /// It exists, and this is in its way. It may pass.
    Stuck(String),
    /// It exists, and nobody has room for it, for this reason. That may pass.
    NoPlace(String),
    /// It exists, and waits for an image that cannot be had. That may pass.
    NoImage(NoImage),
    /// It is not up, for this reason, but everything is known that others need of it. A command that shakes hands with every
    /// host before it begins may be let go already: it finds out by itself when this one is up, sooner than anybody else.
    Placed(String),
    /// The host is up. Its command, if it has one, waits to be let go.
    Up,
    /// Its command runs.
    Running {
        /// Since when.
        since: Time,
    },
    /// It has ended.
    Ended(Ended),
}

/// An image that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoImage {
    /// The container that waits for it.
    pub container: String,
    /// The image.
    pub image: String,
    /// What whoever pulls it says.
    pub said: Option<String>,
    /// Since when it is waited for.
    pub since: Time,
    /// Whether it can never be had: its name is none, or nobody may pull it.
    pub is_hopeless: bool,
}

/// How an incarnation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When its command began, if it did.
    pub started: Option<Time>,
    /// When it ended.
    pub at: Time,
    /// The exit code; for a signal 128 and its number.
    pub code: i32,
    /// What ended it.
    pub cause: Cause,
    /// The rank that failed first, when that is known.
    pub rank: Option<FailedRank>,
    /// The last lines that rank wrote, else those of the command itself.
    pub last_lines: Vec<String>,
}

/// The rank that failed first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRank {
    /// Its number.
    pub rank: u32,
    /// The host it ran on, when that is known.
    pub host: Option<String>,
    /// Its own exit code, for a signal 128 and its number; launchers often end with another one.
    pub code: Option<i32>,
}

impl Ended {
    /// Whether all is well.
    pub const fn succeeded(&self) -> bool {
        self.code == 0 && matches!(self.cause, Cause::Exited)
    }
}

/// What ended an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its command ended by itself.
    Exited,
    /// It used more memory than it may.
    OutOfMemory,
    /// It could never start.
    CannotStart,
    /// The platform took its place away.
    Evicted,
    /// Something more important took its place.
    Preempted,
    /// Its machine is gone.
    NodeLost,
    /// Somebody removed it.
    Deleted,
}

impl Cause {
    /// Whether the platform did it, not the job.
    pub const fn is_the_platforms(self) -> bool {
        match self {
            Self::Exited | Self::OutOfMemory | Self::CannotStart => false,
            Self::Evicted | Self::Preempted | Self::NodeLost | Self::Deleted => true,
        }
    }

    /// What happened, as the end of a sentence about a host.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Exited => "ended",
            Self::OutOfMemory => "ran out of memory",
            Self::CannotStart => "could not start",
            Self::Evicted => "was evicted",
            Self::Preempted => "was preempted",
            Self::NodeLost => "was lost with its node",
            Self::Deleted => "was removed by somebody",
        }
    }
}
