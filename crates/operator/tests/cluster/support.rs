//! Objects and calls that the tests share.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use unisono_operator::{Step, manifests};
use unisono_testcluster::{Cluster, unisono_archive};

/// Installs what all stories need, once: everything but the Deployment, and the image with the agent.
pub(crate) fn prepare(cluster: &Cluster) -> anyhow::Result<()> {
    static READY: Mutex<bool> = Mutex::new(false);
    let mut ready = READY.lock().map_err(|_| anyhow!("an earlier story panicked"))?;
    if !*ready {
        install(cluster)?;
        cluster.load(&unisono_archive()?)?;
        *ready = true;
    }
    Ok(())
}

/// Installs what no pod of ours is needed for.
pub(crate) fn install(cluster: &Cluster) -> anyhow::Result<()> {
    let mut objects = manifests::objects(&manifests::Options::default());
    objects.retain(|it| it["kind"] != "Deployment");
    install_objects(cluster, &objects).map(|_| ())
}

/// Installs these objects; what was told on the way leaves.
pub(crate) fn install_objects(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<Vec<Step>> {
    let result = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cluster.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let text = std::fs::read_to_string(cluster.kubeconfig())?;
                let config = kube::config::Kubeconfig::from_yaml(&text)?;
                let options = kube::config::KubeConfigOptions::default();
                let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
                let client = unisono_k8s::connect(config)?.build();
                let patience = Duration::from_secs(60);
                let mut steps = Vec::new();
                let tell = |step| steps.push(step);
                unisono_operator::install(&client, objects, patience, tell).await?;
                Ok(steps)
            })
        });
        thread.join()
    });
    result.map_err(|_| anyhow!("the installing thread panicked"))?
}

/// Every object of the cluster that an installation made and that no namespace holds.
pub(crate) fn labelled(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let selector = "labelSelector=app.kubernetes.io/part-of%3Dunisono";
    let mut found = Vec::new();
    for path in [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ] {
        let list = cluster.api().get(&format!("{path}?{selector}"))?;
        found.extend(list["items"].as_array().context("no list")?.iter().cloned());
    }
    Ok(found)
}

/// Runs `kubectl` on a file.
pub(crate) fn kubectl_file(
    cluster: &Cluster,
    words: &[&str],
    path: &Path,
) -> anyhow::Result<Output> {
    let path = path.to_str().context("a path that is text")?;
    cluster.try_kubectl(&[words, &["--filename", path]].concat())
}

/// Where the jobs of a version are.
pub(crate) fn jobs_path(version: &str) -> String {
    format!("/apis/kubeflow.org/{version}/namespaces/default/mpijobs")
}

/// A small job of a version.
pub(crate) fn job(version: &str, name: &str) -> Value {
    let template = json!({"spec": {"containers": [
        {"name": "main", "image": "lab/x:1", "command": ["mpirun", "/x"]},
    ]}});
    let spec = match version {
        "v1alpha1" => json!({"replicas": 2, "template": template}),
        _ => json!({"mpiReplicaSpecs": {
            "Launcher": {"template": template},
            "Worker": {"replicas": 2, "template": template},
        }}),
    };
    mpi_job(version, name, &spec)
}

/// A job with this specification.
pub(crate) fn mpi_job(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("kubeflow.org/{version}"),
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// Sets or, with a null, removes the value at a JSON pointer.
pub(crate) fn put(object: &mut Value, pointer: &str, value: Value) -> anyhow::Result<()> {
    let (parent, key) = pointer.rsplit_once('/').context("no pointer")?;
    let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
    let parent = parent.with_context(|| format!("nothing above {pointer}"))?;
    if value.is_null() {
        parent.shift_remove(key);
    } else {
        parent.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Every MPIJob file of the readers' tests.
pub(crate) fn fixtures() -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialect/tests/fixtures/kubeflow");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        files.push((path, bytes));
    }
    files.sort();
    Ok(files)
}
