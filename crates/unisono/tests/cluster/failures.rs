//! Jobs that come to a bad end in a cluster: each is followed to it, its exit code is passed on, what failed first is named, and
//! nothing of it stays once it is removed.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::desk::{Desk, KINDS, PATIENCE};

/// A line that one rank out of four fails in, on two workers.
const RANKS: &str = "mpirun --allow-run-as-root -np 4";

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
    let cases = [
        (job("exits", &of_rank_2("exit 3")), 3, "rank 2 on exits-worker-1 ended with exit code 3"),
        (
            job("aborts", &format!("{RANKS} /programs/openmpi4/abort 2 42")),
            42,
            "rank 2 on aborts-worker-1 ended with exit code 42",
        ),
        (starved, 137, "perhaps for want of memory"),
        (job("nothing", "mpirun-of-mine"), 127, "no `mpirun-of-mine` in image"),
    ];
    for (job, code, sentence) in cases {
        let name = job["metadata"]["name"].as_str().context("no name")?;
        desk.file("job.json", &job.to_string())?;
        let ended = desk.run(&["submit", "job.json", "--follow"])?;
        ensure!(ended.code == code, "{name}: {}: {}", ended.code, ended.err);
        ensure!(ended.err.contains(sentence), "{name}: {}", ended.err);
        let why = desk.done(&["why", name, "--engine", "kubernetes"])?;
        ensure!(why.contains(sentence), "{name}: {why}");
        desk.cluster.kubectl(&["delete", "uj", name, "--namespace", desk.namespace])?;
    }
    gone(&desk, &left)
}

/// A worker whose image nobody has keeps its job waiting, which says so; stopped and removed, it leaves nothing.
pub(crate) fn imageless(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "imageless")?;
    let left = desk.names(KINDS)?;
    let mut object = job("lost", "true");
    object["spec"]["groups"][1]["image"] = json!("unisono.test/none:1");
    desk.file("job.json", &object.to_string())?;
    desk.done(&["submit", "job.json"])?;
    wait::until(PATIENCE, "the missing image to be told", || {
        let why = desk.done(&["why", "lost", "--engine", "kubernetes"])?;
        let is_told = why.contains("lost-worker-") && why.contains("unisono.test/none:1");
        Ok(is_told.then_some(()))
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

/// Waits until nothing is there but what was there before.
fn gone(desk: &Desk<'_>, left: &[String]) -> anyhow::Result<()> {
    wait::until(PATIENCE, "everything of the jobs to be gone", || {
        Ok((desk.names(KINDS)? == left).then_some(()))
    })
}
