//! Jobs that come to a bad end in a cluster: each is followed to it, its exit code is passed on, what failed first is named, and
//! nothing of it stays once it is removed.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::desk::{Desk, KINDS, PATIENCE};

/// A line that one rank out of four fails in, on two workers.
const RANKS: &str = "mpirun --allow-run-as-root -np 4";

/// An image that nobody has.
const NO_IMAGE: &str = "unisono.test/none:1";

/// kube-batch's and Kubeflow's jobs without an image.
const BATCH: &str = "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: lost-mpi}
spec: {job: {completions: 2, parallelism: 2, template: {spec: {containers: [{name: c, image: MISSING, command: ['true']}]}}}}
";
const MPI_JOB: &str = "\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: lost-mpijob}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: c, image: IMAGE, command: ['true']}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: c, image: MISSING}]}}}
";

/// A job of a launcher and two workers of two slots, which is tried once.
fn job(name: &str, line: &str) -> Value {
    let image = Image::OpenMpi4.reference();
    json!({
        "apiVersion": "unisono.dev/v1alpha1",
        "kind": "UnisonoJob",
        "metadata": {"name": name},
        "spec": {
            "groups": [
                {"name": "launcher", "run": "Launch", "image": image, "command": ["sh", "-c", line]},
                {"name": "worker", "replicas": 2, "slots": 2, "image": image},
            ],
            "policies": {"backoffLimit": 0},
        },
    })
}

/// A job whose one worker has an image that nobody has: with several, whoever a kubelet took first is given up on first.
fn without_image(name: &str, image: &str) -> Value {
    let mut object = job(name, "true");
    object["spec"]["groups"][1]["replicas"] = json!(1);
    object["spec"]["groups"][1]["image"] = json!(image);
    object
}

/// Follows jobs that fail, to their ends.
pub(crate) fn told(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "bad-ends")?;
    let left = desk.names(KINDS)?;
    let of_rank_2 = |what: &str| {
        // Nobody would see where a rank of a millisecond ran.
        format!("{RANKS} sh -c '[ $OMPI_COMM_WORLD_RANK != 2 ] || {{ sleep 1; {what}; }}'")
    };
    let mut starved = job("starved", &of_rank_2("tail /dev/zero"));
    starved["spec"]["groups"][1]["resources"] = json!({"limits": {"memory": "48Mi"}});
    let misnamed = without_image("misnamed", "Not:An:Image");
    let cases = [
        (job("exits", &of_rank_2("exit 3")), 3, "rank 2 on exits-worker-1 ended with exit code 3"),
        (
            job("aborts", &format!("{RANKS} /programs/openmpi4/abort 2 42")),
            42,
            "rank 2 on aborts-worker-1 ended with exit code 42",
        ),
        (starved, 137, "perhaps for want of memory"),
        (job("nothing", "mpirun-of-mine"), 127, "no `mpirun-of-mine` in image"),
        (misnamed, 125, "image Not:An:Image of pod misnamed-worker-0 is not to be had"),
    ];
    for (job, code, sentence) in cases {
        let name = job["metadata"]["name"].as_str().context("no name")?;
        desk.file("job.json", &job.to_string())?;
        let ended = desk.run(&["submit", "job.json", "--follow"])?;
        ensure!(ended.code == code, "{name}: {}: {}", ended.code, ended.err);
        ensure!(ended.err.contains(sentence), "{name}: {}", ended.err);
        let why = desk.done(&["why", name, "--engine", "kubernetes"])?;
        ensure!(why.contains(sentence), "{name}: {why}");
        only_is_kept(&desk, &left, name)?;
        desk.cluster.kubectl(&["delete", "uj", name, "--namespace", desk.namespace])?;
    }
    gone(&desk, &left)
}

/// A job whose image nobody has is waited for as long as the operator is told to, and then fails: whatever kind of object it is, it
/// says which image of which pod, nothing of it is left running, and removed it leaves nothing.
pub(crate) fn imageless(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::with_flags(cluster, "without-image", &["--image-deadline", "5"])?;
    let left = desk.names(KINDS)?;
    let mut object = without_image("lost", NO_IMAGE);
    // It is no failure that another attempt could cure.
    object["spec"]["policies"] = json!({"backoffLimit": 3});
    desk.file("job.json", &object.to_string())?;
    for (file, text) in [("mpi.yaml", BATCH), ("mpijob.yaml", MPI_JOB)] {
        let text = text.replace("MISSING", NO_IMAGE).replace("IMAGE", &Image::OpenMpi4.reference());
        desk.file(file, &text)?;
        desk.done(&["submit", file])?;
    }
    let ended = desk.run(&["submit", "job.json", "--follow"])?;
    ensure!(ended.code == 125, "{}: {}", ended.code, ended.err);
    for part in [
        "lost-worker-0 could not start",
        "image unisono.test/none:1 of pod lost-worker-0 is not to be had: ",
        "lost: failed with exit code 125: an image could not be had: check its name and its pull secrets, then submit again",
    ] {
        ensure!(ended.err.contains(part), "no {part:?} in {}", ended.err);
    }
    let condition = |path: &str, conditions: &str| {
        let path = path.replace("NAMESPACE", desk.namespace);
        let object = cluster.api().get(&path)?;
        let all = object.pointer(conditions).and_then(Value::as_array).cloned();
        all.unwrap_or_default().pop().with_context(|| format!("{object}"))
    };
    desk.ends("lost-mpijob")?;
    let failed = condition(
        "/apis/kubeflow.org/v2beta1/namespaces/NAMESPACE/mpijobs/lost-mpijob",
        "/status/conditions",
    )?;
    ensure!(failed["reason"] == "ImageUnavailable", "{failed}");
    ensure!(failed["message"].to_string().contains("of pod lost-mpijob-worker-0"), "{failed}");
    desk.ends("lost-mpi")?;
    let failed = condition(
        "/apis/scheduling.incubator.k8s.io/v1alpha1/namespaces/NAMESPACE/mpis/lost-mpi",
        "/status/job/conditions",
    )?;
    ensure!(failed["type"] == "Failed", "{failed}");
    ensure!(failed["message"].to_string().contains("of pod lost-mpi-"), "{failed}");
    // Those of the others stay as well, as their policies say, but do not ask for their image any more.
    wait::until(PATIENCE, "no pod to be alive", || Ok(all_have_ended(&desk)?.then_some(())))?;
    for (kind, name) in [("mpijobs", "lost-mpijob"), ("mpis", "lost-mpi")] {
        desk.cluster.kubectl(&["delete", kind, name, "--namespace", desk.namespace])?;
    }
    only_is_kept(&desk, &left, "lost")?;
    desk.cluster.kubectl(&["delete", "uj", "lost", "--namespace", desk.namespace])?;
    gone(&desk, &left)
}

/// A worker whose image nobody has keeps its job waiting, which says so, and until when; stopped and removed, it leaves nothing.
pub(crate) fn waits_for_image(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "imageless")?;
    let left = desk.names(KINDS)?;
    desk.file("job.json", &without_image("lost", NO_IMAGE).to_string())?;
    desk.done(&["submit", "job.json"])?;
    wait::until(PATIENCE, "the missing image to be told", || {
        let why = desk.done(&["why", "lost", "--engine", "kubernetes"])?;
        let parts = ["lost-worker-", NO_IMAGE, "; the job gives up at "];
        Ok(parts.iter().all(|it| why.contains(it)).then_some(()))
    })?;
    desk.done(&["stop", "lost", "--engine", "kubernetes"])?;
    ensure!(desk.ends("lost")? == "stopped");
    desk.cluster.kubectl(&["delete", "uj", "lost", "--namespace", desk.namespace])?;
    gone(&desk, &left)
}

/// A job that loses a node in the middle begins again on another one, and says what happened.
pub(crate) fn node_stopped(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "stopped-node")?;
    let line = format!(
        "grep -q '\"epoch\":0' /etc/unisono/agent/table && sleep 600; {RANKS} /programs/openmpi4/hello"
    );
    let mut object = job("moves", &line);
    object["spec"]["policies"] = json!({});
    desk.file("job.json", &object.to_string())?;
    desk.done(&["submit", "job.json"])?;
    desk.runs("moves")?;
    let pod = format!("/api/v1/namespaces/{}/pods/moves-worker-1", desk.namespace);
    let name = cluster.api().get(&pod)?["spec"]["nodeName"].clone();
    let node = cluster.nodes().iter().find(|node| name == node.name()).context("no such node")?;
    node.stop()?;
    let ended = desk.ends("moves");
    cluster.start_node(node)?;
    let is_back = || Ok(cluster.is_ready(node.name())?.then_some(()));
    wait::until(PATIENCE, "the node to come back", is_back)?;
    ensure!(ended? == "succeeded");
    let log = desk.done(&["logs", "moves", "--engine", "kubernetes"])?;
    ensure!(log.matches("rank ").count() == 4, "{log}");
    let events = desk.cluster.kubectl(&["get", "events", "--namespace", desk.namespace])?;
    ensure!(events.contains("was lost with its node"), "{events}");
    Ok(())
}

/// Waits until only that is left of a UnisonoJob which its clean-up policy, `All`, keeps: the job, the pod of its launcher with its
/// log and the Job which that belongs to, and what the pods shared, which goes with the job. Nothing of it is alive.
fn only_is_kept(desk: &Desk<'_>, left: &[String], name: &str) -> anyhow::Result<()> {
    let kept = [
        format!("unisonojob.unisono.dev/{name}"),
        format!("pod/{name}-launcher-0"),
        format!("job.batch/{name}-launcher"),
        format!("configmap/{name}-config"),
        format!("secret/{name}-agent"),
    ];
    let kept: BTreeSet<&String> = kept.iter().chain(left).collect();
    let mut there = Vec::new();
    let waited = wait::until(PATIENCE, "only to be there what is kept", || {
        there = desk.names(KINDS)?;
        Ok((there.iter().collect::<BTreeSet<_>>() == kept && all_have_ended(desk)?).then_some(()))
    });
    waited.with_context(|| format!("{name}: {there:?} is there, not {kept:?}"))
}

/// Whether no pod is alive, or would come alive if its image came.
fn all_have_ended(desk: &Desk<'_>) -> anyhow::Result<bool> {
    let pods = format!("/api/v1/namespaces/{}/pods", desk.namespace);
    let pods = desk.cluster.api().get(&pods)?["items"].take();
    let phases = pods.as_array().context("no list")?.iter().map(|pod| &pod["status"]["phase"]);
    Ok(phases.into_iter().all(|phase| phase == "Failed" || phase == "Succeeded"))
}

/// Waits until nothing is there but what was there before.
fn gone(desk: &Desk<'_>, left: &[String]) -> anyhow::Result<()> {
    wait::until(PATIENCE, "everything of the jobs to be gone", || {
        Ok((desk.names(KINDS)? == left).then_some(()))
    })
}
