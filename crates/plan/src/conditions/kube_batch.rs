//! kube-batch's status: the Job's and the PodGroup's. Its own code never filled it.

use serde::Serialize;

use crate::{GroupCounts, Plan, Stage, Status, Verdict};

/// The status of an `MPI` object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeBatchStatus {
    /// The Job's.
    pub job: JobStatus,
    /// The PodGroup's.
    pub pod_group: GroupStatus,
}

/// A batch Job's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Pods that exist and have not ended.
    pub active: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Tries that failed.
    pub failed: u32,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// `Complete` or `Failed`, once it has ended.
    pub conditions: Vec<JobCondition>,
}

/// A condition of a batch Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True`.
    pub status: &'static str,
    /// Why, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A PodGroup's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStatus {
    /// `Pending`, `Running` or `Unknown`.
    pub phase: &'static str,
    /// Pods that run.
    pub running: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Tries that failed.
    pub failed: u32,
}

pub(super) fn status(plan: &Plan, status: &Status) -> KubeBatchStatus {
    let sum = |count: fn(&GroupCounts) -> u32| status.groups.iter().map(count).sum::<u32>();
    let running = sum(|it| it.active);
    let everybody = u32::try_from(plan.hosts.len()).unwrap_or(u32::MAX);
    // The other pods end with the executor, and their own ends tell nothing.
    let ended_well = status.end().is_some_and(|end| end.verdict == Verdict::Succeeded);
    let (succeeded, failed) = (if ended_well { everybody } else { 0 }, status.failed_launches);
    let enough = plan.job.policies.gang.min_members.unwrap_or(everybody);
    let phase = match status.stage {
        Stage::Running | Stage::Ended(_) => "Running",
        Stage::New | Stage::Suspended | Stage::Queued => "Pending",
        Stage::Starting if running >= enough => "Running",
        // Some run and some do not, and nobody can say whether the rest will fit.
        Stage::Starting if status.failed_launches > 0 => "Unknown",
        Stage::Starting => "Pending",
    };
    let condition = status.end().map(|end| JobCondition {
        kind: if end.verdict == Verdict::Succeeded { "Complete" } else { "Failed" },
        status: "True",
        message: super::failure_sentence(plan, status),
    });
    KubeBatchStatus {
        job: JobStatus {
            active: sum(|it| it.existing),
            succeeded,
            failed,
            start_time: status.started.map(|time| time.to_string()),
            completion_time: status.completed.map(|time| time.to_string()),
            conditions: Vec::from_iter(condition),
        },
        pod_group: GroupStatus { phase, running, succeeded, failed },
    }
}
