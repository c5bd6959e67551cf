//! Jobs of each kind, and where they say what lives change.

use serde_json::{Value, json};

use crate::settings::{GangScheduler, Settings};
use crate::target::{Resource, kubeflow};

/// A kind of job, and where its objects have what is changed in a life.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) resource: Resource,
    pub(super) settings: Settings,
    pub(super) spec: Value,
    /// The number of workers.
    pub(super) sizes: Vec<&'static str>,
    pub(super) suspend: &'static str,
    pub(super) ttl: &'static str,
    /// The image of the launcher.
    pub(super) image: &'static str,
}

fn settings() -> Settings {
    Settings::new("example.org/unisono:1")
}

fn container(command: &[&str]) -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": "lab/pi:1", "command": command}]}})
}

/// A launcher and two workers of Kubeflow.
fn replicas() -> Value {
    json!({
        "Launcher": {"restartPolicy": "OnFailure", "template": container(&["mpirun", "/pi"])},
        "Worker": {"replicas": 2, "template": container(&["sleep", "infinity"])},
    })
}

fn mpi_job(name: &'static str, version: &'static str, run_policy: &Value) -> Kind {
    Kind {
        name,
        resource: kubeflow(version),
        settings: settings(),
        spec: json!({"runPolicy": run_policy, "mpiReplicaSpecs": replicas()}),
        sizes: vec!["/spec/mpiReplicaSpecs/Worker/replicas"],
        suspend: "/spec/runPolicy/suspend",
        ttl: "/spec/runPolicy/ttlSecondsAfterFinished",
        image: "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/image",
    }
}

pub(super) fn v1() -> Kind {
    mpi_job("v1", "v1", &json!({"cleanPodPolicy": "Running", "backoffLimit": 1}))
}

pub(super) fn v2beta1() -> Kind {
    mpi_job("v2beta1", "v2beta1", &json!({"cleanPodPolicy": "All", "backoffLimit": 1}))
}

/// One that is placed all at once.
pub(super) fn gang() -> Kind {
    let scheduler = "scheduler-plugins-scheduler".to_owned();
    let gang = GangScheduler::SchedulerPlugins { scheduler };
    let kind =
        mpi_job("gang's", "v2beta1", &json!({"cleanPodPolicy": "Running", "backoffLimit": 1}));
    Kind { settings: Settings { gang, ..settings() }, ..kind }
}

/// One with two groups of workers, and a NetworkPolicy.
pub(super) fn unisono() -> Kind {
    let group = |name: &str, replicas: u32| json!({"name": name, "replicas": replicas, "image": "lab/pi:1"});
    let launcher = json!({
        "name": "launcher", "run": "Launch", "image": "lab/pi:1", "script": "mpirun ./pi",
    });
    Kind {
        name: "Unisono",
        resource: Resource::UNISONO,
        settings: Settings { network_policy: true, ..settings() },
        spec: json!({
            "groups": [launcher, group("model", 2), group("observer", 1)],
            "policies": {"backoffLimit": 1},
        }),
        sizes: vec!["/spec/groups/1/replicas"],
        suspend: "/spec/policies/suspend",
        ttl: "/spec/policies/ttlSecondsAfterFinished",
        image: "/spec/groups/0/image",
    }
}

pub(super) fn kube_batch() -> Kind {
    let template = container(&["mpirun", "/pi"]);
    let spec = json!({"completions": 2, "parallelism": 2, "backoffLimit": 1, "template": template});
    Kind {
        name: "kube-batch",
        resource: Resource::KUBE_BATCH,
        settings: settings(),
        spec: json!({
            "job": {"apiVersion": "batch/v1", "kind": "Job", "spec": spec},
            "podGroup": {"spec": {"minMember": 2}},
        }),
        sizes: vec![
            "/spec/job/spec/completions",
            "/spec/job/spec/parallelism",
            "/spec/podGroup/spec/minMember",
        ],
        suspend: "/spec/job/spec/suspend",
        ttl: "/spec/job/spec/ttlSecondsAfterFinished",
        image: "/spec/job/spec/template/spec/containers/0/image",
    }
}
