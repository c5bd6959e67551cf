//! Retries: whether another attempt follows, whether it counts, and how long it waits.

use unisono_job::{Retry, RetryCount};

use super::retry_class::{Class, class_of};
use crate::{EndReason, Ended};

/// The longest wait between two attempts.
const LONGEST_WAIT_SECONDS: u64 = 60;

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Another one.
    Again {
        /// Whether it counts against the limit.
        counts: bool,
    },
    /// Nothing.
    Stop(EndReason),
}

/// What follows an attempt that failed like this after that many counted failures.
pub(crate) fn after_failure(retry: Retry, failures: u32, ended: &Ended) -> Decision {
    let up_to = |limit: u32| {
        if failures < limit {
            Decision::Again { counts: true }
        } else {
            Decision::Stop(EndReason::RetriesExhausted)
        }
    };
    let count = match retry {
        Retry::Backoff { limit } => return up_to(limit),
        Retry::ByClass(count) => count,
    };
    match (class_of(ended.code, ended.cause), count) {
        (_, RetryCount::Always) | (Class::Transient | Class::Conflict, _) => {
            Decision::Again { counts: false }
        }
        (Class::NonTransient, _) => Decision::Stop(EndReason::NotRetriable),
        (Class::Unknown, RetryCount::UntilSuccess) => Decision::Again { counts: true },
        (Class::Unknown, RetryCount::Limited(limit)) => up_to(limit),
    }
}

/// Whether even success is followed by another attempt.
pub(crate) const fn never_ends(retry: Retry) -> bool {
    matches!(retry, Retry::ByClass(RetryCount::Always))
}

/// Seconds before the attempt that follows that many failed launches: none, then 1, 2, 4 and so on.
pub(crate) fn wait_seconds(failed_launches: u32) -> u64 {
    match failed_launches {
        0 | 1 => 0,
        more => 1_u64.checked_shl(more - 2).unwrap_or(u64::MAX).min(LONGEST_WAIT_SECONDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Time};

    const STOP: Decision = Decision::Stop(EndReason::RetriesExhausted);
    const NEVER: Decision = Decision::Stop(EndReason::NotRetriable);
    const FREE: Decision = Decision::Again { counts: false };
    const COUNTED: Decision = Decision::Again { counts: true };

    fn after(retry: Retry, failures: u32, code: i32) -> Decision {
        let ended = Ended {
            started: None,
            at: Time(0),
            code,
            cause: Cause::Exited,
            rank: None,
            last_lines: Vec::new(),
        };
        after_failure(retry, failures, &ended)
    }

    #[test]
    fn a_backoff_limit_counts_every_failure() {
        let retry = Retry::Backoff { limit: 2 };
        assert_eq!([0, 1, 2].map(|failures| after(retry, failures, 1)), [COUNTED, COUNTED, STOP]);
        assert_eq!(after(Retry::Backoff { limit: 0 }, 0, 143), STOP);
    }

    #[test]
    fn classes_decide_for_openpai() {
        let none = Retry::ByClass(RetryCount::Limited(0));
        assert_eq!([1, 143, 139, 137].map(|code| after(none, 0, code)), [STOP, FREE, NEVER, NEVER]);
        let one = Retry::ByClass(RetryCount::Limited(1));
        assert_eq!([0, 1].map(|failures| after(one, failures, 1)), [COUNTED, STOP]);
        let until_success = Retry::ByClass(RetryCount::UntilSuccess);
        assert_eq!([1, 139].map(|code| after(until_success, 99, code)), [COUNTED, NEVER]);
        let always = Retry::ByClass(RetryCount::Always);
        assert_eq!(after(always, 99, 139), FREE);
        assert!(never_ends(always) && !never_ends(until_success));
    }

    #[test]
    fn the_first_retry_comes_at_once_and_later_ones_wait_longer_up_to_a_minute() {
        assert_eq!([1, 2, 3, 4, 9, 90].map(wait_seconds), [0, 1, 2, 4, 60, 60]);
    }
}
