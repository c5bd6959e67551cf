//! The launcher's batch Job: its pods are made by us, and so is its status, so that tools which look at Jobs see one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as ApiTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use unisono_job::{Dialect, Retry};
use unisono_plan::{Plan, Status, Time, Verdict};

use super::Rendering;
use super::template::object;
use crate::marks;
use crate::slim::{Condition, JobStatus};

impl Rendering<'_> {
    /// The Job, where the launcher has one.
    pub fn launcher_job(&self) -> Option<Value> {
        let host = self.plan.launch_host().filter(|_| self.has_launcher_job())?;
        let pods = self.plan.hosts.iter().filter(|host| self.is_in_job(host)).count();
        let mut labels = self.shared_labels();
        labels.extend(self.role_labels(host));
        let mut spec = json!({
            "managedBy": marks::MANAGER,
            "parallelism": pods,
            "completions": pods,
            "podReplacementPolicy": "Failed",
            "template": self.template(host, 0).into_json(),
        });
        if let Retry::Backoff { limit } = self.plan.job.policies.retry {
            object(&mut spec).insert("backoffLimit".to_owned(), json!(limit));
        }
        if let Some(seconds) = self.plan.job.policies.deadline_seconds {
            object(&mut spec).insert("activeDeadlineSeconds".to_owned(), json!(seconds));
        }
        Some(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self.metadata(&self.plan.names.launcher_job(), labels),
            "spec": spec,
        }))
    }
}

/// The Job's status, from the job's. An end is told only when none of its pods is left alive.
pub(crate) fn status(plan: &Plan, status: &Status) -> JobStatus {
    let counts = plan
        .launch_on
        .and_then(|member| status.groups.get(member.group as usize).copied())
        .unwrap_or_default();
    let some = |count: u32| (count > 0).then_some(count);
    let pods = match plan.job.dialect {
        Dialect::KubeBatch => u32::try_from(plan.hosts.len()).unwrap_or(u32::MAX),
        _ => 1,
    };
    let end = status.end().filter(|_| counts.existing == 0);
    let succeeded = end.is_some_and(|end| end.verdict == Verdict::Succeeded);
    let conditions = match end {
        None => Vec::new(),
        Some(_) if succeeded => {
            let reason = ("CompletionsReached", "Reached expected number of succeeded pods");
            conditions(["SuccessCriteriaMet", "Complete"], reason, status.completed)
        }
        Some(end) => {
            conditions(["FailureTarget", "Failed"], end.reason.of_the_job(), status.completed)
        }
    };
    JobStatus {
        active: some(counts.existing),
        ready: some(counts.active),
        succeeded: some(if succeeded { pods } else { 0 }),
        failed: some(status.failed_launches),
        start_time: status.started.and_then(api_time),
        completion_time: status.completed.filter(|_| succeeded).and_then(api_time),
        conditions,
    }
}

fn conditions(
    kinds: [&str; 2],
    (reason, message): (&str, &str),
    at: Option<Time>,
) -> Vec<Condition> {
    let condition = |kind: &str| Condition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: at.and_then(api_time),
    };
    kinds.map(condition).into()
}

/// A moment as the API writes it, in whole seconds.
fn api_time(time: Time) -> Option<ApiTime> {
    let seconds = i64::try_from(time.0 / 1000).ok()?;
    Timestamp::from_second(seconds).ok().map(ApiTime)
}
