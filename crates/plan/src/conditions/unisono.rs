//! The status of a `UnisonoJob`: one word for where it is, conditions, and members by group.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ConditionView;
use crate::{Plan, Stage, Status, Verdict};

/// The status of a `UnisonoJob`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnisonoStatus {
    /// Where the job is in its life.
    pub phase: &'static str,
    /// What holds and what does not.
    pub conditions: Vec<ConditionView>,
    /// Members by group.
    pub groups: BTreeMap<String, MembersView>,
    /// How many attempts went before this one.
    pub attempt: u32,
    /// When the job began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// The job's exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Members of a group by what they are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MembersView {
    /// Wanted.
    pub replicas: u32,
    /// Existing and not ended.
    pub active: u32,
    /// Up.
    pub ready: u32,
    /// Ended well.
    pub succeeded: u32,
    /// Ended badly.
    pub failed: u32,
}

pub(super) fn status(plan: &Plan, status: &Status) -> UnisonoStatus {
    let counts = |at: usize| status.groups.get(at).copied().unwrap_or_default();
    let groups = plan.job.groups.iter().enumerate().map(|(at, group)| {
        let counts = counts(at);
        let view = MembersView {
            replicas: group.replicas,
            active: counts.existing,
            ready: counts.active,
            succeeded: counts.succeeded,
            failed: counts.failed,
        };
        (group.name.clone(), view)
    });
    UnisonoStatus {
        phase: phase(&status.stage),
        conditions: super::views(status),
        groups: groups.collect(),
        attempt: status.attempt,
        start_time: status.started.map(|time| time.to_string()),
        completion_time: status.completed.map(|time| time.to_string()),
        exit_code: status.end().map(|end| end.code),
    }
}

const fn phase(stage: &Stage) -> &'static str {
    match stage {
        Stage::New | Stage::Queued => "Pending",
        Stage::Suspended => "Suspended",
        Stage::Starting => "Starting",
        Stage::Running => "Running",
        Stage::Ended(end) => match end.verdict {
            Verdict::Succeeded => "Succeeded",
            Verdict::Failed => "Failed",
            Verdict::Stopped => "Stopped",
        },
    }
}
