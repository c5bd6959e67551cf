//! What a job's owner does to it while it lives, and what it does to itself afterwards.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, wait};

use crate::story::{PATIENCE, Story, tell};
use crate::versions::{LINE, job, succeeds};

pub(crate) fn scaled(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "scaled", async |story: &Story<'_>| {
        story.submit(&job("wide", "sleep 600"))?;
        story.drive("wide", |status| status.running_since.is_some()).await?;
        let launcher = uid(story, "wide-launcher")?;
        for replicas in [3_usize, 1] {
            let spec = json!({"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}});
            let path =
                format!("/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs/wide", story.namespace);
            story.cluster.api().merge(&path, &json!({"spec": spec}))?;
            let deadline = std::time::Instant::now() + PATIENCE;
            while !knows(story, replicas)? {
                ensure!(
                    std::time::Instant::now() < deadline,
                    "{replicas} workers never came to be"
                );
                story.tick("wide").await?;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            ensure!(story.pod_names()?.len() <= replicas + 3, "{:?}", story.pod_names()?);
        }
        // The launcher went on all the time: what it runs may be elastic.
        ensure!(uid(story, "wide-launcher")? == launcher, "the launcher was started again");
        Ok(())
    })
}

/// Whether so many workers are there, in the launcher's table and in the files that name all hosts.
fn knows(story: &Story<'_>, workers: usize) -> anyhow::Result<bool> {
    let pods = story.pods()?;
    let launcher = pods.iter().find(|pod| pod["metadata"]["name"] == "wide-launcher");
    let table = &launcher.context("no launcher")?["metadata"]["annotations"]["unisono.dev/table"];
    let table: Value = serde_json::from_str(table.as_str().unwrap_or("{}"))?;
    let told = table["hosts"].as_array().map_or(0, Vec::len);
    let listed =
        story.kubectl(&["get", "configmap/wide-config", "--output=jsonpath={.data.hostfile}"])?;
    // What is elastic asks this script, again and again, in the launcher that runs.
    let script = ["exec", "wide-launcher", "--", "/etc/mpi/discover_hosts.sh"];
    let discovered = story.kubectl(&script)?.lines().count();
    let counts = [told, listed.lines().count(), discovered, pods.len() - 1];
    Ok(counts == [workers; 4])
}

fn uid(story: &Story<'_>, pod: &str) -> anyhow::Result<String> {
    story.kubectl(&["get", "pod", pod, "--output=jsonpath={.metadata.uid}"])
}

pub(crate) fn launcher_last(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "last", async |story: &Story<'_>| {
        let mut job = job("patient", LINE);
        job["spec"]["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        story.submit(&job)?;
        // Its workers go at the end: they are looked at as soon as the launcher exists.
        let launcher = "training.kubeflow.org/job-role";
        let deadline = std::time::Instant::now() + PATIENCE;
        let pods = loop {
            story.tick("patient").await?;
            let pods = story.pods()?;
            if pods.iter().any(|pod| pod["metadata"]["labels"][launcher] == "launcher") {
                break pods;
            }
            ensure!(std::time::Instant::now() < deadline, "no launcher: {pods:?}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        };
        let (launchers, workers): (Vec<&Value>, Vec<&Value>) =
            pods.iter().partition(|pod| pod["metadata"]["labels"][launcher] == "launcher");
        ensure!(workers.len() == 2, "{workers:?}");
        let created = launchers[0]["metadata"]["creationTimestamp"].as_str().context("no time")?;
        for worker in workers {
            let began = &worker["status"]["containerStatuses"][0]["state"]["running"]["startedAt"];
            let began = began.as_str().with_context(|| format!("it does not run: {worker}"))?;
            ensure!(created >= began, "created at {created}, and a worker began at {began}");
        }
        succeeds(story, "patient", "job/patient-launcher").await
    })
}

pub(crate) fn expired(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "expired", async |story: &Story<'_>| {
        let mut job = job("brief", "true");
        job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = json!(0);
        story.submit(&job)?;
        story.drive("brief", unisono_plan::Status::is_terminal).await?;
        // With it goes everything it owned.
        wait::until(PATIENCE, "nothing to be left", || {
            let left =
                story.kubectl(&["get", "mpijobs,pods,jobs,services,secrets", "--output=name"])?;
            let maps = story.kubectl(&["get", "configmaps", "--output=name"])?;
            Ok((left.is_empty() && !maps.contains("brief")).then_some(()))
        })
    })
}
