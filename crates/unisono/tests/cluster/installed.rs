//! The operator in its own image, as an installation leaves it: two pods of a Deployment, of which one works.

use std::path::Path;

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_operator::manifests::default_image;
use unisono_testcluster::{Cluster, Image, operator_archive, wait};

use crate::desk::{Desk, PATIENCE};
use crate::dialects::pretend_gpus;

/// The name of the Deployment.
const NAME: &str = "unisono-operator";

/// `unisono operator install` warns of a rival, waits until the operator is ready, and finds nothing to do the second time.
pub(crate) fn runs_jobs(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::without_operator(cluster, "installed")?;
    load(cluster)?;
    let rivals = "/apis/apps/v1/namespaces/default/deployments";
    cluster.api().create(rivals, &rival())?;
    let told = install(&desk)?;
    cluster.api().delete(&format!("{rivals}/mpi-operator"))?;
    let lines: Vec<&str> = told.lines().collect();
    ensure!(told.starts_with("warning: mpi-operator in default runs MPI jobs, too"), "{told}");
    ensure!(lines.contains(&"applied Deployment unisono-operator"), "{told}");
    ensure!(told.contains("waiting for Deployment unisono-operator: "), "{told}");
    ensure!(lines.last() == Some(&"the operator is ready"), "{told}");
    let again = install(&desk)?;
    ensure!(!again.contains("waiting for") && !again.contains("warning"), "{again}");
    desk.file("job.yaml", &job())?;
    desk.done(&["submit", "job.yaml"])?;
    ensure!(desk.ends("installed")? == "succeeded", "{}", words(cluster, &["logs", SELECTOR]));
    remove(cluster)
}

/// The quick start of ksonnet's package, from a cluster that has nothing.
pub(crate) fn quick_start(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::without_operator(cluster, "quick")?;
    load(cluster)?;
    pretend_gpus(cluster)?;
    desk.done(&["ks", "init", "lab", "--namespace", "quick"])?;
    desk.ks("lab", "pkg install kubeflow/mpi-job@master")?;
    desk.ks("lab", "generate mpi-operator mpi-operator --gpusPerNode 1")?;
    let said = desk.ks("lab", "apply default -c mpi-operator")?.err;
    ensure!(said.ends_with("the operator is ready\n"), "{said}");
    let image = Image::OpenMpi4.reference();
    desk.ks(
        "lab",
        &format!("generate mpi-job-simple bench --gpus 2 --image {image} --command mpirun,/programs/openmpi4/hello"),
    )?;
    desk.ks("lab", "apply default -c bench")?;
    ensure!(desk.ends("bench")? == "succeeded");
    let log = desk.done(&["logs", "bench", "--engine", "kubernetes"])?;
    for rank in 0..2 {
        ensure!(log.contains(&format!("rank {rank} of 2 on bench-worker-{rank}\n")), "{log}");
    }
    remove(cluster)
}

/// What selects the operator's pods.
const SELECTOR: &str = "--selector=app.kubernetes.io/name=unisono-operator";

/// Gives the nodes the image that an installation names by itself.
fn load(cluster: &Cluster) -> anyhow::Result<()> {
    let program = Path::new(env!("CARGO_BIN_EXE_unisono"));
    cluster.load(&operator_archive(&default_image(), program)?)
}

/// What an installation says, once it has ended well.
fn install(desk: &Desk<'_>) -> anyhow::Result<String> {
    let installed = desk.run(&["operator", "install"])?;
    let told = installed.err;
    ensure!(
        installed.code == 0,
        "{}: {told}\n{}",
        installed.code,
        words(desk.cluster, &["describe", "pods"])
    );
    Ok(told)
}

/// Removes the operator: it is not the only one that is installed, and no two may meet.
fn remove(cluster: &Cluster) -> anyhow::Result<()> {
    let deployment = format!("/apis/apps/v1/namespaces/unisono-system/deployments/{NAME}");
    cluster.api().delete(&format!("{deployment}?propagationPolicy=Foreground"))?;
    wait::until(PATIENCE, "the operator to be gone", || {
        Ok(cluster.api().find(&deployment)?.is_none().then_some(()))
    })
}

/// A job of two ranks.
fn job() -> String {
    let image = Image::OpenMpi4.reference();
    let launcher =
        json!({"name": "c", "image": image, "command": ["mpirun", "/programs/openmpi4/hello"]});
    let of_role = |container: Value| json!({"spec": {"containers": [container]}});
    json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "installed"},
        "spec": {"mpiReplicaSpecs": {
            "Launcher": {"template": of_role(launcher)},
            "Worker": {"replicas": 2, "template": of_role(json!({"name": "c", "image": image}))},
        }},
    })
    .to_string()
}

/// A Deployment as the other operator has it. Its pods cannot start here, and need not.
fn rival() -> Value {
    let labels = json!({"app": "mpi-operator"});
    json!({
        "metadata": {"name": "mpi-operator"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [
                    {"name": "main", "image": "unisono.test/none:1", "imagePullPolicy": "Never"},
                ]},
            },
        },
    })
}

/// What kubectl says about the operator's namespace.
fn words(cluster: &Cluster, command: &[&str]) -> String {
    let said = cluster.kubectl(&[command, &["--namespace=unisono-system"]].concat());
    said.unwrap_or_else(|fault| fault.to_string())
}
