//! One job object of a cluster: who it is, the job it holds, and the status written on it.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;
use unisono_dialect::{Options, Reading, read_object};
use unisono_job::Dialect;
use unisono_plan::Facts;

use crate::marks;
use crate::settings::Settings;
use crate::target::Resource;

/// A job object, as an API server gave it. A clone of it shares its JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct JobObject {
    object: Arc<Value>,
    name: String,
    namespace: String,
    uid: String,
}

/// Why something cannot be a job object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object has no {0}: no API server gave it")]
pub struct NotAJob(&'static str);

impl JobObject {
    /// Takes an object as it is.
    ///
    /// # Errors
    ///
    /// When it has no name, namespace or uid.
    pub fn new(object: Value) -> Result<Self, NotAJob> {
        let text = |pointer: &str, what| {
            let text = object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            text.filter(|text| !text.is_empty()).ok_or(NotAJob(what))
        };
        Ok(Self {
            name: text("/metadata/name", "name")?,
            namespace: text("/metadata/namespace", "namespace")?,
            uid: text("/metadata/uid", "uid")?,
            object: object.into(),
        })
    }

    /// Takes an object as a watch has it.
    ///
    /// # Errors
    ///
    /// When it has no name, namespace or uid.
    pub fn from_dynamic(object: &DynamicObject) -> Result<Self, NotAJob> {
        Self::new(serde_json::to_value(object).map_err(|_| NotAJob("JSON form"))?)
    }

    /// Reads the job out of it, by the same reader as a file's. Faults carry the path of the value they are about.
    pub fn read(&self, options: &Options) -> Reading {
        read_object(&self.object, options)
    }

    /// What a plan of its job needs to know.
    pub fn facts(&self, settings: &Settings) -> Facts {
        let told_as = self.is_a(&Resource::UNISONO).then_some(Dialect::Unisono);
        let facts = settings.facts(&self.namespace);
        Facts {
            told_as,
            user: self.annotation(marks::USER).map_or(facts.user, str::to_owned),
            virtual_cluster: self.annotation(marks::VIRTUAL_CLUSTER).map(str::to_owned),
            ..facts
        }
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.object.pointer("/metadata/annotations")?.get(name)?.as_str()
    }

    /// The resource through which it is written: that of the version it was written in. A `UnisonoJob` is one whatever dialect
    /// its job was written for.
    pub fn resource(&self, dialect: Dialect) -> Option<Resource> {
        match self.is_a(&Resource::UNISONO) {
            true => Some(Resource::UNISONO),
            false => Resource::of(dialect),
        }
    }

    /// The resource that it says it is of: its kind, in the version that it is shown in.
    pub fn own_resource(&self) -> Option<Resource> {
        Dialect::ALL.into_iter().filter_map(Resource::of).find(|it| self.is_a(it))
    }

    fn is_a(&self, resource: &Resource) -> bool {
        let is = |key: &str, value: &str| self.object.get(key).is_some_and(|it| it == value);
        is("kind", resource.kind) && is("apiVersion", &resource.api_version())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What tells it from an earlier object of the same name.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Counts the changes of its spec.
    pub fn generation(&self) -> u64 {
        self.object.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or(1)
    }

    /// Counts all its changes, for its writers only.
    pub fn resource_version(&self) -> Option<&str> {
        self.object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
    }

    /// Whether it is being deleted.
    pub fn is_going(&self) -> bool {
        self.object.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null())
    }

    /// Whether a queue of Kueue's lets it run. No job that Kueue manages runs without the label.
    pub(crate) fn is_queued(&self) -> bool {
        self.object.pointer("/metadata/labels").is_some_and(|it| it.get(marks::QUEUE).is_some())
    }

    /// Whether somebody asks to stop the job.
    pub fn asks_to_stop(&self) -> bool {
        let annotations = self.object.pointer("/metadata/annotations");
        annotations.and_then(|it| it.get(marks::STOP)).is_some_and(|it| it != "false")
    }

    /// Its status, as it stands.
    pub fn status(&self) -> &Value {
        self.object.get("status").unwrap_or(&Value::Null)
    }

    /// Whether another operator has begun to carry the job out, and this one has not looked at it yet.
    pub fn is_inherited(&self) -> bool {
        let status = self.status();
        let begun = ["conditions", "startTime", "launcherStatus"];
        status.get("unisono").is_none() && begun.iter().any(|key| status.get(*key).is_some())
    }

    /// All of it.
    pub fn as_json(&self) -> &Value {
        &self.object
    }
}
