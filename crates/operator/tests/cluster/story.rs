//! Stories of jobs that really run: each in a namespace of its own, so that several are told at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::operator::{Operator, Start};
use crate::support::{mpi_job, prepare};

/// How long a small job may take on a machine that does other things, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A job of a version with two workers of two slots whose launcher runs a line of shell.
pub(crate) fn job(version: &str, name: &str, line: &str) -> Value {
    let template = json!({"spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "main",
            "image": Image::OpenMpi4.reference(),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", line],
        }],
    }});
    let mut worker = template.clone();
    if let Some(container) = worker.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut)
    {
        container.shift_remove("command");
    }
    let spec = match version {
        "v1alpha1" => json!({"replicas": 2, "slotsPerWorker": 2, "template": template}),
        _ => json!({
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {
                "Launcher": {"template": template},
                "Worker": {"replicas": 2, "template": worker},
            },
        }),
    };
    mpi_job(version, name, &spec)
}

/// The line that starts four ranks.
pub(crate) const HELLO: &str = "mpirun --allow-run-as-root -np 4 /programs/openmpi4/hello";

/// The line of a launcher that waits until somebody [opens](Story::open) its gate.
pub(crate) const GATED: &str = "until test -e /tmp/go; do sleep 0.1; done";

/// How many stories that differ in one thing go on at once, beside other tests: a node of two cores that has too much to do
/// counts as lost.
const AT_ONCE: usize = 2;

/// Tells the same story with each of these, some at once; what they found leaves in no order, or the first fault when all are told.
pub(crate) fn at_once<T: Send, R: Send>(
    all: Vec<T>,
    story: impl Fn(T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let rest = Mutex::new(all.into_iter());
    let told: Vec<anyhow::Result<Vec<R>>> = std::thread::scope(|scope| {
        let one_by_one = || {
            let mut told = Vec::new();
            loop {
                let next = rest.lock().map_err(|_| anyhow!("a story panicked"))?.next();
                let Some(next) = next else { return Ok(told) };
                told.push(story(next)?);
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one_by_one)).collect();
        let joined =
            threads.into_iter().map(|it| it.join().map_err(|_| anyhow!("a story panicked")));
        joined.map(|it| it.and_then(|told| told)).collect()
    });
    Ok(told.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// One namespace of the cluster.
pub(crate) struct Story<'cluster> {
    pub(crate) cluster: &'cluster Cluster,
    pub(crate) namespace: &'cluster str,
}

/// Tells a story with an operator that looks at the story's namespace and no other, and that ends well.
pub(crate) fn tell(
    cluster: &Cluster,
    namespace: &str,
    story: impl FnOnce(&Story<'_>, &Operator) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    tell_alone(cluster, namespace, |told| {
        let operator = told.operator(&Start::default())?;
        story(told, &operator)?;
        operator.terminate()
    })
}

/// Tells a story that starts its operators itself; what it found leaves.
pub(crate) fn tell_alone<R>(
    cluster: &Cluster,
    namespace: &str,
    story: impl FnOnce(&Story<'_>) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    prepare(cluster)?;
    cluster.api().create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))?;
    let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
    wait::until(PATIENCE, "a service account", || cluster.api().find(&account))?;
    let told = Story { cluster, namespace };
    let result = story(&told).map_err(|fault| {
        let left = told.kubectl(&["get", "mpijobs,jobs,pods", "--output=wide"]);
        fault.context(left.unwrap_or_default())
    });
    cluster.api().delete(&format!("/api/v1/namespaces/{namespace}"))?;
    result
}

impl Story<'_> {
    /// Starts an operator for the story's namespace.
    pub(crate) fn operator(&self, start: &Start<'_>) -> anyhow::Result<Operator> {
        /// Operators that run at the same time answer on different ports.
        static PORT: AtomicU16 = AtomicU16::new(8200);
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let only_namespace = Some(self.namespace);
        Operator::again(self.cluster, &Start { port, only_namespace, ..start.clone() })
    }

    /// Where the jobs of a version are.
    pub(crate) fn jobs_path(&self, version: &str) -> String {
        format!("/apis/kubeflow.org/{version}/namespaces/{}/mpijobs", self.namespace)
    }

    /// Where a kind of object of Kubernetes' own is.
    pub(crate) fn path(&self, api: &str, plural: &str) -> String {
        format!("{api}/namespaces/{}/{plural}", self.namespace)
    }

    /// What kubectl says in this namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let namespace = ["--namespace", self.namespace];
        self.cluster.kubectl(&[&namespace[..], arguments].concat())
    }

    /// Creates a job.
    pub(crate) fn create(&self, job: &Value) -> anyhow::Result<Value> {
        let version = job["apiVersion"].as_str().and_then(|it| it.strip_prefix("kubeflow.org/"));
        self.cluster.api().create(&self.jobs_path(version.context("no version")?), job)
    }

    /// The job as it is.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<Value> {
        self.cluster.api().get(&format!("{}/{name}", self.jobs_path("v2beta1")))
    }

    /// Changes fields of a job.
    pub(crate) fn merge(&self, name: &str, fields: &Value) -> anyhow::Result<Value> {
        self.cluster.api().merge(&format!("{}/{name}", self.jobs_path("v2beta1")), fields)
    }

    /// Waits until the job is as wanted.
    pub(crate) fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let found = wait::until(PATIENCE, &format!("{name} to be {what}"), || {
            let job = self.get(name)?;
            Ok(is(&job).then_some(job))
        });
        found.with_context(|| {
            self.get(name).map(|job| job["status"].to_string()).unwrap_or_default()
        })
    }

    /// Waits for the job's good end.
    pub(crate) fn succeeds(&self, name: &str) -> anyhow::Result<Value> {
        let job = self.until(name, "at its end", |job| {
            holds(job, "Succeeded")
                || holds(job, "Failed")
                || job["status"]["completionTime"].is_string()
        })?;
        if holds(&job, "Failed") || job["status"]["launcherStatus"] == "Failed" {
            let pods = format!("training.kubeflow.org/job-name={name}");
            let logs = self.kubectl(&["logs", "--selector", &pods, "--tail=20", "--prefix"]);
            bail!("{name} failed: {}\n{}", job["status"], logs.unwrap_or_default());
        }
        Ok(job)
    }

    /// The names of a job's pods, in order.
    pub(crate) fn pods(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let pods = self.path("/api/v1", "pods");
        let selected = format!("{pods}?labelSelector=training.kubeflow.org/job-name%3D{name}");
        let list = self.cluster.api().get(&selected)?;
        let mut names: Vec<String> = list["items"]
            .as_array()
            .context("no list")?
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Names and uids of all pods of the story, in order.
    pub(crate) fn uids(&self) -> anyhow::Result<Vec<(String, String)>> {
        let list = self.cluster.api().get(&self.path("/api/v1", "pods"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = list["items"].as_array().context("no list")?;
        let names = pods.iter().map(|it| &it["metadata"]);
        let mut uids: Vec<(String, String)> =
            names.map(|it| (text(&it["name"]), text(&it["uid"]))).collect();
        uids.sort();
        Ok(uids)
    }

    /// Opens the gate of a job's launcher.
    pub(crate) fn open(&self, name: &str) -> anyhow::Result<()> {
        let pods = self.pods(name)?;
        let launcher = pods.iter().rfind(|it| it.contains("-launcher")).context("no launcher")?;
        self.kubectl(&["exec", launcher, "--", "touch", "/tmp/go"]).map(|_| ())
    }

    /// Evicts a pod, as a drain does.
    pub(crate) fn evict(&self, pod: &str) -> anyhow::Result<()> {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
            "deleteOptions": {"gracePeriodSeconds": 1},
        });
        let path = format!("{}/{pod}/eviction", self.path("/api/v1", "pods"));
        self.cluster.api().create(&path, &eviction).map(|_| ())
    }

    /// Reasons and types of the events about a job, in the order they were told.
    pub(crate) fn events(&self, job: &Value) -> anyhow::Result<Vec<(String, String)>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = self.whole_events(job)?;
        Ok(told.iter().map(|it| (text(&it["type"]), text(&it["reason"]))).collect())
    }

    /// Events about a job, in the order they were told.
    pub(crate) fn whole_events(&self, job: &Value) -> anyhow::Result<Vec<Value>> {
        let uid = job["metadata"]["uid"].as_str().context("no uid")?;
        let events = self.path("/api/v1", "events");
        let list = self
            .cluster
            .api()
            .get(&format!("{events}?fieldSelector=involvedObject.uid%3D{uid}"))?;
        let mut events = list["items"].as_array().context("no list")?.clone();
        let version = |it: &Value| {
            it["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok())
        };
        events.sort_by_key(version);
        Ok(events)
    }

    /// Removes a job, and waits until its pods are gone.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<()> {
        let path = format!("{}/{name}", self.jobs_path("v2beta1"));
        self.cluster.api().delete(&format!("{path}?propagationPolicy=Foreground"))?;
        wait::until(PATIENCE, &format!("{name} to be gone"), || {
            Ok(self.cluster.api().find(&path)?.is_none().then_some(()))
        })
    }
}

/// Whether a condition holds.
pub(crate) fn holds(job: &Value, kind: &str) -> bool {
    condition(job, kind).is_some_and(|it| it["status"] == "True")
}

/// A condition of a job.
pub(crate) fn condition<'job>(job: &'job Value, kind: &str) -> Option<&'job Value> {
    job["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}
