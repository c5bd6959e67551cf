//! A job's life as users know it: every version, suspension, clean-up, removal, scaling.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, FAKE_NODE_TAINT, Image, wait};

use crate::story::{GATED, HELLO, PATIENCE, condition, holds, job, tell};
use crate::support::{mpi_job, put};

pub(crate) fn every_version(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "every-version", |story, operator| {
        let versions = ["v1alpha1", "v1alpha2", "v1", "v2beta1"];
        for version in versions {
            story.create(&job(version, &format!("all-{version}"), HELLO))?;
        }
        for version in versions {
            let name = format!("all-{version}");
            let ended = story.succeeds(&name)?;
            let logs = story.kubectl(&[
                "logs",
                "--selector",
                &format!("mpi_job_name={name},mpi_role_type=launcher"),
            ])?;
            for rank in 0..4 {
                let line = format!("rank {rank} of 4 on {name}-worker-{}", rank / 2);
                ensure!(logs.contains(&line), "no {line:?} in {logs}");
            }
            let expected: &[&str] = match version {
                "v1alpha1" => {
                    ensure!(ended["status"]["launcherStatus"] == "Succeeded", "{ended}");
                    &[]
                }
                "v1alpha2" => &["MPIJobSucceeded"],
                _ => &["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"],
            };
            // What is waited for may be told, too, and everything is told after it was written down.
            wait::until(PATIENCE, &format!("the events of {name} to be {expected:?}"), || {
                let told = story.events(&ended)?.into_iter().map(|it| it.1);
                let told: Vec<String> = told.filter(|it| it.starts_with("MPIJob")).collect();
                ensure!(told.len() <= expected.len(), "{name}: {told:?}");
                Ok((told == expected).then_some(()))
            })?;
            if version != "v1alpha1" {
                contract(&ended).with_context(|| format!("{version}: {}", ended["status"]))?;
            }
        }
        let table = story.kubectl(&["get", "mpijobs"])?;
        for version in versions {
            let row = table.lines().find(|it| it.starts_with(&format!("all-{version} ")));
            let cells: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
            ensure!(cells.get(1..3) == Some(&["Succeeded", "2"][..]), "{version}: {table}");
        }
        let series =
            "mpi_operator_job_info{launcher=\"all-v1-launcher\",namespace=\"every-version\"} 1";
        for line in
            ["mpi_operator_jobs_created_total 4", "mpi_operator_jobs_successful_total 4", series]
        {
            wait::until(PATIENCE, line, || {
                Ok(operator.answer(cluster, "/metrics")?.contains(line).then_some(()))
            })?;
        }
        for version in versions {
            story.remove(&format!("all-{version}"))?;
        }
        wait::until(Duration::from_secs(30), "series to go", || {
            Ok((!operator.answer(cluster, "/metrics")?.contains("all-v1-launcher")).then_some(()))
        })?;
        Ok(())
    })
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
        ensure!(found["message"] == format!("MPIJob every-version/{name} {message}"), "{found}");
    }
    let replicas = &job["status"]["replicaStatuses"];
    ensure!(replicas["Launcher"]["succeeded"] == 1, "{replicas}");
    ensure!(job["status"]["startTime"].is_string() && job["status"]["completionTime"].is_string());
    Ok(())
}

/// A file as people wrote them for v1alpha2, a misspelt key included, and its status as `kubectl get` printed it.
pub(crate) fn as_in_2020(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "seed", |story, _| {
        let container = |name: &str| {
            json!({
                "name": name,
                "image": Image::OpenMpi4.reference(),
                "imagePullPolicy": "IfNotPresent",
                "resources": {"request": {"cpu": 1, "memory": "6Gi"}},
            })
        };
        let mut launcher = container("mpi-launcher");
        launcher["command"] = json!(["/bin/bash", "-c"]);
        launcher["args"] = json!(["mpirun --allow-run-as-root /programs/openmpi4/hello"]);
        let role = |container: Value| json!({"replicas": 1, "template": {"spec": {"containers": [container]}}});
        let spec = json!({
            "slotsPerWorker": 2,
            "cleanPodPolicy": "Running",
            "mpiReplicaSpecs": {
                "Launcher": role(launcher),
                "Worker": role(container("mpi-worker")),
            },
        });
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("train.json");
        std::fs::write(&path, mpi_job("v1alpha2", "mnist", &spec).to_string())?;
        story.kubectl(&["apply", "--filename", path.to_str().context("no text")?])?;
        story.succeeds("mnist")?;
        story.until("mnist", "without workers", |job| {
            job["status"]["replicaStatuses"]["Worker"] == json!({})
        })?;
        let seen = cluster.api().get(&format!("{}/mnist", story.jobs_path("v1alpha2")))?;
        let mut status = seen["status"].clone();
        put(&mut status, "/unisono", Value::Null)?;
        let times = (0..3).flat_map(|index| {
            ["lastTransitionTime", "lastUpdateTime"].map(|it| format!("/conditions/{index}/{it}"))
        });
        for pointer in times.chain(["/startTime", "/completionTime"].map(str::to_owned)) {
            let time = status.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
            let is_time = time.len() == "2020-05-15T06:05:41Z".len() && time.ends_with('Z');
            ensure!(is_time, "{pointer}: {}", seen["status"]);
            put(&mut status, &pointer, Value::Null)?;
        }
        let condition = |kind: &str, holds: &str, says: &str| {
            json!({
                "type": kind, "status": holds, "reason": format!("MPIJob{kind}"),
                "message": format!("MPIJob seed/mnist {says}"),
            })
        };
        let expected = json!({
            "conditions": [
                condition("Created", "True", "is created."),
                condition("Running", "False", "is running."),
                condition("Succeeded", "True", "successfully completed."),
            ],
            "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {}},
        });
        ensure!(status == expected, "{}", seen["status"]);
        let selector = "mpi_job_name=mnist,mpi_role_type=launcher";
        let launcher = story.kubectl(&["get", "pods", "--selector", selector, "--output=name"])?;
        let logs = story.kubectl(&["logs", "--follow", launcher.trim()])?;
        for rank in 0..2 {
            let line = format!("rank {rank} of 2 on mnist-worker-0");
            ensure!(logs.contains(&line), "no {line:?} in {logs}");
        }
        Ok(())
    })
}

pub(crate) fn suspended(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "suspended", |story, _| {
        let mut held = job("v2beta1", "held", HELLO);
        held["spec"]["runPolicy"] = json!({"suspend": true});
        story.create(&held)?;
        story.until("held", "suspended", |job| holds(job, "Suspended"))?;
        ensure!(story.pods("held")?.is_empty(), "a suspended job has pods");
        story.merge("held", &json!({"spec": {"runPolicy": {"suspend": false}}}))?;
        let ended = story.succeeds("held")?;
        let resumed = condition(&ended, "Suspended").context("no Suspended")?;
        ensure!(resumed["status"] == "False" && resumed["reason"] == "MPIJobResumed", "{resumed}");

        story.create(&job("v2beta1", "paused", "sleep 600"))?;
        story.until("paused", "running", |job| holds(job, "Running"))?;
        story.merge("paused", &json!({"spec": {"runPolicy": {"suspend": true}}}))?;
        story.until("paused", "stopped", |job| {
            // The launcher's pod has ended and stays, for its log.
            let workers =
                story.pods("paused").map(|it| it.iter().any(|it| it.contains("-worker-")));
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
        story.merge("paused", &json!({"spec": spec}))?;
        story.succeeds("paused")?;
        Ok(())
    })
}

pub(crate) fn managed_elsewhere(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "managed-elsewhere", |story, _| {
        let mut foreign = job("v2beta1", "foreign", HELLO);
        foreign["spec"]["runPolicy"] = json!({"managedBy": "kueue.x-k8s.io/multikueue"});
        story.create(&foreign)?;
        // Jobs are looked at in the order they come: when a later one is through, this one was looked at.
        story.create(&job("v2beta1", "later", HELLO))?;
        story.succeeds("later")?;
        ensure!(story.get("foreign")?["status"].is_null(), "it was written to");
        ensure!(story.pods("foreign")?.is_empty(), "it has pods");
        Ok(())
    })
}

pub(crate) fn clean_up(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "clean-up", |story, _| {
        for policy in ["None", "Running", "All"] {
            let name = format!("clean-{}", policy.to_lowercase());
            let mut cleaned = job("v2beta1", &name, "exit 0");
            cleaned["spec"]["runPolicy"] = json!({"cleanPodPolicy": policy});
            story.create(&cleaned)?;
        }
        for (policy, workers) in [("none", 2), ("running", 0), ("all", 0)] {
            let name = format!("clean-{policy}");
            story.succeeds(&name)?;
            story.until(&name, "cleaned up", |_| {
                let left = story.pods(&name).unwrap_or_default();
                left.iter().filter(|pod| pod.contains("-worker-")).count() == workers
            })?;
            let launchers = story.pods(&name)?.iter().filter(|it| it.contains("-launcher")).count();
            ensure!(launchers == 1, "{policy}: the launcher's log is gone");
        }
        Ok(())
    })
}

pub(crate) fn removed(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "removed", |story, _| {
        let mut short = job("v2beta1", "short-lived", "exit 0");
        short["spec"]["runPolicy"] = json!({"ttlSecondsAfterFinished": 0});
        story.create(&short)?;
        wait::until(Duration::from_secs(90), "the job to be gone", || {
            let path = format!("{}/short-lived", story.jobs_path("v2beta1"));
            Ok(cluster.api().find(&path)?.is_none().then_some(()))
        })?;
        Ok(())
    })
}

pub(crate) fn scaled(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "scaled", |story, _| {
        let mut wide = job("v2beta1", "wide", GATED);
        put(&mut wide, "/spec/mpiReplicaSpecs/Worker/replicas", json!(1))?;
        story.create(&wide)?;
        story.until("wide", "running", |job| holds(job, "Running"))?;
        for (workers, expected) in [
            (3, vec!["wide-launcher", "wide-worker-0", "wide-worker-1", "wide-worker-2"]),
            (1, vec!["wide-launcher", "wide-worker-0"]),
        ] {
            story.kubectl(&[
                "scale",
                "mpijobs.v2beta1.kubeflow.org/wide",
                &format!("--replicas={workers}"),
            ])?;
            story.until("wide", &format!("{workers} workers wide"), |_| {
                let mut found = story.pods("wide").unwrap_or_default();
                found.iter_mut().for_each(|it| {
                    if it.starts_with("wide-launcher") {
                        "wide-launcher".clone_into(it)
                    }
                });
                found == expected
            })?;
        }
        story.open("wide")?;
        story.succeeds("wide")?;
        Ok(())
    })
}

/// The workers are on nodes that only pretend; the launcher is real, and finds a host table that no annotation could hold.
pub(crate) fn thousand(cluster: &Cluster) -> anyhow::Result<()> {
    const WORKERS: usize = 1_000;
    tell(cluster, "thousand", |story, _| {
        cluster.add_fake_nodes(5, 250)?;
        let mut wide = job("v2beta1", "thousand", "true");
        let worker = "/spec/mpiReplicaSpecs/Worker";
        put(&mut wide, &format!("{worker}/replicas"), json!(WORKERS))?;
        let pod = format!("{worker}/template/spec");
        put(&mut wide, &format!("{pod}/nodeSelector"), json!({"type": "kwok"}))?;
        let toleration = json!([{"key": FAKE_NODE_TAINT, "operator": "Exists"}]);
        put(&mut wide, &format!("{pod}/tolerations"), toleration)?;
        story.create(&wide)?;
        let table = ["exec", "thousand-launcher", "--", "cat", "/etc/unisono/agent/table"];
        let known =
            wait::until(Duration::from_secs(180), "the launcher to have its table", || {
                let told = story.kubectl(&table).unwrap_or_default();
                Ok(serde_json::from_str::<Value>(&told).ok())
            })?;
        let hosts = known["hosts"].as_array().context("no hosts")?;
        ensure!(hosts.len() == WORKERS, "{} hosts", hosts.len());
        let launcher = format!("{}/thousand-launcher", story.path("/api/v1", "pods"));
        let launcher = cluster.api().get(&launcher)?;
        ensure!(known["identity"] == launcher["metadata"]["uid"], "{}", known["identity"]);
        let annotations = &launcher["metadata"]["annotations"];
        ensure!(annotations["unisono.dev/table"].is_null(), "it is in an annotation");
        ensure!(annotations["unisono.dev/table-digest"].is_string(), "{annotations}");
        Ok(())
    })
}
