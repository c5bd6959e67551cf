//! OpenPAI's job states and task states.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Plan, Stage, Status, Verdict};

/// The status of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenPaiStatus {
    /// The job.
    pub job_status: JobState,
    /// Its tasks by role.
    pub task_roles: BTreeMap<String, TaskRoleStatus>,
}

/// The job part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobState {
    /// Its name.
    pub name: String,
    /// `WAITING`, `RUNNING`, `SUCCEEDED`, `FAILED` or `STOPPED`.
    pub state: &'static str,
    /// Attempts before this one.
    pub retries: u32,
    /// When it was first seen, in milliseconds.
    pub created_time: Option<u64>,
    /// When it ended, in milliseconds.
    pub completed_time: Option<u64>,
    /// Its exit code.
    pub app_exit_code: Option<i32>,
    /// What failed.
    pub app_exit_diagnostics: Option<String>,
    /// Its virtual cluster.
    pub virtual_cluster: String,
}

/// The tasks of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRoleStatus {
    /// Its tasks that have ended; the others are waiting or running with the job.
    pub task_statuses: Vec<TaskStatus>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Its index.
    pub task_index: u32,
    /// Its state.
    pub task_state: &'static str,
    /// Its exit code.
    pub container_exit_code: Option<i32>,
}

pub(super) fn status(plan: &Plan, status: &Status) -> OpenPaiStatus {
    let end = status.end();
    let state = match &status.stage {
        Stage::New | Stage::Suspended | Stage::Queued | Stage::Starting => "WAITING",
        Stage::Running => "RUNNING",
        Stage::Ended(end) => match end.verdict {
            Verdict::Succeeded => "SUCCEEDED",
            Verdict::Failed => "FAILED",
            Verdict::Stopped => "STOPPED",
        },
    };
    let queue = plan.job.policies.gang.queue.as_deref();
    OpenPaiStatus {
        job_status: JobState {
            name: plan.job.name.to_string(),
            state,
            retries: status.attempt,
            created_time: status.created.map(|time| time.0),
            completed_time: status.completed.map(|time| time.0),
            app_exit_code: end.map(|end| end.code),
            app_exit_diagnostics: super::failure_sentence(plan, status),
            virtual_cluster: queue.unwrap_or("default").to_owned(),
        },
        task_roles: (0_u32..)
            .zip(&plan.job.groups)
            .map(|(at, group)| (group.name.clone(), tasks(plan, status, at, state)))
            .collect(),
    }
}

fn tasks(plan: &Plan, status: &Status, group: u32, job_state: &'static str) -> TaskRoleStatus {
    let task = |host: &crate::Host| {
        let ended = status.ended.get(&host.member);
        TaskStatus {
            task_index: host.member.index,
            task_state: match ended {
                Some(ended) if ended.succeeded() => "SUCCEEDED",
                Some(_) => "FAILED",
                None if matches!(job_state, "WAITING" | "RUNNING") => job_state,
                None => "STOPPED",
            },
            container_exit_code: ended.map(|ended| ended.code),
        }
    };
    TaskRoleStatus { task_statuses: plan.hosts_of_group(group).iter().map(task).collect() }
}
