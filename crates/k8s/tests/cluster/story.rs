//! What every story needs: the job's kind in the cluster, a client, and the loop that drives a job.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use kube::api::{Api, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use unisono_dialect::Options;
use unisono_engine::{Clock as _, Recorded, SystemClock, tick};
use unisono_k8s::{
    ApplyError, Children, EngineError, JobObject, KubernetesEngine, Settings, WriteError, connect,
    kubeflow, prior,
};
use unisono_plan::{Next, Plan, Status, lay_out};
use unisono_testcluster::{Cluster, UNISONO, unisono_archive};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How often the loop looks; a real operator is told.
const PAUSE: Duration = Duration::from_millis(100);

/// One namespace of the cluster and a client for it.
pub(crate) struct Story<'cluster> {
    pub(crate) cluster: &'cluster Cluster,
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) namespace: String,
}

/// Runs a story in a namespace of its own, in the cluster's network.
pub(crate) fn tell<F>(cluster: &Cluster, namespace: &str, story: F) -> anyhow::Result<()>
where
    F: AsyncFnOnce(&Story<'_>) -> anyhow::Result<()> + Send,
{
    prepare(cluster)?;
    let labels = json!({"name": namespace, "labels": {}});
    cluster.api().create("/api/v1/namespaces", &json!({"metadata": labels}))?;
    let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
    unisono_testcluster::wait::until(PATIENCE, "a service account", || {
        cluster.api().find(&account)
    })?;
    let told = std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            cluster.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut settings = Settings::new(UNISONO);
                settings.image_pull_policy = Some("Never".to_owned());
                let (client, namespace) = (client(cluster).await?, namespace.to_owned());
                story(&Story { cluster, client, settings, namespace }).await
            })
        });
        inside.join().map_err(|_| anyhow!("the story panicked"))?
    });
    let told = told.map_err(|fault| {
        let what = "mpijobs,jobs,pods";
        let left = cluster.kubectl(&["get", what, "--output=yaml", "--namespace", namespace]);
        fault.context(left.unwrap_or_default())
    });
    cluster.api().delete(&format!("/api/v1/namespaces/{namespace}"))?;
    told
}

async fn client(cluster: &Cluster) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(connect(config)?.build())
}

/// The job's kind and our own image, once for all stories.
fn prepare(cluster: &Cluster) -> anyhow::Result<()> {
    static READY: Mutex<bool> = Mutex::new(false);
    let mut ready = READY.lock().map_err(|_| anyhow!("an earlier story panicked"))?;
    if *ready {
        return Ok(());
    }
    cluster.load(&unisono_archive()?)?;
    let version = |name: &str| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": name,
            "served": true,
            "storage": name == "v2beta1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
        })
    };
    let versions = ["v1alpha1", "v1alpha2", "v1", "v2beta1"].map(version);
    let definition = json!({
        "metadata": {"name": "mpijobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "scope": "Namespaced",
            "names": {"plural": "mpijobs", "singular": "mpijob", "kind": "MPIJob"},
            "versions": versions,
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.api().create(path, &definition)?;
    let established = || {
        let found = cluster.api().get(&format!("{path}/mpijobs.kubeflow.org"))?;
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(conditions
            .iter()
            .any(|it| it["type"] == "Established" && it["status"] == "True")
            .then_some(()))
    };
    unisono_testcluster::wait::until(PATIENCE, "the job's kind", established)?;
    *ready = true;
    Ok(())
}

/// Whether something of an earlier job of the same name is still there.
fn is_in_the_way(fault: &anyhow::Error) -> bool {
    matches!(
        fault.downcast_ref(),
        Some(EngineError::Apply(ApplyError::Write(WriteError::Predecessor { .. })))
    )
}

impl Story<'_> {
    /// Creates a job object from its YAML-like JSON.
    pub(crate) fn submit(&self, job: &Value) -> anyhow::Result<()> {
        let version = job["apiVersion"].as_str().context("no version")?;
        let path = format!("/apis/{version}/namespaces/{}/mpijobs", self.namespace);
        self.cluster.api().create(&path, job)?;
        Ok(())
    }

    /// The job object as it is now.
    pub(crate) async fn object(&self, name: &str) -> anyhow::Result<JobObject> {
        let api = kubeflow("v2beta1").api_resource();
        let jobs: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &api);
        Ok(JobObject::from_dynamic(&jobs.get(name).await?)?)
    }

    /// One tick, from a fresh look at everything.
    pub(crate) async fn tick(&self, name: &str) -> anyhow::Result<(Plan, Next, bool)> {
        self.tick_with(name, self.client.clone()).await
    }

    /// One tick that writes through another client.
    pub(crate) async fn tick_with(
        &self,
        name: &str,
        client: Client,
    ) -> anyhow::Result<(Plan, Next, bool)> {
        let object = self.object(name).await?;
        let reading = object.read(&Options::default());
        let job =
            reading.job.with_context(|| format!("the job is not read: {:?}", reading.notes))?;
        let plan = lay_out(&job, &self.settings.facts(&self.namespace), object.generation());
        let children = Children::list(&self.client, &object).await?;
        let before = prior(&plan, &object, &children);
        let now = SystemClock.now();
        let mut engine = KubernetesEngine::new(client, self.settings.clone(), object, children);
        let ticked = tick(&mut engine, &plan, &before, now).await?;
        let quiet = ticked.next.status == before && ticked.recorded == Recorded::Written;
        Ok((plan, ticked.next, quiet))
    }

    /// Drives a job until something is so.
    pub(crate) async fn drive(
        &self,
        name: &str,
        mut until: impl FnMut(&Status) -> bool,
    ) -> anyhow::Result<Status> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.tick(name).await {
                Ok((_, next, _)) if until(&next.status) => return Ok(next.status),
                Ok((_, next, _)) => {
                    let Next { status, why, .. } = next;
                    ensure!(Instant::now() < deadline, "no end in sight: {status:?} {why:?}");
                }
                Err(fault) if is_in_the_way(&fault) && Instant::now() < deadline => {}
                Err(fault) => return Err(fault),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Drives a job to its end, and until nothing changes any more.
    pub(crate) async fn finish(&self, name: &str) -> anyhow::Result<Status> {
        self.drive(name, Status::is_terminal).await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, next, quiet) = self.tick(name).await?;
            let going =
                self.pods()?.iter().any(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
            if quiet && !going {
                return Ok(next.status);
            }
            if Instant::now() > deadline {
                bail!("never quiet: {:?}", next.why);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// All pods of the story.
    pub(crate) fn pods(&self) -> anyhow::Result<Vec<Value>> {
        let list =
            self.cluster.api().get(&format!("/api/v1/namespaces/{}/pods", self.namespace))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Names of all pods, sorted.
    pub(crate) fn pod_names(&self) -> anyhow::Result<Vec<String>> {
        let mut names: Vec<String> = self
            .pods()?
            .iter()
            .filter_map(|pod| Some(pod["metadata"]["name"].as_str()?.to_owned()))
            .collect();
        names.sort();
        Ok(names)
    }

    /// What kubectl says in this namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let namespace = ["--namespace", &self.namespace];
        self.cluster.kubectl(&[&namespace[..], arguments].concat())
    }
}
