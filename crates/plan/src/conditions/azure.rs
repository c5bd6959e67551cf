//! Azure ML's run states.

use serde::Serialize;

use crate::{Plan, Stage, Status, Verdict};

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureStatus {
    /// The state, in that service's words.
    pub status: &'static str,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
}

pub(super) fn status(_plan: &Plan, status: &Status) -> AzureStatus {
    let any_up = status.groups.iter().any(|group| group.active > 0);
    AzureStatus {
        status: match &status.stage {
            Stage::New => "NotStarted",
            Stage::Suspended => "Paused",
            Stage::Queued => "Queued",
            Stage::Starting if any_up => "Preparing",
            Stage::Starting => "Provisioning",
            Stage::Running => "Running",
            Stage::Ended(end) => match end.verdict {
                Verdict::Succeeded => "Completed",
                Verdict::Failed => "Failed",
                Verdict::Stopped => "Canceled",
            },
        },
        start_time: status.started.map(|time| time.to_string()),
        end_time: status.completed.map(|time| time.to_string()),
    }
}
