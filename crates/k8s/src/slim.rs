//! The parts of Kubernetes objects that are read, and nothing else: what a watch keeps in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize};

use crate::marks;

/// The labels that are read of pods that we made: whose they are, and which they are.
const READ_LABELS: [&str; 5] =
    [marks::JOB_UID, marks::JOB_NAME, marks::MEMBER, marks::EPOCH, marks::ROLE];

/// The conditions of pods that are read. The others change along with these.
const READ_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "DisruptionTarget"];

/// Says which API a slim type is a part of.
macro_rules! resource {
    ($type:ident, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Pod, "", "v1", "Pod", "pods");
resource!(Job, "batch", "v1", "Job", "jobs");

/// Reads what is read of metadata. Managed fields are its larger part, and cost more to read than all the rest of a pod.
pub(crate) fn without_managed_fields<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Read {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let read = Read::deserialize(from)?;
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        labels: read.labels,
        annotations: read.annotations,
        owner_references: read.owner_references,
        ..ObjectMeta::default()
    })
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// Name, labels, annotations, owners.
    #[serde(deserialize_with = "without_managed_fields")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(default)]
    pub spec: PodSpec,
    /// What became of it.
    #[serde(default)]
    pub status: PodStatus,
}

/// The part of a pod's spec that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its node, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Seconds after its start when the kubelet ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
}

/// The part of a pod's status that is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Its address.
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// Why it is so, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When a kubelet took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// What holds and what does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Its containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
    /// Its init containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod or a Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// A container's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// Its image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// How far it is.
    pub state: ContainerState,
}

/// How far a container is: one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Started and not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
    /// Ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
}

/// A container that has not started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// Why, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A container that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}

/// A container that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// With which code.
    pub exit_code: i32,
    /// Why, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its last words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// A batch Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Name, labels, annotations, owners.
    #[serde(deserialize_with = "without_managed_fields")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(default)]
    pub spec: JobSpec,
    /// What became of it.
    #[serde(default)]
    pub status: JobStatus,
}

/// The part of a Job's spec that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// Who manages it; the built-in controller when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// The part of a Job's status that is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// Pods that have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// Pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<u32>,
    /// Pods that ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<u32>,
    /// Pods that ended badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// `Complete`, `Failed` and what goes before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl Pod {
    /// Drops what takes memory and is not read, once it is known whose pod it is.
    pub fn shed(&mut self) {
        let is_ours = !self.is_adopted();
        let (metadata, status) = (&mut self.metadata, &mut self.status);
        if is_ours {
            metadata.owner_references = None;
            retain(&mut metadata.labels, |name| READ_LABELS.contains(&name));
        }
        // Of several containers one counts. Of a host table the digest is enough.
        let has_choice = status.container_statuses.len() > 1;
        retain(&mut metadata.annotations, |name| match name {
            marks::TABLE => false,
            marks::DEFAULT_CONTAINER => has_choice,
            _ => name.starts_with("unisono.dev/"),
        });
        // When a pod ended is told by the last of its conditions that changed.
        let is_over = matches!(status.phase.as_str(), "Failed" | "Succeeded");
        status.conditions.retain(|it| {
            READ_CONDITIONS.contains(&it.kind.as_str()) && (is_over || it.says_something())
        });
        status.conditions.shrink_to_fit();
        for container in status.containers_mut() {
            if container.state.waiting.is_none() {
                container.image = String::new();
            }
        }
    }

    /// Whether another operator made it.
    pub(crate) fn is_adopted(&self) -> bool {
        self.label(marks::MEMBER).is_none()
    }

    /// Its owner of this kind.
    pub(crate) fn owner(&self, kind: &str) -> Option<&OwnerReference> {
        self.metadata.owner_references.as_ref()?.iter().find(|owner| owner.kind == kind)
    }

    /// A label's value.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// An annotation's value.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub(crate) const fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// Keeps what is read of labels or annotations; an empty map would keep its memory.
fn retain(map: &mut Option<BTreeMap<String, String>>, is_read: impl Fn(&str) -> bool) {
    let read = map.take().unwrap_or_default().into_iter().filter(|(name, _)| is_read(name));
    *map = Some(read.collect::<BTreeMap<_, _>>()).filter(|read| !read.is_empty());
}

impl Condition {
    /// Whether it is not as it is in every pod that is well.
    fn says_something(&self) -> bool {
        self.status != "True" || self.kind == "DisruptionTarget"
    }
}

impl PodStatus {
    fn containers_mut(&mut self) -> impl Iterator<Item = &mut ContainerStatus> {
        self.init_container_statuses.iter_mut().chain(&mut self.container_statuses)
    }
}

impl Job {
    /// A Job that this program has just made.
    pub(crate) fn made(metadata: ObjectMeta) -> Self {
        let spec = JobSpec { managed_by: Some(marks::MANAGER.to_owned()) };
        Self { metadata, spec, status: JobStatus::default() }
    }

    /// Whether this program manages it.
    pub(crate) fn is_ours(&self) -> bool {
        self.spec.managed_by.as_deref() == Some(marks::MANAGER)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str) -> Pod {
        let json = json!({
            "metadata": {
                "labels": {marks::MEMBER: "1.0", marks::EPOCH: "0", "app": "x"},
                "annotations": {marks::TABLE: "long", marks::RELEASED: "7", "of/others": "x"},
                "ownerReferences": [{"apiVersion": "x", "kind": "X", "name": "x", "uid": "1"}],
            },
            "status": {
                "phase": phase,
                "conditions": [
                    {"type": "Initialized", "status": "True"},
                    {"type": "Ready", "status": "False"},
                    {"type": "PodScheduled", "status": "True"},
                ],
                "containerStatuses": [
                    {"name": "a", "image": "x", "state": {"running": {}}},
                    {"name": "b", "image": "y", "state": {"waiting": {"reason": "ErrImagePull"}}},
                ],
            },
        });
        serde_json::from_value(json).unwrap()
    }

    fn conditions(pod: &Pod) -> Vec<&str> {
        pod.status.conditions.iter().map(|it| it.kind.as_str()).collect()
    }

    #[test]
    fn what_nobody_reads_takes_no_memory() {
        let mut pod = pod("Running");
        pod.shed();
        assert_eq!((pod.label(marks::MEMBER), pod.label("app")), (Some("1.0"), None));
        assert_eq!(
            (pod.annotation(marks::RELEASED), pod.annotation("of/others")),
            (Some("7"), None)
        );
        assert_eq!((pod.annotation(marks::TABLE), pod.owner("X")), (None, None));
        assert_eq!(conditions(&pod), ["Ready"]);
        let images = pod.status.container_statuses.iter().map(|it| it.image.as_str());
        assert_eq!(Vec::from_iter(images), ["", "y"], "of one that waits it may be asked");
    }

    #[test]
    fn which_container_counts_is_kept_where_there_are_several() {
        let kept = |count: usize| {
            let mut pod = pod("Running");
            let main = (marks::DEFAULT_CONTAINER.to_owned(), "b".to_owned());
            pod.metadata.annotations.as_mut().unwrap().extend([main]);
            pod.status.container_statuses.truncate(count);
            pod.shed();
            pod.annotation(marks::DEFAULT_CONTAINER).is_some()
        };
        assert_eq!([kept(1), kept(2)], [false, true]);
    }

    #[test]
    fn the_conditions_of_a_pod_that_is_over_tell_when_it_ended() {
        let mut pod = pod("Failed");
        pod.shed();
        assert_eq!(conditions(&pod), ["Ready", "PodScheduled"]);
    }

    #[test]
    fn a_pod_of_another_operator_is_known_by_its_labels_and_owners() {
        let mut pod = pod("Running");
        pod.metadata.labels.as_mut().unwrap().remove(marks::MEMBER);
        pod.shed();
        assert_eq!(pod.label("app"), Some("x"));
        assert!(pod.owner("X").is_some());
    }

    #[test]
    fn managed_fields_are_not_even_read() {
        let metadata =
            json!({"name": "a", "labels": {"l": "1"}, "managedFields": "no list at all"});
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        assert_eq!((pod.name(), pod.label("l")), ("a", Some("1")));
        assert_eq!(pod.metadata.managed_fields, None);
    }
}
