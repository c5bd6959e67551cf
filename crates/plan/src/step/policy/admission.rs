//! Gang admission: nothing of a job is created before there is room for all of it.

use crate::{Room, Status, Why};

/// The job lets itself be held back only before anything of it exists.
pub(crate) fn waits(status: &Status, room: &Room) -> Option<Why> {
    match (&status.stage, room) {
        (crate::Stage::Queued, Room::Waiting(reason)) => {
            Some(Why::Queued { reason: reason.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;

    #[test]
    fn only_a_queued_job_waits_for_room() {
        let no_room = Room::Waiting("2 CPUs are free, 4 are needed".to_owned());
        let at = |stage| Status { stage, ..Status::default() };
        assert!(waits(&at(Stage::Queued), &no_room).is_some());
        assert_eq!(waits(&at(Stage::Queued), &Room::Given), None);
        assert_eq!(waits(&at(Stage::Running), &no_room), None);
    }
}
