//! Which job something is about.

use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use unisono_job::{MAX_LABEL, label_from};
use unisono_k8s::marks;

use crate::resources::{RESOURCES, Resource};

/// The kind of jobs that other operators left.
const INHERITED: &str = "MPIJob";

/// A job's place in the cluster. Its name is the one that labels can hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) kind: &'static str,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// The key of a job object.
    pub(crate) fn of_job(kind: &'static str, object: &impl ResourceExt) -> Self {
        Self::new(kind, object, &object.name_any())
    }

    /// The key of the job that a child belongs to: its owner. A launcher that another operator made is owned by its Job; there a
    /// label tells.
    pub(crate) fn of_child(child: &impl ResourceExt) -> Option<Self> {
        for owner in child.owner_references() {
            let is_owner = |it: &&Resource| {
                let group = owner.api_version.split('/').next();
                it.kind == owner.kind && group == Some(it.group)
            };
            if let Some(resource) = RESOURCES.iter().find(is_owner) {
                return Some(Self::new(resource.kind, child, &owner.name));
            }
        }
        let name = child.labels().get(marks::JOB_NAME)?;
        Some(Self::new(INHERITED, child, name))
    }

    fn new(kind: &'static str, object: &impl ResourceExt, name: &str) -> Self {
        let namespace = object.namespace().unwrap_or_default().into();
        Self { kind, namespace, name: label_from(name, MAX_LABEL).into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
