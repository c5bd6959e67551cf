//! From a plan to objects: one file per kind, all of it pure. Names, hosts, numbers and texts are the plan's.

mod config_map;
#[cfg(test)]
pub(crate) mod fixtures;
mod job;
mod labels;
mod pod;
mod pod_group;
mod secret;
mod service;
mod start;
mod table;
mod template;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use unisono_job::Dialect;
use unisono_plan::{Host, Plan};

use crate::object::JobObject;
use crate::settings::Settings;
use crate::target::Resource;

pub(crate) use job::status as job_status;
pub use secret::MintError;
pub(crate) use table::{KEY as TABLE_KEY, digest, is_large, table};

/// Everything that objects of one job are rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Rendering<'job> {
    /// The plan.
    pub plan: &'job Plan,
    /// The cluster's settings.
    pub settings: &'job Settings,
    /// Whose objects they are.
    pub owner: &'job Owner,
}

/// The job object that owns all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its group and version, as owner references say it.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl Owner {
    /// The owner that a job object of that dialect is.
    pub fn of(object: &JobObject, dialect: Dialect) -> Option<Self> {
        let resource = Resource::of(dialect)?.for_owners();
        Some(Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
        })
    }

    fn reference(&self, controls: bool) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": controls,
        })
    }
}

impl Rendering<'_> {
    /// Metadata of an object that the job owns.
    fn metadata(&self, name: &str, labels: Map<String, Value>) -> Value {
        json!({
            "name": name,
            "namespace": self.plan.namespace(),
            "labels": labels,
            "ownerReferences": [self.owner.reference(true)],
        })
    }

    /// Whether the launcher's pods belong to a batch Job: v1's is a pod by itself.
    pub(crate) fn has_launcher_job(&self) -> bool {
        self.plan.launch_host().is_some() && self.plan.job.dialect != Dialect::KubeflowV1
    }

    /// The Secret with the job's keys.
    pub(crate) fn secret_name(&self) -> String {
        match self.plan.job.dialect {
            Dialect::KubeflowV2beta1 => self.plan.names.ssh_secret(),
            _ => self.plan.names.ending("agent"),
        }
    }
}

/// Whether others start ranks on this host, so that its agent must answer.
pub(crate) fn answers(plan: &Plan, host: &Host) -> bool {
    host.slots > 0 && !plan.reaches_by_ssh()
}
