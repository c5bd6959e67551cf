//! Suspend and resume: a suspended job has no members; a resumed one builds everything anew from its current version.

use std::time::Duration;

use crate::{EngineKind, Stage, Status, Time};

/// How long something that is asked to stop may take.
pub(crate) const fn grace(engine: EngineKind) -> Duration {
    match engine {
        EngineKind::Local => Duration::from_secs(5),
        EngineKind::Kubernetes => Duration::from_secs(30),
    }
}

/// The status of a job that is suspended now.
pub(crate) fn suspended(status: &Status, now: Time) -> Status {
    Status { stage: Stage::Suspended, stopping_since: Some(now), ..without_try(status) }
}

/// The status of a job that is resumed now: whatever is left of it is stale.
pub(crate) fn resumed(status: &Status) -> Status {
    let epoch = status.epoch + 1;
    Status {
        stage: Stage::Queued,
        epoch,
        launched_epoch: epoch,
        hosts_epoch: epoch,
        started: None,
        stopping_since: None,
        ..without_try(status)
    }
}

/// The status without anything that belongs to the try that is over.
pub(crate) fn without_try(status: &Status) -> Status {
    Status {
        not_before: None,
        ended: [].into(),
        missing: [].into(),
        released: Vec::new(),
        running_since: None,
        ..status.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resume_makes_everything_older_stale_and_starts_the_clock_again() {
        let running =
            Status { stage: Stage::Running, epoch: 3, started: Some(Time(1)), ..Status::default() };
        let suspended = suspended(&running, Time(5));
        assert_eq!((&suspended.stage, suspended.epoch), (&Stage::Suspended, 3));
        let resumed = resumed(&suspended);
        assert_eq!((resumed.hosts_epoch, resumed.launched_epoch), (4, 4));
        assert_eq!((resumed.started, resumed.stopping_since), (None, None));
    }
}
