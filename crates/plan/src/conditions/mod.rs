//! A job's status in the words of its own system: condition types, reasons, messages, states, events.

mod azure;
mod failure;
mod kube_batch;
mod kubeflow;
mod openpai;
mod unisono;

use serde::{Deserialize, Serialize};
use unisono_job::{Dialect, System};

use crate::{Plan, Status, Time, Why};

pub use azure::AzureStatus;
pub use kube_batch::{GroupCondition, GroupStatus, JobCondition, JobStatus, KubeBatchStatus};
pub use kubeflow::{JobStatusView, ReplicaView, V1alpha1Status};
pub use openpai::{JobState, OpenPaiStatus, TaskRoleStatus, TaskStatus};
pub use unisono::{MembersView, UnisonoStatus};

/// A condition of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What it is about.
    pub kind: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why, as one word.
    pub reason: String,
    /// Why, as a sentence.
    pub message: String,
    /// When it was last written.
    pub updated: Time,
    /// When it last changed between holding and not.
    pub changed: Time,
}

/// A condition as objects hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: &'static str,
    /// Why, as one word.
    pub reason: String,
    /// Why, as a sentence.
    pub message: String,
    /// When it was last written.
    pub last_update_time: String,
    /// When it last changed.
    pub last_transition_time: String,
}

/// The conditions as objects hold them.
fn views(status: &Status) -> Vec<ConditionView> {
    let conditions = status.conditions.iter().map(|condition| ConditionView {
        kind: condition.kind.clone(),
        status: if condition.holds { "True" } else { "False" },
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_update_time: condition.updated.to_string(),
        last_transition_time: condition.changed.to_string(),
    });
    conditions.collect()
}

/// The status of a job as its own system writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ObjectStatus {
    /// Azure ML.
    Azure(AzureStatus),
    /// OpenPAI.
    OpenPai(OpenPaiStatus),
    /// Kubeflow v1alpha1.
    V1alpha1(V1alpha1Status),
    /// Kubeflow's later versions.
    Conditions(JobStatusView),
    /// Unisono's own.
    Unisono(UnisonoStatus),
    /// kube-batch.
    KubeBatch(KubeBatchStatus),
}

/// Something that happened, as Kubernetes' events tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Happening {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// What, as one word.
    pub reason: String,
    /// What, as a sentence.
    pub message: String,
}

/// Why not all members of a job can be placed, in the platform's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced<'seen> {
    /// Nobody has room for one.
    NoRoom(&'seen str),
    /// The platform refuses to make them.
    NotMade(&'seen str),
}

/// Brings the conditions up to date with everything else in the status.
pub(crate) fn update(
    plan: &Plan,
    prior: &Status,
    status: &mut Status,
    unplaced: Option<Unplaced<'_>>,
    now: Time,
) {
    match plan.told_as().system() {
        System::Kubeflow | System::Unisono => kubeflow::update(plan, prior, status, now),
        System::KubeBatch => kube_batch::update(status, unplaced, now),
        System::AzureMl | System::OpenPai => {}
    }
}

/// Writes a condition. The same again writes nothing; the time of change moves only when it begins or ceases to hold.
fn put(status: &mut Status, kind: &str, holds: bool, reason: String, message: String, now: Time) {
    let old = status.conditions.iter().position(|condition| condition.kind == kind);
    let mut changed = now;
    if let Some(at) = old {
        let old = &status.conditions[at];
        if old.holds == holds && old.reason == reason {
            return;
        }
        if old.holds == holds {
            changed = old.changed;
        }
        status.conditions.remove(at);
    }
    let kind = kind.to_owned();
    status.conditions.push(Condition { kind, holds, reason, message, updated: now, changed });
}

fn holds(status: &Status, kind: &str) -> bool {
    status.conditions.iter().any(|condition| condition.kind == kind && condition.holds)
}

/// The status as the job's own system writes it.
pub fn object_status(plan: &Plan, status: &Status) -> ObjectStatus {
    match plan.told_as() {
        Dialect::AzureMpiJob | Dialect::AzureFlat | Dialect::AzureCommand => {
            ObjectStatus::Azure(azure::status(plan, status))
        }
        Dialect::OpenPaiV1 | Dialect::OpenPaiV2 => {
            ObjectStatus::OpenPai(openpai::status(plan, status))
        }
        Dialect::KubeflowV1alpha1 => ObjectStatus::V1alpha1(kubeflow::v1alpha1(plan, status)),
        Dialect::KubeflowV1alpha2 | Dialect::KubeflowV1 | Dialect::KubeflowV2beta1 => {
            ObjectStatus::Conditions(kubeflow::status(plan, status))
        }
        Dialect::Unisono => ObjectStatus::Unisono(unisono::status(plan, status)),
        Dialect::KubeBatch => ObjectStatus::KubeBatch(kube_batch::status(plan, status)),
    }
}

/// What happened between two statuses, as the job's own system tells it, after what only Unisono knows. Nothing for an
/// unchanged status.
pub fn happenings(plan: &Plan, prior: &Status, status: &Status) -> Vec<Happening> {
    let mut told = Vec::from_iter(failure::happening(plan, prior, status));
    if let Some(odd) = &status.odd_spread
        && prior.odd_spread.as_ref() != Some(odd)
    {
        told.push(warning(RANKS_ELSEWHERE, odd));
    }
    told.extend(match plan.told_as().system() {
        System::Kubeflow | System::Unisono => kubeflow::happenings(plan, prior, status),
        System::AzureMl | System::OpenPai | System::KubeBatch => {
            ended_happening(plan, prior, status)
        }
    });
    told
}

/// Warnings about what a job waits for and cannot wait away by itself. Of a host in trouble they are told once for each
/// kind of trouble: the numbers in it may change with every pod that finds a place. That the job is in its own way may be seen
/// later than the trouble itself, and is told once more.
pub fn warnings(told: &[String], why: &[Why]) -> Vec<Happening> {
    let is_news = |why: &&Why| {
        let Why::Stuck { host, reason, .. } = why else { return false };
        let trouble = reason.split(": ").next().unwrap_or_default();
        let is_known = |it: &&String| {
            it.starts_with(&format!("{host} "))
                && it.contains(trouble)
                && (names_holders(it) || !names_holders(reason))
        };
        !told.iter().any(|it| is_known(&it))
    };
    why.iter().filter(is_news).map(|why| warning("Waiting", &why.to_string())).collect()
}

/// Whether a reason says what the job's own hosts hold.
fn names_holders(reason: &str) -> bool {
    let last = reason.rsplit_once("; ").map_or("", |(_, last)| last);
    last.contains(" holds ") || last.contains(" of this job hold ")
}

/// Why ranks are not where they were planned, as one word.
const RANKS_ELSEWHERE: &str = "RanksElsewhere";

fn warning(reason: &str, message: &str) -> Happening {
    Happening { is_warning: true, reason: reason.to_owned(), message: message.to_owned() }
}

fn ended_happening(plan: &Plan, prior: &Status, status: &Status) -> Vec<Happening> {
    let (Some(end), None) = (status.end(), prior.end()) else {
        return Vec::new();
    };
    let failed = end.verdict == crate::Verdict::Failed;
    vec![Happening {
        is_warning: failed,
        reason: format!("{:?}", end.verdict),
        message: failure_sentence(plan, status).unwrap_or_else(|| "the job has ended".to_owned()),
    }]
}

/// What failed first, as a sentence with what is likely behind it.
pub fn first_failure(plan: &Plan, status: &Status) -> Option<String> {
    status.first_failure.as_ref().map(|failure| failure::sentence(plan, failure))
}

fn failure_sentence(plan: &Plan, status: &Status) -> Option<String> {
    first_failure(plan, status)
        .filter(|_| status.end().is_some_and(|end| end.verdict == crate::Verdict::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_once_though_its_numbers_change() {
        let stuck = |reason: &str| Why::Stuck {
            host: "pi-launcher".to_owned(),
            reason: reason.to_owned(),
            others: 1,
        };
        let first = stuck("it cannot be scheduled: 0/2 nodes are available");
        let told = [first.to_string()];
        assert_eq!(warnings(&[], &[first]).len(), 1);
        assert!(
            warnings(&told, &[stuck("it cannot be scheduled: 0/3 nodes are available")]).is_empty()
        );
        assert_eq!(
            warnings(&told, &[stuck("the image of main cannot be pulled: no such")]).len(),
            1
        );
        assert!(warnings(&[], &[Why::Suspended]).is_empty());
    }

    #[test]
    fn a_job_that_is_seen_to_be_in_its_own_way_is_told_once_more() {
        let stuck = |more: &str| Why::Stuck {
            host: "pi-launcher".to_owned(),
            reason: format!(
                "it cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu.{more}"
            ),
            others: 0,
        };
        let (alone, one, two) = (
            stuck(""),
            stuck("; pi-worker-0 holds 1 CPU"),
            stuck("; pi-worker-0 and 1 more hosts of this job hold 2 CPUs"),
        );
        let told = [alone.to_string()];
        let again = warnings(&told, std::slice::from_ref(&one));
        assert_eq!(again.len(), 1);
        assert!(again[0].message.ends_with("; pi-worker-0 holds 1 CPU"), "{again:?}");
        assert_eq!(warnings(&told, std::slice::from_ref(&two)).len(), 1);
        assert!(warnings(&[one.to_string()], &[two]).is_empty());
        assert!(warnings(&[one.to_string()], &[alone]).is_empty());
    }
}
