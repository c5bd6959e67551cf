//! Jobs that another operator began, as each of its versions left them: they are taken over while they run, nothing of them starts
//! again, and what goes with their end goes.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::operator::Start;
use crate::story::{PATIENCE, Story, holds, job, tell_alone};

/// A moment before any of these jobs were made.
const BEGUN: &str = "2026-01-01T12:00:00Z";

pub(crate) fn goes_on(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "adopted", |story| {
        for version in ["v2beta1", "v1", "v1alpha2"] {
            Left { story, version, name: format!("old-{version}") }.make()?;
        }
        let before = pods(story)?;
        ensure!(before.len() == 9, "{before:?}");
        let operator = story.operator(&Start::default())?;
        for version in ["v2beta1", "v1", "v1alpha2"] {
            let name = format!("old-{version}");
            story.until(&name, "taken over", |job| job["status"]["unisono"].is_object())?;
            ensure!(holds(&story.get(&name)?, "Running"), "{}", story.get(&name)?["status"]);
        }
        ensure!(pods(story)? == before, "pods were made or removed: {:?}", pods(story)?);
        for version in ["v2beta1", "v1", "v1alpha2"] {
            let name = format!("old-{version}");
            let launcher = before.iter().map(|(pod, _)| pod);
            let launcher = launcher.clone().find(|it| it.starts_with(&format!("{name}-launcher")));
            let launcher = launcher.context("no launcher")?;
            story.kubectl(&["exec", launcher, "--", "touch", "/tmp/go"])?;
            let ended = story.succeeds(&name)?;
            let status = &ended["status"]["unisono"];
            ensure!(status["epoch"] == 0 && status["failed_launches"] == 0, "{status}");
        }
        wait::until(PATIENCE, "all workers to be gone", || {
            let left = pods(story)?;
            Ok(left.iter().all(|(name, _)| name.contains("-launcher")).then_some(()))
        })?;
        let left = pods(story)?;
        ensure!(left.len() == 3 && left.iter().all(|pod| before.contains(pod)), "{left:?}");
        let sets = cluster.api().get(&story.path("/apis/apps/v1", "statefulsets"))?;
        ensure!(sets["items"].as_array().is_some_and(Vec::is_empty), "{sets}");
        operator.terminate()
    })
}

/// Names and uids of all pods.
fn pods(story: &Story<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let list = story.cluster.api().get(&story.path("/api/v1", "pods"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = list["items"].as_array().context("no list")?;
    let mut pods: Vec<(String, String)> = pods
        .iter()
        .map(|it| (text(&it["metadata"]["name"]), text(&it["metadata"]["uid"])))
        .collect();
    pods.sort();
    Ok(pods)
}

/// A job as its operator has left it.
struct Left<'story> {
    story: &'story Story<'story>,
    version: &'static str,
    name: String,
}

impl Left<'_> {
    /// Makes the job and all its objects, and returns when its pods run.
    fn make(&self) -> anyhow::Result<()> {
        let Self { story, version, name } = self;
        let mut object = job(version, name, "mpirun /x");
        match *version {
            "v2beta1" => object["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"}),
            _ => object["spec"]["cleanPodPolicy"] = json!("Running"),
        }
        let uid = story.create(&object)?["metadata"]["uid"].clone();
        let owners = json!([{
            "apiVersion": format!("kubeflow.org/{version}"), "kind": "MPIJob", "name": name, "uid": uid,
            "controller": true,
        }]);
        let core = "/api/v1";
        self.object(
            core,
            "configmaps",
            "config",
            &owners,
            json!({"data": {"hostfile": "as it was"}}),
        )?;
        let launcher = spec("OnFailure", "until test -e /tmp/go; do sleep 0.2; done");
        let template =
            json!({"metadata": {"labels": self.labels("launcher", None)}, "spec": launcher});
        match *version {
            "v1" => self.object(core, "pods", "launcher", &owners, template)?,
            _ => {
                let job = json!({"spec": {"template": template}});
                self.object("/apis/batch/v1", "jobs", "launcher", &owners, job)?;
            }
        }
        if *version == "v1alpha2" {
            let labels = self.labels("worker", None);
            let set = json!({"spec": {
                "podManagementPolicy": "Parallel", "replicas": 2, "serviceName": format!("{name}-worker"),
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec("Always", "sleep 600")},
            }});
            self.object("/apis/apps/v1", "statefulsets", "worker", &owners, set)?;
        } else {
            for index in ["0", "1"] {
                let labels = self.labels("worker", Some(index));
                let pod =
                    json!({"metadata": {"labels": labels}, "spec": spec("Never", "sleep 600")});
                self.object(core, "pods", &format!("worker-{index}"), &owners, pod)?;
            }
        }
        self.is_running()
    }

    /// Waits for the pods, and writes the status that such a job has then.
    fn is_running(&self) -> anyhow::Result<()> {
        let Self { story, version, name } = self;
        wait::until(PATIENCE, "the old operator's pods", || {
            let list = story.cluster.api().get(&story.path("/api/v1", "pods"))?;
            let pods = list["items"].as_array().context("no list")?;
            let own = pods.iter().filter(|pod| {
                let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
                pod_name.starts_with(&format!("{name}-")) && pod["status"]["phase"] == "Running"
            });
            Ok((own.count() == 3).then_some(()))
        })?;
        let conditions: Vec<Value> = ["Created", "Running"]
            .iter()
            .map(|kind| {
                json!({
                    "type": kind, "status": "True", "reason": format!("MPIJob{kind}"), "message": "as it was",
                    "lastUpdateTime": BEGUN, "lastTransitionTime": BEGUN,
                })
            })
            .collect();
        let status = json!({"status": {"startTime": BEGUN, "conditions": conditions}});
        let path = format!("{}/{name}/status", story.jobs_path(version));
        story.cluster.api().merge(&path, &status).map(|_| ())
    }

    /// Makes one object of the job.
    fn object(
        &self,
        api: &str,
        plural: &str,
        suffix: &str,
        owners: &Value,
        mut object: Value,
    ) -> anyhow::Result<()> {
        object["metadata"]["name"] = format!("{}-{suffix}", self.name).into();
        object["metadata"]["ownerReferences"] = owners.clone();
        if plural == "jobs" || plural == "statefulsets" {
            let role = if plural == "jobs" { "launcher" } else { "worker" };
            object["metadata"]["labels"] = self.labels(role, None);
        }
        self.story.cluster.api().create(&self.story.path(api, plural), &object).map(|_| ())
    }

    /// The labels of what this version makes.
    fn labels(&self, role: &str, index: Option<&str>) -> Value {
        let name = &self.name;
        let mut labels = match self.version {
            "v1alpha2" => {
                json!({"group_name": "kubeflow.org", "mpi_job_name": name, "mpi_role_type": role})
            }
            "v1" => {
                json!({"group-name": "kubeflow.org", "mpi-job-name": name, "mpi-job-role": role})
            }
            _ => json!({
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/job-role": role,
            }),
        };
        if let Some(index) = index {
            let prefix = if self.version == "v1" { "" } else { "training.kubeflow.org/" };
            labels[format!("{prefix}replica-index")] = index.into();
        }
        labels
    }
}

/// A pod as another operator leaves it: no agent.
fn spec(restart: &str, script: &str) -> Value {
    json!({
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "main",
            "image": Image::Busybox.reference(),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
        }],
    })
}
