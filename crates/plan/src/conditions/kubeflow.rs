//! Kubeflow's conditions, version by version, and Unisono's own, which follow the same scheme.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_job::{Dialect, System};

use super::{Condition, ConditionView, Happening, RANKS_ELSEWHERE, failure_sentence, holds, put};
use crate::{Cause, End, EndReason, Plan, Stage, Status, Time, Verdict};

/// Condition types.
const CREATED: &str = "Created";
const RUNNING: &str = "Running";
const RESTARTING: &str = "Restarting";
const SUSPENDED: &str = "Suspended";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";
/// Not a type of theirs: there only when it does not hold.
const SPREAD: &str = "Spread";

/// Messages longer than this are cut, as that operator cuts them.
const LONGEST_MESSAGE: usize = 1024;
const MARK_OF_A_CUT: &str = "...";

/// What a launcher Job says when its retries are used up.
const BACKOFF: &str = "BackoffLimitExceeded";
const BACKOFF_MESSAGE: &str = "Job has reached the specified backoff limit";

pub(super) fn update(plan: &Plan, prior: &Status, status: &mut Status, now: Time) {
    let job = Told::of(plan);
    if prior.created.is_none() && status.created.is_some() {
        job.set(status, CREATED, true, "Created", "is created.", now);
    }
    if plan.told_as() == Dialect::KubeflowV1alpha2
        && status.failed_launches > prior.failed_launches
        && !status.is_terminal()
    {
        status.conditions.retain(|condition| condition.kind != RUNNING);
        job.set(status, RESTARTING, true, "Restarting", "is restarting.", now);
    }
    if let Some(since) = status.running_since
        && !holds(status, RUNNING)
        && !prior.is_terminal()
        && status.stage != Stage::Suspended
    {
        status.conditions.retain(|condition| condition.kind != RESTARTING);
        job.set(status, RUNNING, true, "Running", "is running.", since.min(now));
    }
    update_suspended(&job, plan, prior, status, now);
    if let Some(odd) = status.odd_spread.clone() {
        put(status, SPREAD, false, RANKS_ELSEWHERE.to_owned(), odd, now);
    }
    if status.is_terminal() && !prior.is_terminal() {
        update_ended(&job, plan, status, now);
    }
    end_with_what_holds(&mut status.conditions);
}

/// Whoever shows one condition, as `kubectl get` does, shows the last: it must be one that holds.
fn end_with_what_holds(conditions: &mut Vec<Condition>) {
    if let Some(at) = conditions.iter().rposition(|condition| condition.holds) {
        let newest = conditions.remove(at);
        conditions.push(newest);
    }
}

fn update_suspended(job: &Told<'_>, plan: &Plan, prior: &Status, status: &mut Status, now: Time) {
    let (was, is) = (prior.stage == Stage::Suspended, status.stage == Stage::Suspended);
    if is && !was {
        // The newest version says so even of a job that never ran.
        if holds(status, RUNNING) || plan.told_as() == Dialect::KubeflowV2beta1 {
            job.set(status, RUNNING, false, "Suspended", "is suspended.", now);
        }
        let message = format!("{} suspended", job.kind);
        put(status, SUSPENDED, true, job.reason("Suspended"), message, now);
    } else if was && !is && !status.is_terminal() {
        let message = format!("{} resumed", job.kind);
        put(status, SUSPENDED, false, job.reason("Resumed"), message, now);
    }
}

fn update_ended(job: &Told<'_>, plan: &Plan, status: &mut Status, now: Time) {
    // Only the flag is turned: when it ran stays to be read.
    let mut ever_ran = false;
    for condition in &mut status.conditions {
        if condition.kind == RUNNING {
            condition.holds = false;
            ever_ran = true;
        }
    }
    let succeeded = status.end().is_some_and(|end| end.verdict == Verdict::Succeeded);
    if !ever_ran && plan.told_as() == Dialect::KubeflowV2beta1 {
        let (reason, ending) = if succeeded {
            ("Succeeded", "successfully completed.")
        } else {
            ("Failed", "has failed")
        };
        job.set(status, RUNNING, false, reason, ending, now);
    }
    if succeeded {
        job.set(status, SUCCEEDED, true, "Succeeded", "successfully completed.", now);
    } else {
        let (reason, message) = failure(job, plan, status);
        put(status, FAILED, true, reason, message, now);
    }
}

/// Reason and message of a failure. The oldest versions always say the same; the newest copies its launcher Job's words.
fn failure(job: &Told<'_>, plan: &Plan, status: &Status) -> (String, String) {
    let plain = format!("{} has failed", job.subject());
    let Some(end) = status.end() else {
        return (job.reason("Failed"), plain);
    };
    let evicted = end.cause == Some(Cause::Evicted);
    // No operator of theirs ever ended a job so: there are no words to keep.
    let imageless = end.reason == EndReason::ImageUnavailable;
    let pod_reason = pod_reason(plan, end);
    match plan.told_as() {
        Dialect::KubeflowV1alpha1 | Dialect::KubeflowV1alpha2 if !imageless => {
            (job.reason("Failed"), plain)
        }
        Dialect::KubeflowV1 if !evicted && !imageless => {
            (pod_reason.map_or_else(|| job.reason("Failed"), str::to_owned), plain)
        }
        Dialect::Unisono => {
            let rule = end.reason.text();
            let why = failure_sentence(plan, status)
                .map_or_else(|| rule.to_owned(), |it| format!("{it}; {rule}"));
            (format!("{:?}", end.reason), cut(why))
        }
        // Its launcher Job gives up on a launcher; workers have no Job.
        Dialect::KubeflowV2beta1 if pod_reason.is_some() => {
            let reason = format!("{BACKOFF}/{}", pod_reason.unwrap_or_default());
            (reason, cut(with_cause(BACKOFF_MESSAGE, failure_sentence(plan, status))))
        }
        _ if evicted => {
            let why = evicted_workers(plan, status).or_else(|| failure_sentence(plan, status));
            (job.reason("Evicted"), why.unwrap_or(plain))
        }
        _ => {
            let (reason, message) = match end.reason {
                EndReason::DeadlineExceeded => {
                    ("DeadlineExceeded", "Job was active longer than specified deadline")
                }
                EndReason::RetriesExhausted | EndReason::NotRetriable => (BACKOFF, BACKOFF_MESSAGE),
                EndReason::LostTooOften => {
                    ("GangRestartsExceeded", "hosts were lost more often than is allowed")
                }
                EndReason::ImageUnavailable => ("ImageUnavailable", end.reason.text()),
                EndReason::StopRequested | EndReason::Completed => {
                    ("Stopped", "somebody stopped it")
                }
            };
            let why = failure_sentence(plan, status);
            let why = why.filter(|_| end.reason != EndReason::DeadlineExceeded);
            (reason.to_owned(), cut(with_cause(message, why)))
        }
    }
}

fn with_cause(message: &str, why: Option<String>) -> String {
    why.map_or_else(|| message.to_owned(), |why| format!("{message}: {why}"))
}

/// The word that Kubernetes has on the pod of a launcher which the platform took away; other ends leave none there.
fn pod_reason(plan: &Plan, end: &End) -> Option<&'static str> {
    let by_launcher = end.by.and_then(|by| plan.host(by)).is_some_and(|it| it.runs.launches());
    match end.cause.filter(|_| by_launcher)? {
        Cause::Evicted => Some("Evicted"),
        Cause::Preempted => Some("Preempting"),
        Cause::NodeLost => Some("NodeLost"),
        Cause::Exited | Cause::OutOfMemory | Cause::CannotStart | Cause::Deleted => None,
    }
}

/// How many workers were evicted, where it was a worker that ended the job.
fn evicted_workers(plan: &Plan, status: &Status) -> Option<String> {
    let by = status.end()?.by?;
    if plan.host(by)?.runs.launches() {
        return None;
    }
    let group = by.group as usize;
    let workers = plan.job.groups.get(group)?.replicas;
    let evicted = status.groups.get(group)?.failed.clamp(1, workers);
    Some(format!("{evicted}/{workers} workers are evicted"))
}

fn cut(mut message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let mut at = LONGEST_MESSAGE - MARK_OF_A_CUT.len();
    while !message.is_char_boundary(at) {
        at -= 1;
    }
    message.truncate(at);
    message + MARK_OF_A_CUT
}

/// How a job is spoken of.
struct Told<'plan> {
    kind: &'static str,
    namespace: &'plan str,
    name: &'plan str,
}

impl<'plan> Told<'plan> {
    fn of(plan: &'plan Plan) -> Self {
        Self {
            kind: if plan.told_as().system() == System::Unisono { "UnisonoJob" } else { "MPIJob" },
            namespace: plan.namespace(),
            name: plan.job.name.as_str(),
        }
    }

    fn subject(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    fn reason(&self, ending: &str) -> String {
        format!("{}{ending}", self.kind)
    }

    fn set(
        &self,
        status: &mut Status,
        kind: &str,
        holds: bool,
        reason: &str,
        ending: &str,
        now: Time,
    ) {
        let message = format!("{} {ending}", self.subject());
        put(status, kind, holds, self.reason(reason), message, now);
    }
}

pub(super) fn happenings(plan: &Plan, prior: &Status, status: &Status) -> Vec<Happening> {
    let told: &[&str] = match plan.told_as() {
        Dialect::KubeflowV1alpha1 => &[],
        Dialect::KubeflowV1alpha2 => &[SUCCEEDED, FAILED],
        _ => &[CREATED, RUNNING, SUSPENDED, SUCCEEDED, FAILED],
    };
    let is_new = |condition: &&Condition| {
        let same = |old: &Condition| old.kind == condition.kind && old.reason == condition.reason;
        !prior.conditions.iter().any(same)
    };
    status
        .conditions
        .iter()
        .filter(|condition| told.contains(&condition.kind.as_str()))
        // That a job does not run is told by what it does instead; that it is not suspended any more is news, and so is that it
        // ran when it was never seen running.
        .filter(|condition| {
            let has_run = condition.kind == RUNNING && condition.reason.ends_with(RUNNING);
            condition.holds || condition.kind == SUSPENDED || has_run
        })
        .filter(is_new)
        .map(|condition| Happening {
            is_warning: condition.kind == FAILED,
            reason: condition.reason.clone(),
            // That operator ends the sentence only in the condition.
            message: match condition.kind.as_str() {
                RUNNING => condition.message.trim_end_matches('.').to_owned(),
                _ => condition.message.clone(),
            },
        })
        .collect()
}

/// Status of v1alpha1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct V1alpha1Status {
    /// What holds and what does not. Its own operator had none, but whoever asks for an MPIJob is shown it in a version that has.
    pub conditions: Vec<ConditionView>,
    /// `Active`, `Succeeded` or `Failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher_status: Option<&'static str>,
    /// Workers that are up.
    pub worker_replicas: u32,
    /// When the job began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
}

pub(super) fn v1alpha1(plan: &Plan, status: &Status) -> V1alpha1Status {
    let launcher_status = match (&status.stage, status.running_since) {
        (Stage::Ended(end), _) if end.verdict == Verdict::Succeeded => Some("Succeeded"),
        (Stage::Ended(_), _) => Some("Failed"),
        (_, Some(_)) => Some("Active"),
        (_, None) => None,
    };
    let workers = replicas(plan, status).remove("Worker").and_then(|worker| worker.active);
    V1alpha1Status {
        conditions: super::views(status),
        launcher_status,
        worker_replicas: workers.unwrap_or(0),
        start_time: status.started.map(|time| time.to_string()),
        completion_time: status.completed.map(|time| time.to_string()),
    }
}

/// Status of the versions with conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatusView {
    /// What holds and what does not.
    pub conditions: Vec<ConditionView>,
    /// Members by role.
    pub replica_statuses: BTreeMap<String, ReplicaView>,
    /// When the job began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
}

/// Members of a role; zeroes are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplicaView {
    /// Up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// Ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<u32>,
    /// Ended badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
}

pub(super) fn status(plan: &Plan, status: &Status) -> JobStatusView {
    JobStatusView {
        conditions: super::views(status),
        replica_statuses: replicas(plan, status),
        start_time: status.started.map(|time| time.to_string()),
        completion_time: status.completed.map(|time| time.to_string()),
    }
}

fn replicas(plan: &Plan, status: &Status) -> BTreeMap<String, ReplicaView> {
    let some = |count: u32| (count > 0).then_some(count);
    let groups = plan.job.groups.iter().zip(&status.groups);
    groups
        .map(|(group, counts)| {
            let launches = group.runs.launch_line().is_some();
            // Whoever frees a queue's room by this number must see it fall only when the members are gone.
            // A launcher's failures are counted over all its tries, as its Job counts them.
            let failed = if launches { status.failed_launches } else { counts.failed };
            let view = ReplicaView {
                active: some(if launches || status.is_at_rest() {
                    counts.existing
                } else {
                    counts.active
                }),
                succeeded: some(counts.succeeded),
                failed: some(failed),
            };
            (capitalised(&group.name), view)
        })
        .collect()
}

/// The keys are `Launcher` and `Worker`.
fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests;
