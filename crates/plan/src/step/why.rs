//! Why a job waits, for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Somebody else manages it.
    ManagedElsewhere {
        /// Who.
        manager: String,
    },
    /// It is suspended.
    Suspended,
    /// There is no room for all of it.
    Queued {
        /// Why not.
        reason: String,
    },
    /// The platform refuses what the job needs: a quota, a policy, a name that is taken.
    Refused {
        /// What it says.
        reason: String,
    },
    /// A host of an earlier try is still there.
    Clearing {
        /// Which.
        host: String,
        /// How many beside it.
        others: usize,
    },
    /// A host is not up.
    Coming {
        /// Which.
        host: String,
        /// Why not.
        reason: String,
        /// How many beside it.
        others: usize,
    },
    /// A host is not up, and something is in its way.
    Stuck {
        /// Which.
        host: String,
        /// What.
        reason: String,
        /// How many beside it are not up.
        others: usize,
    },
    /// The next attempt waits, so that a broken job does not spin.
    Backoff {
        /// Which attempt.
        attempt: u32,
        /// Until when.
        until: Time,
    },
    /// A host is not seen any more; it may only be a late view.
    Missing {
        /// Which.
        host: String,
        /// Until when it may come back.
        until: Time,
    },
    /// A command failed; whether a lost host caused it will be known soon.
    Judging {
        /// On which host.
        host: String,
        /// Until when.
        until: Time,
    },
    /// A command runs.
    Running {
        /// On which host.
        host: String,
        /// How many beside it.
        others: usize,
    },
    /// A host is being stopped.
    Stopping {
        /// Which.
        host: String,
        /// How many beside it.
        others: usize,
    },
    /// The job has ended and will be removed.
    Expiring {
        /// When.
        at: Time,
    },
    /// The job has ended.
    Ended,
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagedElsewhere { manager } => write!(formatter, "{manager} manages the job"),
            Self::Suspended => {
                formatter.write_str("the job is suspended until somebody resumes it")
            }
            Self::Queued { reason } => write!(formatter, "the job waits in line: {reason}"),
            Self::Refused { reason } => formatter.write_str(reason),
            Self::Clearing { host, others } => {
                write!(formatter, "{host}{} of an earlier try is still there", and(*others))
            }
            Self::Coming { host, reason, others } | Self::Stuck { host, reason, others } => {
                write!(formatter, "{host}{} is not up: {reason}", and(*others))
            }
            Self::Backoff { attempt, until } => {
                write!(formatter, "attempt {attempt} begins at {until}")
            }
            Self::Missing { host, until } => {
                write!(formatter, "{host} is not seen any more; it counts as lost at {until}")
            }
            Self::Judging { host, until } => write!(
                formatter,
                "the command on {host} failed; whether a lost host is to blame is settled at {until}"
            ),
            Self::Running { host, others } => {
                write!(formatter, "the command runs on {host}{}", and(*others))
            }
            Self::Stopping { host, others } => {
                write!(formatter, "{host}{} is being stopped", and(*others))
            }
            Self::Expiring { at } => {
                write!(formatter, "the job has ended and is removed at {at}")
            }
            Self::Ended => formatter.write_str("the job has ended"),
        }
    }
}

fn and(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " (and 1 other)".to_owned(),
        more => format!(" (and {more} others)"),
    }
}
