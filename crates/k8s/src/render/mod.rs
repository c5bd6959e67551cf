//! From a plan to objects: one file per kind, all of it pure. Names, hosts, numbers and texts are the plan's.

mod code;
mod config_map;
#[cfg(test)]
pub(crate) mod fixtures;
mod job;
mod kube_batch;
mod labels;
mod network_policy;
mod pod;
mod pod_group;
mod preview;
mod secret;
mod service;
mod start;
mod table;
mod template;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use unisono_job::{Dialect, Group, LaunchRights, MAX_LABEL, label_from};
use unisono_plan::{Host, Plan};

use crate::object::JobObject;
use crate::settings::Settings;
use crate::target::Resource;

pub(crate) use job::status as job_status;
pub use secret::MintError;
pub(crate) use table::{digest, is_large, key as table_key, table};

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
    /// The owner that a job object of that resource is.
    pub fn of(object: &JobObject, resource: Resource) -> Self {
        let resource = resource.for_owners(object.is_queued());
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
        }
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

    /// Whether a host's pod belongs to that batch Job. kube-batch's is about all pods.
    pub(crate) fn is_in_job(&self, host: &Host) -> bool {
        self.has_launcher_job() && (host.runs.launches() || self.is_kube_batch())
    }

    pub(crate) fn is_kube_batch(&self) -> bool {
        self.plan.job.dialect == Dialect::KubeBatch
    }

    /// Whose table a launching pod waits for: its own. Where everybody launches, all wait for the same one.
    pub(crate) fn table_identity<'pod>(&'pod self, pod_uid: &'pod str) -> &'pod str {
        if everybody_launches(self.plan) { &self.owner.uid } else { pod_uid }
    }

    /// The Secret with the agent's keys. Never the one with keys for ssh: another operator may have made that.
    pub(crate) fn agent_secret(&self) -> String {
        self.plan.names.ending("agent")
    }
}

/// Whether others start ranks or other commands on this host, so that its agent must answer.
pub(crate) fn answers(plan: &Plan, host: &Host) -> bool {
    (host.slots > 0 || everybody_launches(plan)) && !plan.reaches_by_ssh()
}

/// Whether every member may start commands on every other.
pub(crate) fn everybody_launches(plan: &Plan) -> bool {
    plan.job.launch_rights == LaunchRights::Everybody
}

/// The name under which a group's hosts have their key: one that fits Secrets and host tables.
pub(crate) fn key_name(group: &Group) -> String {
    label_from(&group.name, MAX_LABEL)
}
