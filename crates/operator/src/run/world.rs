//! What the watches have seen of all jobs: their objects, pods and launcher Jobs.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::{Map, Value, json};
use unisono_k8s::slim::{Job, Pod};
use unisono_k8s::{Children, JobObject, marks};

use super::key::Key;
use super::shelf::Shelf;
use crate::resources::RESOURCES;

/// Something that a watch saw.
pub(crate) enum Seen {
    /// A job object, and its kind by its place among all kinds.
    Object(usize, Event<DynamicObject>),
    Pod(Event<Pod>),
    Job(Event<Job>),
}

/// Everything that was seen.
pub(crate) struct World {
    /// By kind.
    objects: Vec<Shelf<Arc<Kept>>>,
    pods: Shelf<Arc<Pod>>,
    jobs: Shelf<Arc<Job>>,
}

/// A job object as it was seen last: as text, because parsed it takes five times the memory, and it is looked at only now and then.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) uid: String,
    pub(crate) version: Option<String>,
    text: Box<str>,
}

/// One job as it was seen last.
pub(crate) struct Snapshot {
    pub(crate) kept: Arc<Kept>,
    pub(crate) children: Children,
}

impl Default for World {
    fn default() -> Self {
        let objects = RESOURCES.iter().map(|_| Shelf::default()).collect();
        Self { objects, pods: Shelf::default(), jobs: Shelf::default() }
    }
}

impl World {
    /// Takes in what was seen and tells which jobs may have changed.
    pub(crate) fn take(&mut self, seen: Seen) -> Vec<Key> {
        match seen {
            Seen::Object(kind, event) => {
                let (Some(shelf), Some(resource)) =
                    (self.objects.get_mut(kind), RESOURCES.get(kind))
                else {
                    return Vec::new();
                };
                shelf.take(event, |mut object| {
                    shed(object.managed_fields_mut());
                    let text = serde_json::to_string(&object).ok()?.into();
                    let (uid, version) = (object.uid()?, object.resource_version());
                    let kept = Arc::new(Kept { uid, version, text });
                    Some((Key::of_job(resource.kind, &object), object.name_any(), kept))
                })
            }
            Seen::Pod(event) => self.pods.take(event, |mut pod| {
                let key = Key::of_child(&pod)?;
                pod.shed();
                Some((key, pod.name_any(), Arc::new(pod)))
            }),
            Seen::Job(event) => self
                .jobs
                .take(event, |job| Some((Key::of_child(&job)?, job.name_any(), Arc::new(job)))),
        }
    }

    /// The job with its children; none when there is no such job.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let kept = self.objects.iter().find_map(|shelf| shelf.of(key).next())?.clone();
        let jobs: Vec<Arc<Job>> =
            self.jobs.of(key).filter(|job| belongs(&***job, &kept.uid, &[])).cloned().collect();
        let pods = self.pods.of(key).filter(|pod| belongs(&***pod, &kept.uid, &jobs));
        let children =
            Children { pods: pods.cloned().collect(), jobs: jobs.clone(), refused: None };
        Some(Snapshot { kept, children })
    }

    /// Whether everything that exists has been seen once.
    pub(crate) fn is_complete(&self) -> bool {
        let objects = self.objects.iter().all(Shelf::is_complete);
        objects && self.pods.is_complete() && self.jobs.is_complete()
    }

    /// How many jobs there are.
    pub(crate) fn jobs(&self) -> usize {
        self.objects.iter().map(Shelf::len).sum()
    }
}

impl Kept {
    /// The object, read again.
    pub(crate) fn object(&self) -> Option<JobObject> {
        JobObject::new(serde_json::from_str(&self.text).ok()?).ok()
    }
}

/// Drops what takes memory and is not read of who wrote what. Who wrote which part of its spec, and in which version, may be asked for;
/// who wrote what is in those parts, or its status, never.
fn shed(managers: &mut [ManagedFieldsEntry]) {
    for entry in managers {
        let fields = entry.fields_v1.take().filter(|_| entry.subresource.is_none());
        let spec = fields.as_ref().and_then(|fields| fields.0.get("f:spec")?.as_object());
        entry.fields_v1 = spec.map(|spec| {
            let parts: Map<String, Value> =
                spec.keys().map(|part| (part.clone(), json!({}))).collect();
            FieldsV1(json!({"f:spec": parts}))
        });
    }
}

/// Whether a child is this job's and not that of an earlier job of the same name: its mark says so or, where another
/// operator made it, its owner.
fn belongs(child: &impl ResourceExt, uid: &str, jobs: &[Arc<Job>]) -> bool {
    if let Some(marked) = child.labels().get(marks::JOB_UID) {
        return marked == uid;
    }
    let is_owner = |owner: &str| {
        owner == uid || jobs.iter().any(|job| job.metadata.uid.as_deref() == Some(owner))
    };
    child.owner_references().iter().any(|owner| is_owner(&owner.uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_object(uid: &str) -> Seen {
        let object = json!({
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
            "metadata": {"name": "a", "namespace": "lab", "uid": uid},
        });
        Seen::Object(0, Event::Apply(serde_json::from_value(object).unwrap()))
    }

    fn metadata(name: &str, mark: Option<&str>, owner: &str) -> Value {
        let mut labels = json!({"training.kubeflow.org/job-name": "a"});
        if let Some(mark) = mark {
            labels[marks::JOB_UID] = mark.into();
        }
        json!({
            "name": name, "namespace": "lab", "uid": format!("uid of {name}"), "labels": labels,
            "ownerReferences": [{"apiVersion": "x", "kind": "X", "name": "x", "uid": owner}],
        })
    }

    fn seen_pod(name: &str, mark: Option<&str>, owner: &str) -> Seen {
        let pod = json!({"metadata": metadata(name, mark, owner)});
        Seen::Pod(Event::Apply(serde_json::from_value(pod).unwrap()))
    }

    #[test]
    fn children_are_found_by_mark_or_owner_and_never_those_of_a_namesake() {
        let mut world = World::default();
        let key = world.take(seen_object("1")).remove(0);
        world.take(seen_pod("marked", Some("1"), "1"));
        world.take(seen_pod("of-an-earlier-job", Some("0"), "0"));
        world.take(seen_pod("adopted", None, "1"));
        world.take(seen_pod("launched", None, "uid of a-launcher"));
        world.take(seen_pod("foreign", None, "2"));
        let job = json!({"metadata": metadata("a-launcher", None, "1")});
        world.take(Seen::Job(Event::Apply(serde_json::from_value(job).unwrap())));
        let names = |world: &World| -> Vec<String> {
            let children = world.snapshot(&key).unwrap().children;
            children.pods.iter().map(|pod| pod.name_any()).collect()
        };
        assert_eq!(names(&world), ["adopted", "launched", "marked"]);

        world.take(seen_object("0"));
        assert_eq!(names(&world), ["of-an-earlier-job"]);
    }

    #[test]
    fn the_version_that_a_job_was_written_in_is_still_known() {
        let object = json!({
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
            "metadata": {
                "name": "a", "namespace": "lab", "uid": "1",
                "managedFields": [
                    {"apiVersion": "kubeflow.org/v2beta1", "subresource": "status", "fieldsV1": {"f:status": {}}},
                    {"apiVersion": "kubeflow.org/v1", "fieldsV1": {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {}}}}},
                ],
            },
            "spec": {"mpiReplicaSpecs": {}},
        });
        let mut world = World::default();
        let seen = Seen::Object(0, Event::Apply(serde_json::from_value(object).unwrap()));
        let key = world.take(seen).remove(0);
        let object = world.snapshot(&key).unwrap().kept.object().unwrap();
        let written = object.read(&unisono_dialect::Options::default()).dialect;
        assert_eq!(written, Some(unisono_job::Dialect::KubeflowV1));
        let managed = &object.as_json()["metadata"]["managedFields"];
        assert_eq!(managed[0].get("fieldsV1"), None, "{managed}");
        assert_eq!(managed[1]["fieldsV1"], json!({"f:spec": {"f:mpiReplicaSpecs": {}}}));
    }

    #[test]
    fn jobs_of_the_same_name_and_different_kinds_are_two() {
        let mut world = World::default();
        let of_kind = |at: usize, uid: &str| {
            let resource = &RESOURCES[at];
            let object = json!({
                "apiVersion": format!("{}/v1", resource.group), "kind": resource.kind,
                "metadata": {"name": "a", "namespace": "lab", "uid": uid},
            });
            Seen::Object(at, Event::Apply(serde_json::from_value(object).unwrap()))
        };
        let keys: Vec<Key> =
            (0..RESOURCES.len()).flat_map(|at| world.take(of_kind(at, &at.to_string()))).collect();
        assert_eq!((keys.len(), world.jobs()), (RESOURCES.len(), RESOURCES.len()));
        let owner = json!({
            "apiVersion": "unisono.dev/v1alpha1", "kind": "UnisonoJob", "name": "a", "uid": "1",
        });
        let metadata = json!({
            "name": "a-worker-0", "namespace": "lab", "labels": {marks::JOB_UID: "1"},
            "ownerReferences": [owner],
        });
        let pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let touched = world.take(Seen::Pod(Event::Apply(pod)));
        assert_eq!(touched.iter().map(|key| key.kind).collect::<Vec<_>>(), ["UnisonoJob"]);
        let pods = |key: &Key| world.snapshot(key).unwrap().children.pods.len();
        assert_eq!(keys.iter().map(pods).sum::<usize>(), 1);
        assert_eq!(pods(&touched[0]), 1);
    }
}
