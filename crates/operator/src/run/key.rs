//! Which job something is about.

use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use unisono_job::{MAX_LABEL, label_from};

/// The label of every pod and Job of any operator for MPIJobs that names its job.
const JOB_NAME: &str = "training.kubeflow.org/job-name";

/// A job's place in the cluster. Its name is the one that labels can hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// The key of a job object.
    pub(crate) fn of_job(object: &impl ResourceExt) -> Self {
        Self::new(object, &label_from(&object.name_any(), MAX_LABEL))
    }

    /// The key of the job that a child belongs to.
    pub(crate) fn of_child(child: &impl ResourceExt) -> Option<Self> {
        let name = child.labels().get(JOB_NAME)?;
        Some(Self::new(child, name))
    }

    fn new(object: &impl ResourceExt, name: &str) -> Self {
        Self { namespace: object.namespace().unwrap_or_default().into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}
