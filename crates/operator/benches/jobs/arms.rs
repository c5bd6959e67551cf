//! Operators as processes of their own: jobs are created, their launchers end, and what that took is read from outside.

use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::PostParams;
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, FAKE_NODE_TAINT, audit, usage, wait};

use crate::inside::{all_have, inside, jobs};
use crate::kubelet::{Begun, end_launchers};
use crate::operator::{Operator, USER};
use crate::reference::{self, Reference};
use crate::support::jobs_path;
use crate::{AT_ONCE, Cost, PATIENCE, Size};

/// The version of jobs that have the fewest objects: no Service, no keys for ssh, no batch Job.
pub(crate) const V1: &str = "v1";

/// The version of jobs that the reference runs, too.
const V2BETA1: &str = "v2beta1";

/// An operator that runs.
#[derive(Clone, Copy)]
struct Running {
    /// Who asks, as the audit log says it.
    user: &'static str,
    pid: u32,
    /// When its launchers' commands have begun.
    begun: Begun,
}

pub(crate) fn own(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    own_of(cluster, size, V1)
}

pub(crate) fn own_v2beta1(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    own_of(cluster, size, V2BETA1)
}

fn own_of(cluster: &Cluster, size: Size, version: &str) -> anyhow::Result<Cost> {
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    let running = Running { user: USER, pid: operator.pid(), begun: Begun::WhenLetGo };
    let cost = cost(cluster, size, version, running).with_context(|| operator.log())?;
    operator.terminate()?;
    clear(cluster, version)?;
    Ok(cost)
}

pub(crate) fn reference(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    let operator = Reference::start(cluster)?;
    let running = Running {
        user: reference::USER,
        pid: operator.pid(),
        begun: Begun::WithWorkers(size.workers),
    };
    let cost = cost(cluster, size, V2BETA1, running).with_context(|| operator.log())?;
    drop(operator);
    clear(cluster, V2BETA1)?;
    Ok(cost)
}

fn cost(cluster: &Cluster, size: Size, version: &str, operator: Running) -> anyhow::Result<Cost> {
    let Running { user, pid, begun: commands } = operator;
    let (mark, revision) = (cluster.audit_mark()?, cluster.etcd_revision()?);
    // Its start and its first lists are no job's.
    let before = usage::of_process(pid)?.processor;
    let begun = Instant::now();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let end = |client| end_launchers(client, size.jobs, commands);
        let ends = scope.spawn(move || inside(cluster, end));
        create_all(cluster, size, version)?;
        ends.join().map_err(|_| anyhow!("the launchers' thread panicked"))??;
        inside(cluster, async |client| {
            all_have(jobs(&client, version), size.jobs, "Succeeded").await
        })
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    // Its last requests remove the workers; they count, too.
    workers_are_gone(cluster)?;
    let requests = cluster.requests_since(mark)?.of_user(user).count(|it| it.verb != "watch");
    let revisions = cluster.etcd_revision()? - revision;
    let pods = last_pod(cluster, mark)?;
    let used = usage::of_process(pid)?;
    ensure!(used.peak > 0, "no memory was used");
    let processor = used.processor.saturating_sub(before);
    Ok(Cost { pods, seconds, requests, revisions, processor, peak: Some(used.peak) })
}

/// Seconds from the first job's creation to the last pod's.
pub(crate) fn last_pod(cluster: &Cluster, mark: audit::Mark) -> anyhow::Result<f64> {
    let is_creation = |it: &audit::Request, what: &str| it.verb == "create" && it.resource == what;
    cluster.span_since(
        mark,
        |it| is_creation(it, "mpijobs.kubeflow.org"),
        |it| is_creation(it, "pods"),
    )
}

pub(crate) fn workers_are_gone(cluster: &Cluster) -> anyhow::Result<()> {
    let workers = "/api/v1/namespaces/default/pods?labelSelector=bench-role%3Dworker&limit=1";
    wait::until(PATIENCE, "every worker to be gone", || {
        let list = cluster.api().get(workers)?;
        Ok(list["items"].as_array().is_some_and(Vec::is_empty).then_some(()))
    })
}

/// Creates all jobs, some at once.
pub(crate) fn create_all(cluster: &Cluster, size: Size, version: &str) -> anyhow::Result<()> {
    inside(cluster, async |client| {
        let (all, parameters) = (jobs(&client, version), PostParams::default());
        let create = async |number| -> anyhow::Result<()> {
            let object = serde_json::from_value(job(version, number, size.workers))?;
            all.create(&parameters, &object).await?;
            Ok(())
        };
        let created = stream::iter(0..size.jobs).map(create).buffer_unordered(AT_ONCE);
        created.try_collect().await
    })
}

/// Removes all jobs at once, and waits until their pods are gone.
pub(crate) fn clear(cluster: &Cluster, version: &str) -> anyhow::Result<()> {
    cluster.api().delete(&format!("{}?propagationPolicy=Background", jobs_path(version)))?;
    let pods = "/api/v1/namespaces/default/pods".to_owned();
    wait::until(PATIENCE, "all jobs to be gone", || {
        for path in [jobs_path(version), pods.clone()] {
            let list = cluster.api().get(&format!("{path}?limit=1"))?;
            if list["items"].as_array().is_none_or(|items| !items.is_empty()) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
}

/// A job of a version.
pub(crate) fn job(version: &str, number: u32, workers: u32) -> Value {
    let mut job = json!({
        "apiVersion": format!("kubeflow.org/{version}"),
        "kind": "MPIJob",
        "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"template": template("launcher")},
                "Worker": {"replicas": workers, "template": template("worker")},
            },
        },
    });
    match version {
        "v2beta1" => job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"}),
        _ => job["spec"]["cleanPodPolicy"] = json!("Running"),
    }
    job
}

/// A pod for fake nodes.
pub(crate) fn template(role: &str) -> Value {
    json!({
        "metadata": {"labels": {"bench-role": role}},
        "spec": {
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{"key": FAKE_NODE_TAINT, "operator": "Exists"}],
            "containers": [{"name": "main", "image": "lab/x:1", "command": ["mpirun", "/x"]}],
        },
    })
}
