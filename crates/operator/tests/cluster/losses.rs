//! Places that a job has not, or loses: a gang that is too large by one, a worker that makes room for somebody more important, a
//! worker that runs out of memory.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{COSCHEDULER, Cluster, Image, wait};

use crate::operator::Start;
use crate::story::{HELLO, PATIENCE, Story, holds, job, tell, tell_alone};
use crate::support::put;

const WORKER: &str = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0";

/// Gives every node so many of something that only one test asks for.
fn provide(cluster: &Cluster, resource: &str, count: u32) -> anyhow::Result<()> {
    for node in cluster.nodes() {
        let amount = json!({resource: count.to_string()});
        let status = json!({"status": {"capacity": amount, "allocatable": amount}});
        cluster.api().merge(&format!("/api/v1/nodes/{}/status", node.name()), &status)?;
    }
    Ok(())
}

/// A container that holds one of something.
fn one_of(resource: &str) -> Value {
    json!({"requests": {resource: "1"}, "limits": {resource: "1"}})
}

/// The line of a launcher whose first try would wait for ever; later ones have a later table.
fn second_try() -> String {
    format!("grep -q '\"epoch\":0' /etc/unisono/agent/table && sleep 600; {HELLO}")
}

/// One worker more than there are places: no pod of the gang gets a node. Without that worker the same job runs.
pub(crate) fn gang_too_large(cluster: &Cluster) -> anyhow::Result<()> {
    const PLACE: &str = "unisono.test/place";
    tell_alone(cluster, "too-large", |story| {
        cluster.start_coscheduling()?;
        provide(cluster, PLACE, 1)?;
        let gang = format!("scheduler-plugins={COSCHEDULER}");
        let operator = story.operator(&Start { gang: &gang, ..Start::default() })?;
        let mut large =
            job("v2beta1", "large", "mpirun --allow-run-as-root /programs/openmpi4/hello");
        put(&mut large, "/spec/mpiReplicaSpecs/Worker/replicas", json!(3))?;
        put(&mut large, &format!("{WORKER}/resources"), one_of(PLACE))?;
        story.create(&large)?;
        let pods = story.path("/api/v1", "pods");
        wait::until(PATIENCE, "every pod to have been tried", || {
            let list = cluster.api().get(&pods)?;
            let pods = list["items"].as_array().context("no list")?;
            for pod in pods {
                ensure!(pod["spec"]["nodeName"].is_null(), "a part of the gang has a node: {pod}");
            }
            Ok((pods.len() == 4 && pods.iter().all(is_turned_away)).then_some(()))
        })?;
        story.merge("large", &json!({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}}))?;
        story.succeeds("large")?;
        operator.terminate()
    })
}

/// Whether a scheduler has found no place for a pod.
fn is_turned_away(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter().any(|it| it["type"] == "PodScheduled" && it["status"] == "False")
    })
}

/// A pod of a higher priority takes a worker's place: all begin again once it is gone, and no retry is spent.
pub(crate) fn preempted(cluster: &Cluster) -> anyhow::Result<()> {
    const SEAT: &str = "unisono.test/seat";
    tell(cluster, "preempted", |story, _| {
        provide(cluster, SEAT, 1)?;
        let class = json!({"metadata": {"name": "urgent"}, "value": 1000});
        cluster.api().create("/apis/scheduling.k8s.io/v1/priorityclasses", &class)?;
        let mut humble = job("v2beta1", "humble", &second_try());
        put(&mut humble, &format!("{WORKER}/resources"), one_of(SEAT))?;
        story.create(&humble)?;
        story.until("humble", "running", |job| holds(job, "Running"))?;
        let urgent = json!({"metadata": {"name": "urgent"}, "spec": {
            "priorityClassName": "urgent", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": Image::Busybox.reference(), "imagePullPolicy": "Never",
                "command": ["sleep", "600"], "resources": one_of(SEAT),
            }],
        }});
        let pods = story.path("/api/v1", "pods");
        cluster.api().create(&pods, &urgent)?;
        wait::until(PATIENCE, "the urgent pod to run", || {
            let pod = cluster.api().get(&format!("{pods}/urgent"))?;
            Ok((pod["status"]["phase"] == "Running").then_some(()))
        })?;
        cluster.api().delete(&format!("{pods}/urgent"))?;
        began_again(story, "humble", "preempted")
    })
}

/// A worker's own command eats more than its container may have: all begin again, and no retry is spent.
pub(crate) fn worker_starved(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "starved", |story, _| {
        let mut hungry = job("v2beta1", "hungry", &second_try());
        let line = "until test -e /tmp/eat; do sleep 0.1; done; exec tail /dev/zero";
        put(&mut hungry, &format!("{WORKER}/command"), json!(["sh", "-c", line]))?;
        put(&mut hungry, &format!("{WORKER}/resources"), json!({"limits": {"memory": "96Mi"}}))?;
        story.create(&hungry)?;
        story.until("hungry", "running", |job| holds(job, "Running"))?;
        story.kubectl(&["exec", "hungry-worker-1", "--", "touch", "/tmp/eat"])?;
        began_again(story, "hungry", "hungry-worker-1 ran out of memory")
    })
}

/// Waits for the good end of a job that began again once, for this reason and at no cost.
fn began_again(story: &Story<'_>, name: &str, why: &str) -> anyhow::Result<()> {
    let ended = story.succeeds(name)?;
    let status = &ended["status"]["unisono"];
    ensure!(status["gang_restarts"] == 1 && status["counted_failures"] == 0, "{status}");
    wait::until(PATIENCE, "the first failure to be told", || {
        let fields = format!("involvedObject.name%3D{name},reason%3DFirstFailure");
        let events = story.path("/api/v1", "events");
        let list = story.cluster.api().get(&format!("{events}?fieldSelector={fields}"))?;
        let told = list["items"][0]["message"].as_str().map(str::to_owned);
        if let Some(told) = &told {
            ensure!(told.contains(why), "{told}");
        }
        Ok(told)
    })?;
    Ok(())
}
