//! A job's status in the words of its own system: condition types, reasons, messages, states, events.

mod azure;
mod kube_batch;
mod kubeflow;
mod openpai;

use serde::{Deserialize, Serialize};
use unisono_job::{Dialect, System};

use crate::{Plan, Status, Time};

pub use azure::AzureStatus;
pub use kube_batch::{GroupStatus, JobCondition, JobStatus, KubeBatchStatus};
pub use kubeflow::{ConditionView, JobStatusView, ReplicaView, V1alpha1Status};
pub use openpai::{JobState, OpenPaiStatus, TaskRoleStatus, TaskStatus};

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
    /// Kubeflow's later versions, and Unisono's own.
    Conditions(JobStatusView),
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

/// Brings the conditions up to date with everything else in the status.
pub(crate) fn update(plan: &Plan, prior: &Status, status: &mut Status, now: Time) {
    match plan.job.dialect.system() {
        System::Kubeflow | System::Unisono => kubeflow::update(plan, prior, status, now),
        System::AzureMl | System::OpenPai | System::KubeBatch => {}
    }
}

/// The status as the job's own system writes it.
pub fn object_status(plan: &Plan, status: &Status) -> ObjectStatus {
    match plan.job.dialect {
        Dialect::AzureMpiJob | Dialect::AzureFlat | Dialect::AzureCommand => {
            ObjectStatus::Azure(azure::status(plan, status))
        }
        Dialect::OpenPaiV1 | Dialect::OpenPaiV2 => {
            ObjectStatus::OpenPai(openpai::status(plan, status))
        }
        Dialect::KubeflowV1alpha1 => ObjectStatus::V1alpha1(kubeflow::v1alpha1(plan, status)),
        Dialect::KubeflowV1alpha2
        | Dialect::KubeflowV1
        | Dialect::KubeflowV2beta1
        | Dialect::Unisono => ObjectStatus::Conditions(kubeflow::status(plan, status)),
        Dialect::KubeBatch => ObjectStatus::KubeBatch(kube_batch::status(plan, status)),
    }
}

/// What happened between two statuses, as the job's own system tells it. Nothing for an unchanged status.
pub fn happenings(plan: &Plan, prior: &Status, status: &Status) -> Vec<Happening> {
    match plan.job.dialect.system() {
        System::Kubeflow | System::Unisono => kubeflow::happenings(plan, prior, status),
        System::AzureMl | System::OpenPai | System::KubeBatch => ended_happening(prior, status),
    }
}

fn ended_happening(prior: &Status, status: &Status) -> Vec<Happening> {
    let (Some(end), None) = (status.end(), prior.end()) else {
        return Vec::new();
    };
    let failed = end.verdict == crate::Verdict::Failed;
    vec![Happening {
        is_warning: failed,
        reason: format!("{:?}", end.verdict),
        message: failure_sentence(status).unwrap_or_else(|| "the job has ended".to_owned()),
    }]
}

/// What failed first, where the job failed.
fn failure_sentence(status: &Status) -> Option<String> {
    let end = status.end()?;
    (end.verdict == crate::Verdict::Failed)
        .then(|| status.first_failure.as_ref().map(crate::Failure::sentence))?
}
