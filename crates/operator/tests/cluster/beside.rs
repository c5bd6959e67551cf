//! Pods with a second container that never ends by itself, as a mesh's proxy: the job ends as its command does, and nothing runs on.

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::story::{HELLO, PATIENCE, Story, condition, holds, job, tell};
use crate::support::put;

/// A job of which every pod has a container that sleeps beside the main one.
fn with_sleepers(name: &str, line: &str) -> anyhow::Result<Value> {
    let mut job = job("v2beta1", name, line);
    job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "None", "backoffLimit": 0});
    let sleeper = json!({
        "name": "beside",
        "image": Image::Busybox.reference(),
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
    });
    for role in ["Launcher", "Worker"] {
        let second = format!("/spec/mpiReplicaSpecs/{role}/template/spec/containers");
        let mut containers = job.pointer(&second).cloned().unwrap_or_default();
        containers.as_array_mut().into_iter().for_each(|it| it.push(sleeper.clone()));
        put(&mut job, &second, containers)?;
    }
    Ok(job)
}

/// Waits until nothing of the launcher's pod runs any more; the pod leaves.
fn launcher_rests(story: &Story<'_>, name: &str) -> anyhow::Result<Value> {
    let path = format!("{}/{name}-launcher", story.path("/api/v1", "pods"));
    wait::until(PATIENCE, &format!("the launcher of {name} to rest"), || {
        let pod = story.cluster.api().get(&path)?;
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        Ok(matches!(phase, "Succeeded" | "Failed").then_some(pod))
    })
}

pub(crate) fn sleepers(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "beside", |story, _| {
        story.create(&with_sleepers("good", HELLO)?)?;
        story.create(&with_sleepers("bad", "exit 3")?)?;
        story.succeeds("good")?;
        let pod = launcher_rests(story, "good")?;
        ensure!(pod["spec"]["activeDeadlineSeconds"] == 1, "{}", pod["status"]);
        let said = story.kubectl(&["logs", "good-launcher"])?;
        ensure!(said.contains("rank 3 of 4 on good-worker-1"), "{said}");

        story.until("bad", "at its end", |job| holds(job, "Failed"))?;
        launcher_rests(story, "bad")?;
        // What Kubernetes says about the pods by then is not how the jobs ended.
        for (name, kind, words) in [
            ("good", "Succeeded", "successfully completed."),
            ("bad", "Failed", "bad-launcher ended with exit code 3"),
        ] {
            let job = story.until(name, "told to have no launcher", |job| {
                job["status"]["replicaStatuses"]["Launcher"]["active"].is_null()
            })?;
            let told = condition(&job, kind).map(|it| it["message"].to_string());
            ensure!(told.is_some_and(|it| it.contains(words)), "{name}: {}", job["status"]);
            ensure!(job["status"]["unisono"]["attempt"] == 0, "{name}: {}", job["status"]);
        }
        Ok(())
    })
}
