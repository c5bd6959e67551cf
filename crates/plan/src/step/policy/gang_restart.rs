//! Gang restart: when members are lost all ranks start again, without counting against the job's own retries, a bounded
//! number of times.

use unisono_job::Policies;

use crate::Status;

/// Whether one more restart is allowed.
pub(crate) const fn is_allowed(policies: &Policies, status: &Status) -> bool {
    status.gang_restarts < policies.gang_restarts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_bounded() {
        let policies = Policies { gang_restarts: 2, ..Policies::default() };
        let after = |gang_restarts| Status { gang_restarts, ..Status::default() };
        assert!(is_allowed(&policies, &after(1)));
        assert!(!is_allowed(&policies, &after(2)));
    }
}
