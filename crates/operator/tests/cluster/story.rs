//! Jobs that really run, and what is asked about them.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::operator::Operator;
use crate::support::jobs_path;

/// How long a small job may take on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A job of a version with two workers of two slots whose launcher runs a line of shell.
pub(crate) fn job(version: &str, name: &str, line: &str) -> Value {
    let template = json!({"spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "main",
            "image": Image::OpenMpi4.reference(),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", line],
        }],
    }});
    let mut worker = template.clone();
    if let Some(container) = worker.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut)
    {
        container.shift_remove("command");
    }
    let spec = match version {
        "v1alpha1" => json!({"replicas": 2, "slotsPerWorker": 2, "template": template}),
        _ => json!({
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {
                "Launcher": {"template": template},
                "Worker": {"replicas": 2, "template": worker},
            },
        }),
    };
    json!({
        "apiVersion": format!("kubeflow.org/{version}"),
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The line that starts four ranks.
pub(crate) const HELLO: &str = "mpirun --allow-run-as-root -np 4 /programs/openmpi4/hello";

/// Creates a job.
pub(crate) fn create(cluster: &Cluster, job: &Value) -> anyhow::Result<Value> {
    let version = job["apiVersion"].as_str().and_then(|it| it.strip_prefix("kubeflow.org/"));
    cluster.api().create(&jobs_path(version.context("no version")?), job)
}

/// The job as it is.
pub(crate) fn get(cluster: &Cluster, name: &str) -> anyhow::Result<Value> {
    cluster.api().get(&format!("{}/{name}", jobs_path("v2beta1")))
}

/// Changes fields of a job.
pub(crate) fn merge(cluster: &Cluster, name: &str, fields: &Value) -> anyhow::Result<Value> {
    cluster.api().merge(&format!("{}/{name}", jobs_path("v2beta1")), fields)
}

/// Waits until the job is as wanted; the operator's last words are in the fault when it never is.
pub(crate) fn until(
    cluster: &Cluster,
    operator: &Operator,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let found = wait::until(PATIENCE, &format!("{name} to be {what}"), || {
        let job = get(cluster, name)?;
        Ok(is(&job).then_some(job))
    });
    found.with_context(|| {
        let status = get(cluster, name).map(|job| job["status"].to_string()).unwrap_or_default();
        let pods = cluster.kubectl(&["get", "pods", "--output=wide"]).unwrap_or_default();
        let log = operator.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(30)..].join("\n");
        format!("status: {status}\n{pods}\n{last}")
    })
}

/// Waits for the job's good end.
pub(crate) fn succeeds(
    cluster: &Cluster,
    operator: &Operator,
    name: &str,
) -> anyhow::Result<Value> {
    let job = until(cluster, operator, name, "at its end", |job| {
        holds(job, "Succeeded")
            || holds(job, "Failed")
            || job["status"]["completionTime"].is_string()
    })?;
    if holds(&job, "Failed") || job["status"]["launcherStatus"] == "Failed" {
        let logs = cluster.kubectl(&[
            "logs",
            "--selector",
            &format!("training.kubeflow.org/job-name={name}"),
            "--tail=20",
            "--prefix",
        ]);
        bail!("{name} failed: {}\n{}\n{}", job["status"], logs.unwrap_or_default(), operator.log());
    }
    Ok(job)
}

/// Whether a condition holds.
pub(crate) fn holds(job: &Value, kind: &str) -> bool {
    condition(job, kind).is_some_and(|it| it["status"] == "True")
}

/// A condition of a job.
pub(crate) fn condition<'job>(job: &'job Value, kind: &str) -> Option<&'job Value> {
    job["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// The names of a job's pods, in order.
pub(crate) fn pods(cluster: &Cluster, name: &str) -> anyhow::Result<Vec<String>> {
    let list = cluster.api().get(&format!(
        "/api/v1/namespaces/default/pods?labelSelector=training.kubeflow.org/job-name%3D{name}"
    ))?;
    let mut names: Vec<String> = list["items"]
        .as_array()
        .context("no list")?
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// Reasons and types of the events about a job, in the order they were told.
pub(crate) fn events(cluster: &Cluster, job: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let uid = job["metadata"]["uid"].as_str().context("no uid")?;
    let path =
        format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}");
    let list = cluster.api().get(&path)?;
    let mut events = list["items"].as_array().context("no list")?.clone();
    let version = |it: &Value| {
        it["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok())
    };
    events.sort_by_key(version);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(events.iter().map(|it| (text(&it["type"]), text(&it["reason"]))).collect())
}

/// Removes a job, and waits until its pods are gone.
pub(crate) fn remove(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let path = format!("{}/{name}?propagationPolicy=Foreground", jobs_path("v2beta1"));
    cluster.api().delete(&path)?;
    wait::until(PATIENCE, &format!("{name} to be gone"), || {
        let path = format!("{}/{name}", jobs_path("v2beta1"));
        Ok(cluster.api().find(&path)?.is_none().then_some(()))
    })
}
