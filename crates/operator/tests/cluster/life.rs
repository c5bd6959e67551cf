//! A job's life as users know it: every version, suspension, clean-up, removal, scaling.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::Cluster;

use crate::operator::Operator;
use crate::story::{
    HELLO, condition, create, events, get, holds, job, merge, pods, remove, succeeds, until,
};
use crate::support::put;

pub(crate) fn every_version(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let versions = ["v1alpha1", "v1alpha2", "v1", "v2beta1"];
    for version in versions {
        create(cluster, &job(version, &format!("all-{version}"), HELLO))?;
    }
    for version in versions {
        let name = format!("all-{version}");
        let ended = succeeds(cluster, &operator, &name)?;
        let logs = cluster.kubectl(&[
            "logs",
            "--selector",
            &format!("mpi_job_name={name},mpi_role_type=launcher"),
        ])?;
        for rank in 0..4 {
            let line = format!("rank {rank} of 4 on {name}-worker-{}", rank / 2);
            ensure!(logs.contains(&line), "no {line:?} in {logs}");
        }
        let told: Vec<String> = events(cluster, &ended)?.into_iter().map(|it| it.1).collect();
        match version {
            "v1alpha1" => {
                ensure!(ended["status"]["launcherStatus"] == "Succeeded", "{ended}");
                ensure!(told.is_empty(), "{told:?}");
            }
            "v1alpha2" => ensure!(told == ["MPIJobSucceeded"], "{told:?}"),
            _ => ensure!(told == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"], "{told:?}"),
        }
        if version != "v1alpha1" {
            contract(&ended).with_context(|| format!("{version}: {}", ended["status"]))?;
        }
    }
    let numbers = operator.answer(cluster, "/metrics")?;
    for line in ["mpi_operator_jobs_created_total 4", "mpi_operator_jobs_successful_total 4"] {
        ensure!(numbers.contains(line), "no {line} in {numbers}");
    }
    let series = "mpi_operator_job_info{launcher=\"all-v1-launcher\",namespace=\"default\"} 1";
    ensure!(numbers.contains(series), "{numbers}");
    for version in versions {
        remove(cluster, &format!("all-{version}"))?;
    }
    unisono_testcluster::wait::until(std::time::Duration::from_secs(30), "series to go", || {
        Ok((!operator.answer(cluster, "/metrics")?.contains("all-v1-launcher")).then_some(()))
    })?;
    operator.terminate()
}

/// Created, Running and Succeeded, as every version with conditions writes them.
fn contract(job: &Value) -> anyhow::Result<()> {
    let name = job["metadata"]["name"].as_str().context("no name")?;
    for (kind, status, reason, message) in [
        ("Created", "True", "MPIJobCreated", "is created."),
        ("Running", "False", "MPIJobRunning", "is running."),
        ("Succeeded", "True", "MPIJobSucceeded", "successfully completed."),
    ] {
        let found = condition(job, kind).with_context(|| format!("no {kind}"))?;
        ensure!(found["status"] == status && found["reason"] == reason, "{found}");
        ensure!(found["message"] == format!("MPIJob default/{name} {message}"), "{found}");
    }
    let replicas = &job["status"]["replicaStatuses"];
    ensure!(replicas["Launcher"]["succeeded"] == 1, "{replicas}");
    ensure!(job["status"]["startTime"].is_string() && job["status"]["completionTime"].is_string());
    Ok(())
}

pub(crate) fn suspended(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let mut held = job("v2beta1", "held", HELLO);
    held["spec"]["runPolicy"] = json!({"suspend": true});
    create(cluster, &held)?;
    until(cluster, &operator, "held", "suspended", |job| holds(job, "Suspended"))?;
    ensure!(pods(cluster, "held")?.is_empty(), "a suspended job has pods");
    merge(cluster, "held", &json!({"spec": {"runPolicy": {"suspend": false}}}))?;
    let ended = succeeds(cluster, &operator, "held")?;
    let resumed = condition(&ended, "Suspended").context("no Suspended")?;
    ensure!(resumed["status"] == "False" && resumed["reason"] == "MPIJobResumed", "{resumed}");
    remove(cluster, "held")?;

    create(cluster, &job("v2beta1", "paused", "sleep 600"))?;
    until(cluster, &operator, "paused", "running", |job| holds(job, "Running"))?;
    merge(cluster, "paused", &json!({"spec": {"runPolicy": {"suspend": true}}}))?;
    until(cluster, &operator, "paused", "stopped", |job| {
        // The launcher's pod has ended and stays, for its log.
        let workers = pods(cluster, "paused").map(|it| it.iter().any(|it| it.contains("-worker-")));
        let active = &job["status"]["replicaStatuses"]["Launcher"]["active"];
        holds(job, "Suspended")
            && !holds(job, "Running")
            && workers.is_ok_and(|any| !any)
            && active.is_null()
    })?;
    let launcher = "/spec/mpiReplicaSpecs/Launcher/template/spec/containers";
    let mut short = job("v2beta1", "paused", HELLO);
    let containers = short.pointer_mut(launcher).context("no containers")?.take();
    let edited = json!({"Launcher": {"template": {"spec": {"containers": containers}}}});
    let spec = json!({"runPolicy": {"suspend": false}, "mpiReplicaSpecs": edited});
    merge(cluster, "paused", &json!({"spec": spec}))?;
    succeeds(cluster, &operator, "paused")?;
    remove(cluster, "paused")?;
    operator.terminate()
}

pub(crate) fn managed_elsewhere(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let mut foreign = job("v2beta1", "foreign", HELLO);
    foreign["spec"]["runPolicy"] = json!({"managedBy": "kueue.x-k8s.io/multikueue"});
    create(cluster, &foreign)?;
    // Jobs are looked at in the order they come: when a later one is through, this one was looked at.
    create(cluster, &job("v2beta1", "later", HELLO))?;
    succeeds(cluster, &operator, "later")?;
    ensure!(get(cluster, "foreign")?["status"].is_null(), "it was written to");
    ensure!(pods(cluster, "foreign")?.is_empty(), "it has pods");
    remove(cluster, "foreign")?;
    remove(cluster, "later")?;
    operator.terminate()
}

pub(crate) fn clean_up(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    for policy in ["None", "Running", "All"] {
        let name = format!("clean-{}", policy.to_lowercase());
        let mut cleaned = job("v2beta1", &name, "exit 0");
        cleaned["spec"]["runPolicy"] = json!({"cleanPodPolicy": policy});
        create(cluster, &cleaned)?;
    }
    for (policy, workers) in [("none", 2), ("running", 0), ("all", 0)] {
        let name = format!("clean-{policy}");
        succeeds(cluster, &operator, &name)?;
        until(cluster, &operator, &name, "cleaned up", |_| {
            let left = pods(cluster, &name).unwrap_or_default();
            left.iter().filter(|pod| pod.contains("-worker-")).count() == workers
        })?;
        let launchers = pods(cluster, &name)?.iter().filter(|it| it.contains("-launcher")).count();
        ensure!(launchers == 1, "{policy}: the launcher's log is gone");
        remove(cluster, &name)?;
    }
    operator.terminate()
}

pub(crate) fn removed(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let mut short = job("v2beta1", "short-lived", "exit 0");
    short["spec"]["runPolicy"] = json!({"ttlSecondsAfterFinished": 0});
    create(cluster, &short)?;
    unisono_testcluster::wait::until(
        std::time::Duration::from_secs(90),
        "the job to be gone",
        || {
            let path = format!("{}/short-lived", crate::support::jobs_path("v2beta1"));
            Ok(cluster.api().find(&path)?.is_none().then_some(()))
        },
    )
    .with_context(|| operator.log())?;
    operator.terminate()
}

pub(crate) fn scaled(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let mut wide = job("v2beta1", "wide", "until test -e /tmp/go; do sleep 0.2; done");
    put(&mut wide, "/spec/mpiReplicaSpecs/Worker/replicas", json!(1))?;
    create(cluster, &wide)?;
    until(cluster, &operator, "wide", "running", |job| holds(job, "Running"))?;
    for (workers, expected) in [
        (3, vec!["wide-launcher", "wide-worker-0", "wide-worker-1", "wide-worker-2"]),
        (1, vec!["wide-launcher", "wide-worker-0"]),
    ] {
        cluster.kubectl(&[
            "scale",
            "mpijobs.v2beta1.kubeflow.org/wide",
            &format!("--replicas={workers}"),
        ])?;
        until(cluster, &operator, "wide", &format!("{workers} workers wide"), |_| {
            let mut found = pods(cluster, "wide").unwrap_or_default();
            found.iter_mut().for_each(|it| {
                if it.starts_with("wide-launcher") {
                    "wide-launcher".clone_into(it)
                }
            });
            found == expected
        })?;
    }
    let launcher = pods(cluster, "wide")?
        .into_iter()
        .find(|it| it.contains("-launcher"))
        .context("no launcher")?;
    cluster.kubectl(&["exec", &launcher, "--", "touch", "/tmp/go"])?;
    succeeds(cluster, &operator, "wide")?;
    remove(cluster, "wide")?;
    operator.terminate()
}
