//! The deadline: counted from the job's start, and again from a resume.

use unisono_job::Policies;

use crate::{Status, Time};

/// When the job's time is up.
pub(crate) fn due(policies: &Policies, status: &Status) -> Option<Time> {
    Some(status.started?.after_seconds(policies.deadline_seconds?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_from_the_start_and_not_before() {
        let policies = Policies { deadline_seconds: Some(9), ..Policies::default() };
        assert_eq!(due(&policies, &Status::default()), None);
        let started = Status { started: Some(Time(1000)), ..Status::default() };
        assert_eq!(due(&policies, &started), Some(Time(10_000)));
        assert_eq!(due(&Policies::default(), &started), None);
    }
}
