//! One small job on a real node, from its creation to its end, against one pod that does the same work alone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::operator::Operator;
use crate::support::jobs_path;
use crate::{print, succeeded};

/// How often each arm runs, in turns.
const RUNS: usize = 5;

/// Runs both arms and prints their medians.
pub(crate) fn run(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    let (mut floor, mut jobs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        floor.push(pod(cluster)?);
        jobs.push(job(cluster)?);
    }
    operator.terminate()?;
    let (floor, job) = (median(&mut floor), median(&mut jobs));
    let ratio = job.as_secs_f64() / floor.as_secs_f64();
    print(&format!(
        "two workers on a real node, create to Succeeded: {:.2} s; one pod with a local mpirun: {:.2} s; ratio {ratio:.2}\n",
        job.as_secs_f64(),
        floor.as_secs_f64()
    ));
    Ok(())
}

fn pod(cluster: &Cluster) -> anyhow::Result<Duration> {
    let pods = "/api/v1/namespaces/default/pods";
    let begun = Instant::now();
    let object =
        json!({"metadata": {"name": "floor"}, "spec": template("--oversubscribe")["spec"]});
    cluster.api().create(pods, &object)?;
    wait::until(Duration::from_secs(60), "the pod to succeed", || {
        let pod = cluster.api().get(&format!("{pods}/floor"))?;
        Ok((pod["status"]["phase"] == "Succeeded").then_some(()))
    })?;
    let took = begun.elapsed();
    cluster.kubectl(&["delete", "pod", "floor", "--wait"])?;
    Ok(took)
}

fn job(cluster: &Cluster) -> anyhow::Result<Duration> {
    let mut worker = template("");
    if let Some(container) = worker["spec"]["containers"][0].as_object_mut() {
        container.shift_remove("command");
    }
    let begun = Instant::now();
    let object = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "real"},
        "spec": {"mpiReplicaSpecs": {
            "Launcher": {"template": template("")},
            "Worker": {"replicas": 2, "template": worker},
        }},
    });
    cluster.api().create(&jobs_path("v2beta1"), &object)?;
    wait::until(Duration::from_secs(60), "the job to succeed", || {
        let job = cluster.api().get(&format!("{}/real", jobs_path("v2beta1")))?;
        Ok(succeeded(&job).then_some(()))
    })?;
    let took = begun.elapsed();
    cluster.kubectl(&["delete", "mpijob", "real", "--cascade=foreground"])?;
    Ok(took)
}

fn template(option: &str) -> Value {
    json!({"spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "main",
            "image": Image::OpenMpi4.reference(),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", format!("mpirun --allow-run-as-root {option} -np 2 hostname")],
        }],
    }})
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
