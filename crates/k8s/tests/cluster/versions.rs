//! A job of each version of the API runs to its end, with everything that its version promises.

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_plan::Verdict;
use unisono_testcluster::{Cluster, Image, audit};

use crate::story::{Story, tell};

/// Says where each rank runs, then sums over all of them.
pub(crate) const LINE: &str =
    "mpirun /programs/openmpi4/hello && mpirun /programs/openmpi4/allreduce";

/// A container of the Open MPI 4 image.
pub(crate) fn container(command: &[&str]) -> Value {
    let mut container = json!({
        "name": "main",
        "image": Image::OpenMpi4.reference(),
        "imagePullPolicy": "Never",
    });
    if !command.is_empty() {
        container["command"] = json!(command);
    }
    container
}

/// A v2beta1 job of two workers with two slots each.
pub(crate) fn job(name: &str, line: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 2,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [container(&["sh", "-c", line])]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [container(&[])]}}},
            },
        },
    })
}

/// Ranks 0 and 1 ran on the first worker, 2 and 3 on the second, and the sum was right.
pub(crate) fn ranks_are_placed(said: &str, name: &str) -> anyhow::Result<()> {
    for rank in 0..4 {
        let expected = format!("rank {rank} of 4 on {name}-worker-{}", rank / 2);
        ensure!(said.contains(&expected), "no {expected:?} in {said:?}");
    }
    Ok(())
}

/// Runs a job to its end, which must be a good one, and looks at what it said.
pub(crate) async fn succeeds(story: &Story<'_>, name: &str, logs_of: &str) -> anyhow::Result<()> {
    let status = story.finish(name).await?;
    ensure!(status.end().map(|end| end.verdict) == Some(Verdict::Succeeded), "{status:?}");
    ensure!(status.attempt == 0 && status.epoch == 0, "it took several tries: {status:?}");
    let said = story.kubectl(&["logs", logs_of])?;
    ranks_are_placed(&said, name)?;
    ensure!(said.matches("sums right").count() == 4, "{said}");
    Ok(())
}

/// Types and states of the conditions on a job object.
fn conditions(object: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.iter().map(|it| (text(&it["type"]), text(&it["status"]))).collect()
}

fn expect(object: &Value, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    let wanted: Vec<(String, String)> =
        wanted.iter().map(|(kind, status)| ((*kind).to_owned(), (*status).to_owned())).collect();
    let found = conditions(object);
    ensure!(found == wanted, "{found:?}");
    let status = &object["status"];
    ensure!(status["startTime"].is_string() && status["completionTime"].is_string(), "{status}");
    Ok(())
}

pub(crate) fn v2beta1(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "v2beta1", async |story: &Story<'_>| {
        let mark = cluster.audit_mark()?;
        story.submit(&job("pi", LINE))?;
        succeeds(story, "pi", "job/pi-launcher").await?;
        what_it_cost(&requests_since(cluster, mark)?)?;
        let mark = cluster.audit_mark()?;
        story.tick("pi").await?;
        let writes = requests_since(cluster, mark)?.count(|it| is_write(&it.verb));
        ensure!(writes == 0, "a look at a job that has ended writes {writes} times");
        // Workers that run are cleaned up; the launcher stays, for its log.
        ensure!(story.pod_names()? == ["pi-launcher"], "{:?}", story.pod_names()?);
        let object = story.object("pi").await?.as_json().clone();
        expect(&object, &[("Created", "True"), ("Running", "False"), ("Succeeded", "True")])?;
        ensure!(object["status"]["replicaStatuses"]["Launcher"]["succeeded"] == 1, "{object}");
        story.kubectl(&["wait", "--for=condition=complete", "job/pi-launcher", "--timeout=10s"])?;
        let data =
            story.kubectl(&["get", "configmap/pi-config", "--output=jsonpath={.data.hostfile}"])?;
        ensure!(data.starts_with("pi-worker-0.pi.v2beta1.svc slots=2\n"), "{data}");
        let kind = story.kubectl(&["get", "secret/pi-ssh", "--output=jsonpath={.type}"])?;
        ensure!(kind == "kubernetes.io/ssh-auth", "{kind}");
        story.kubectl(&["get", "service/pi"])?;
        Ok(())
    })
}

/// Other stories run at the same time, each in its own namespace.
fn requests_since(cluster: &Cluster, mark: audit::Mark) -> anyhow::Result<audit::Counts> {
    Ok(cluster.requests_since(mark)?.of_user("admin").in_namespace("v2beta1"))
}

fn is_write(verb: &str) -> bool {
    !matches!(verb, "get" | "list" | "watch")
}

/// The job itself, four objects that its pods share, a Job and three pods are made; its workers are removed by one request; and how often its
/// status is written does not depend on how often anybody looks.
fn what_it_cost(requests: &audit::Counts) -> anyhow::Result<()> {
    let told: Vec<String> = requests
        .iter()
        .filter(|(request, _)| is_write(&request.verb))
        .map(|(request, count)| format!("{} {} {count}", request.verb, request.resource))
        .collect();
    let count = |verb: &str| requests.count(|request| request.verb == verb);
    let made_and_removed = [count("create"), count("deletecollection"), count("delete")];
    ensure!(made_and_removed == [9, 1, 0], "{told:?}");
    ensure!(count("patch") <= 16, "{told:?}");
    Ok(())
}

/// The same job, as the versions between wrote it.
fn older_job(version: &str, name: &str, clean_up: &str) -> Value {
    let mut job = job(name, LINE);
    job["apiVersion"] = json!(format!("kubeflow.org/{version}"));
    job["spec"]["runPolicy"] = json!({});
    job["spec"]["cleanPodPolicy"] = json!(clean_up);
    job
}

pub(crate) fn v1(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "v1", async |story: &Story<'_>| {
        story.submit(&older_job("v1", "bert", "None"))?;
        succeeds(story, "bert", "bert-launcher").await?;
        // None are cleaned up, and no Job is made: the launcher is a pod by itself.
        let pods = story.pod_names()?;
        ensure!(pods == ["bert-launcher", "bert-worker-0", "bert-worker-1"], "{pods:?}");
        ensure!(story.kubectl(&["get", "jobs", "--output=name"])?.is_empty());
        let object = story.object("bert").await?.as_json().clone();
        expect(&object, &[("Created", "True"), ("Running", "False"), ("Succeeded", "True")])?;
        let found = story.kubectl(&[
            "get",
            "pods",
            "--output=name",
            "-lmpi-job-name=bert,mpi-job-role=worker",
        ])?;
        ensure!(found.lines().count() == 2, "{found}");
        Ok(())
    })
}

pub(crate) fn v1alpha2(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "v1alpha2", async |story: &Story<'_>| {
        story.submit(&older_job("v1alpha2", "stencil", "All"))?;
        succeeds(story, "stencil", "job/stencil-launcher").await?;
        ensure!(story.pod_names()? == ["stencil-launcher"], "{:?}", story.pod_names()?);
        let object = story.object("stencil").await?.as_json().clone();
        expect(&object, &[("Created", "True"), ("Running", "False"), ("Succeeded", "True")])?;
        ensure!(object["status"]["replicaStatuses"]["Worker"] == json!({}), "{object}");
        let found = story.kubectl(&["logs", "-lmpi_job_name=stencil,mpi_role_type=launcher"])?;
        ensure!(found.contains("sums right"), "{found}");
        Ok(())
    })
}

pub(crate) fn v1alpha1(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "v1alpha1", async |story: &Story<'_>| {
        let mut main = container(&["sh", "-c", LINE]);
        main["resources"] = json!({"requests": {"cpu": "10m"}});
        story.submit(&json!({
            "apiVersion": "kubeflow.org/v1alpha1",
            "kind": "MPIJob",
            "metadata": {"name": "legacy"},
            "spec": {"replicas": 2, "slotsPerWorker": 2, "template": {"spec": {"containers": [main]}}},
        }))?;
        succeeds(story, "legacy", "job/legacy-launcher").await?;
        ensure!(story.pod_names()? == ["legacy-launcher"], "{:?}", story.pod_names()?);
        let object = story.object("legacy").await?.as_json().clone();
        ensure!(object["status"]["launcherStatus"] == "Succeeded", "{object}");
        ensure!(object["status"]["workerReplicas"] == 0, "{object}");
        Ok(())
    })
}
