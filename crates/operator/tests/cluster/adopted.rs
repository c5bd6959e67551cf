//! Jobs that another operator began, as each of its versions left them: they are taken over while they run, nothing of them starts
//! again, and what goes with their end goes.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::operator::Start;
use crate::story::{HELLO, PATIENCE, Story, holds, job, tell_alone};

/// A moment before any of these jobs were made.
const BEGUN: &str = "2026-01-01T12:00:00Z";

/// The versions of jobs, newest first.
const VERSIONS: [&str; 4] = ["v2beta1", "v1", "v1alpha2", "v1alpha1"];

pub(crate) fn goes_on(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "adopted", |story| {
        for version in VERSIONS {
            Left { story, version, name: format!("old-{version}") }.make()?;
        }
        let before = pods(story)?;
        ensure!(before.len() == 12, "{before:?}");
        let waiting = Left { story, version: "v2beta1", name: "old-waiting".to_owned() };
        waiting.make_suspended()?;
        let operator = story.operator(&Start::default())?;
        for version in VERSIONS {
            let name = format!("old-{version}");
            story.until(&name, "taken over", |job| job["status"]["unisono"].is_object())?;
            let status = &story.get(&name)?["status"];
            let runs = match version {
                "v1alpha1" => status["launcherStatus"] == "Active",
                _ => holds(&story.get(&name)?, "Running"),
            };
            ensure!(runs, "{status}");
        }
        waiting.is_resumed()?;
        let taken = pods(story)?;
        let taken: Vec<_> =
            taken.into_iter().filter(|(name, _)| !name.starts_with("old-waiting")).collect();
        ensure!(taken == before, "pods were made or removed: {taken:?}");
        for version in VERSIONS {
            let path = story.path("/api/v1", "configmaps");
            let map = cluster.api().get(&format!("{path}/old-{version}-config"))?;
            ensure!(map["data"] == json!({"hostfile": "as it was"}), "{map}");
        }
        for version in VERSIONS {
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
        let mut left = pods(story)?;
        left.retain(|(name, _)| !name.starts_with("old-waiting"));
        ensure!(left.len() == 4 && left.iter().all(|pod| before.contains(pod)), "{left:?}");
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
        let owners = self.owners(&story.create(&object)?);
        let core = "/api/v1";
        self.shared(&owners)?;
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
        if version.starts_with("v1alpha") {
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

    /// Makes a job that waits to be resumed: that operator makes everything but its pods.
    fn make_suspended(&self) -> anyhow::Result<()> {
        let mut object = job(self.version, &self.name, HELLO);
        object["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running", "suspend": true});
        let owners = self.owners(&self.story.create(&object)?);
        self.shared(&owners)?;
        let template = json!({
            "metadata": {"labels": self.labels("launcher", None)}, "spec": spec("OnFailure", "exit 1"),
        });
        let launcher = json!({"spec": {"suspend": true, "template": template}});
        self.object("/apis/batch/v1", "jobs", "launcher", &owners, launcher)?;
        self.is_told(&[("Created", "True"), ("Suspended", "True"), ("Running", "False")])
    }

    /// Resumes it, and returns when it has run to its end by pods of ours.
    fn is_resumed(&self) -> anyhow::Result<()> {
        let Self { story, name, .. } = self;
        story.until(name, "taken over", |job| job["status"]["unisono"].is_object())?;
        story.merge(name, &json!({"spec": {"runPolicy": {"suspend": false}}}))?;
        let ended = story.succeeds(name)?;
        ensure!(ended["status"]["unisono"]["failed_launches"] == 0, "{ended}");
        let secrets = story.path("/api/v1", "secrets");
        let keys = story.cluster.api().get(&format!("{secrets}/{name}-ssh"))?["data"].clone();
        let keys: Vec<&String> = keys.as_object().context("no keys")?.keys().collect();
        ensure!(keys == ["ssh-privatekey", "ssh-publickey"], "{keys:?}");
        Ok(())
    }

    fn owners(&self, job: &Value) -> Value {
        json!([{
            "apiVersion": format!("kubeflow.org/{}", self.version), "kind": "MPIJob", "name": self.name,
            "uid": job["metadata"]["uid"], "controller": true,
        }])
    }

    /// What its pods share.
    fn shared(&self, owners: &Value) -> anyhow::Result<()> {
        let core = "/api/v1";
        let files = json!({"data": {"hostfile": "as it was"}});
        self.object(core, "configmaps", "config", owners, files)?;
        if self.version == "v2beta1" {
            let keys = json!({"ssh-privatekey": "as it was", "ssh-publickey": "as it was"});
            let secret = json!({"type": "kubernetes.io/ssh-auth", "stringData": keys});
            self.object(core, "secrets", "ssh", owners, secret)?;
            let selector = json!({"training.kubeflow.org/job-name": self.name});
            let service = json!({"spec": {"clusterIP": "None", "selector": selector}});
            self.object(core, "services", "", owners, service)?;
        }
        Ok(())
    }

    /// Waits for the pods, and writes the status that such a job has then.
    fn is_running(&self) -> anyhow::Result<()> {
        let Self { story, name, .. } = self;
        wait::until(PATIENCE, "the old operator's pods", || {
            let list = story.cluster.api().get(&story.path("/api/v1", "pods"))?;
            let pods = list["items"].as_array().context("no list")?;
            let own = pods.iter().filter(|pod| {
                let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
                pod_name.starts_with(&format!("{name}-")) && pod["status"]["phase"] == "Running"
            });
            Ok((own.count() == 3).then_some(()))
        })?;
        self.is_told(&[("Created", "True"), ("Running", "True")])
    }

    /// Writes the status.
    fn is_told(&self, conditions: &[(&str, &str)]) -> anyhow::Result<()> {
        let Self { story, version, name } = self;
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| {
                json!({
                    "type": kind, "status": status, "reason": format!("MPIJob{kind}"), "message": "as it was",
                    "lastUpdateTime": BEGUN, "lastTransitionTime": BEGUN,
                })
            })
            .collect();
        let status = match *version {
            "v1alpha1" => {
                json!({"startTime": BEGUN, "launcherStatus": "Active", "workerReplicas": 2})
            }
            _ => json!({"startTime": BEGUN, "conditions": conditions}),
        };
        let path = format!("{}/{name}/status", story.jobs_path(version));
        story.cluster.api().merge(&path, &json!({"status": status})).map(|_| ())
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
        let name = format!("{}-{suffix}", self.name);
        object["metadata"]["name"] = name.trim_end_matches('-').into();
        object["metadata"]["ownerReferences"] = owners.clone();
        match plural {
            // Whose Job it is stands on the pods alone.
            "jobs" if self.version == "v2beta1" => {
                object["metadata"]["labels"] = json!({"app": self.name});
            }
            "jobs" => object["metadata"]["labels"] = self.labels("launcher", None),
            "statefulsets" => object["metadata"]["labels"] = self.labels("worker", None),
            _ => {}
        }
        self.story.cluster.api().create(&self.story.path(api, plural), &object).map(|_| ())
    }

    /// The labels of what this version makes.
    fn labels(&self, role: &str, index: Option<&str>) -> Value {
        let name = &self.name;
        let mut labels = match self.version {
            "v1alpha1" | "v1alpha2" => {
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
