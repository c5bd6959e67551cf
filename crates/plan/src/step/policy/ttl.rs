//! Time to live: an ended job removes itself.

use unisono_job::Policies;

use crate::{Status, Time};

/// When the job is to be removed.
pub(crate) fn due(policies: &Policies, status: &Status) -> Option<Time> {
    Some(status.completed?.after_seconds(policies.ttl_seconds?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_job_is_removed_when_its_time_has_come_and_only_then() {
        let policies = Policies { ttl_seconds: Some(0), ..Policies::default() };
        assert_eq!(due(&policies, &Status::default()), None);
        let completed = Status { completed: Some(Time(7)), ..Status::default() };
        assert_eq!(due(&policies, &completed), Some(Time(7)));
        assert_eq!(due(&Policies::default(), &completed), None);
    }
}
