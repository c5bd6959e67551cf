//! The rows of the contract that no other story tells: how a job of each version goes on and ends, in that version's own words.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_job::Policies;
use unisono_testcluster::{Cluster, wait};

use crate::operator::Start;
use crate::story::{GATED, PATIENCE, Story, condition, holds, job, tell, tell_alone};
use crate::support::put;

/// A condition as its version writes it: kind, state, reason, and how the message ends.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// The conditions are these and no others.
fn are(job: &Value, rows: &[Row]) -> anyhow::Result<()> {
    let found = job["status"]["conditions"].as_array().context("no conditions")?;
    ensure!(found.len() == rows.len(), "{found:?}");
    for (kind, status, reason, message) in rows {
        let found = condition(job, kind).with_context(|| format!("no {kind}"))?;
        ensure!(found["status"] == *status && found["reason"] == *reason, "{found}");
        let told = found["message"].as_str().unwrap_or_default();
        ensure!(told.ends_with(message), "{found}");
    }
    Ok(())
}

fn ended(story: &Story<'_>, name: &str) -> anyhow::Result<Value> {
    let job = story.until(name, "failed", |job| holds(job, "Failed"))?;
    ensure!(job["status"]["completionTime"].is_string(), "{}", job["status"]);
    Ok(job)
}

/// v1alpha2 says Restarting between two tries, in place of Running, and Failed when none is left.
pub(crate) fn v1alpha2_restarts_and_fails(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "tour-v1alpha2", |story, operator| {
        let mut again = job("v1alpha2", "again", &format!("{GATED}; exit 3"));
        again["spec"]["backoffLimit"] = json!(1);
        story.create(&again)?;
        story.until("again", "running", |job| holds(job, "Running"))?;
        story.open("again")?;
        let restarting = story.until("again", "restarting", |job| holds(job, "Restarting"))?;
        are(
            &restarting,
            &[
                ("Created", "True", "MPIJobCreated", "is created."),
                ("Restarting", "True", "MPIJobRestarting", "is restarting."),
            ],
        )?;
        let running = story.until("again", "running again", |job| holds(job, "Running"))?;
        ensure!(condition(&running, "Restarting").is_none(), "{}", running["status"]);
        story.open("again")?;
        are(
            &ended(story, "again")?,
            &[
                ("Created", "True", "MPIJobCreated", "is created."),
                ("Running", "False", "MPIJobRunning", "is running."),
                ("Failed", "True", "MPIJobFailed", "has failed"),
            ],
        )?;
        for line in [
            "mpi_operator_jobs_restarted_total 1\n",
            "mpi_operator_jobs_failed_total 1\n",
            "unisono_operator_time_to_first_rank_seconds_count 1\n",
        ] {
            wait::until(PATIENCE, line, || {
                Ok(operator.answer(cluster, "/metrics")?.contains(line).then_some(()))
            })?;
        }
        Ok(())
    })
}

/// v1 fails with its own reason, and says how many workers were evicted when that is why.
pub(crate) fn v1_fails_and_is_evicted(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "tour-v1", |story, _| {
        let mut failing = job("v1", "failing", "exit 3");
        failing["spec"]["runPolicy"] = json!({"backoffLimit": 0});
        story.create(&failing)?;
        let failed = ended(story, "failing")?;
        ensure!(condition(&failed, "Restarting").is_none(), "{}", failed["status"]);
        let told = condition(&failed, "Failed").context("no condition")?;
        ensure!(told["reason"] == "MPIJobFailed", "{told}");

        // Every time all begin again, until that has happened too often.
        story.create(&job("v1", "evicted", "sleep 600"))?;
        for epoch in 0..=Policies::DEFAULT_GANG_RESTARTS {
            story.until("evicted", &format!("running at epoch {epoch}"), |job| {
                let own = &job["status"]["unisono"];
                own["epoch"] == epoch && own["running_since"].is_number()
            })?;
            story.evict("evicted-worker-1")?;
        }
        let told = ended(story, "evicted")?;
        let told = condition(&told, "Failed").context("no condition")?;
        let expected = ("MPIJobEvicted", "1/2 workers are evicted");
        ensure!(told["reason"] == expected.0 && told["message"] == expected.1, "{told}");
        Ok(())
    })
}

/// A job that takes longer than it may, in every version that has a deadline.
pub(crate) fn deadlines(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "tour-deadlines", |story, _| {
        let versions = ["v1alpha1", "v1alpha2", "v1", "v2beta1"];
        for version in versions {
            let mut late = job(version, &format!("late-{version}"), "sleep 600");
            match version {
                "v1alpha1" | "v1alpha2" => late["spec"]["activeDeadlineSeconds"] = json!(3),
                _ => late["spec"]["runPolicy"] = json!({"activeDeadlineSeconds": 3}),
            }
            story.create(&late)?;
        }
        for version in versions {
            let name = format!("late-{version}");
            if version == "v1alpha1" {
                story.until(&name, "failed", |job| job["status"]["launcherStatus"] == "Failed")?;
                continue;
            }
            let failed = ended(story, &name)?;
            let told = condition(&failed, "Failed").context("no condition")?;
            let reason = if version == "v2beta1" { "DeadlineExceeded" } else { "MPIJobFailed" };
            ensure!(told["reason"] == reason, "{version}: {told}");
        }
        Ok(())
    })
}

/// Fewer workers: those with the highest indexes go, and the files that name the hosts say so.
pub(crate) fn scaled_down(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "tour-scale", |story, _| {
        story.create(&job("v2beta1", "less", GATED))?;
        story.until("less", "running", |job| holds(job, "Running"))?;
        let before = story.uids()?;
        story.merge("less", &json!({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}}))?;
        wait::until(PATIENCE, "one worker to be left", || {
            let map = format!("{}/less-config", story.path("/api/v1", "configmaps"));
            let hosts = story.cluster.api().get(&map)?["data"]["hostfile"].clone();
            let hosts = hosts.as_str().unwrap_or_default();
            let only = hosts.starts_with("less-worker-0.") && hosts.lines().count() == 1;
            let pods = story.uids()?;
            let rest = before.iter().filter(|(name, _)| name != "less-worker-1");
            Ok((only && rest.eq(&pods)).then_some(()))
        })?;
        story.open("less")?;
        story.succeeds("less").map(|_| ())
    })
}

/// A worker that has ended by itself stays for its log under Running, and goes under All. It must have ended when the operator hears
/// of the job's end: before, it would be missed, and after, it would be removed.
pub(crate) fn clean_up_of_the_ended(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "tour-clean-up", |story| {
        let operator = story.operator(&Start::default())?;
        let jobs = [("Running", vec!["ended-running-worker-1"]), ("All", vec![])];
        for (policy, _) in &jobs {
            let name = format!("ended-{}", policy.to_lowercase());
            let mut cleaned = job("v2beta1", &name, &format!("echo begun; {GATED}"));
            cleaned["spec"]["runPolicy"] = json!({"cleanPodPolicy": policy});
            let worker = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/command";
            put(&mut cleaned, worker, json!(["sh", "-c", GATED]))?;
            story.create(&cleaned)?;
        }
        for name in ["ended-running", "ended-all"] {
            story.until(name, "running", |job| holds(job, "Running"))?;
            // A launcher that runs may still wait for its workers: one that ends before was never there for it.
            wait::until(PATIENCE, &format!("the command of {name} to begin"), || {
                let said = story.kubectl(&["logs", &format!("{name}-launcher")])?;
                Ok(said.contains("begun").then_some(()))
            })?;
        }
        operator.terminate()?;
        for name in ["ended-running", "ended-all"] {
            for pod in [format!("{name}-worker-1"), format!("{name}-launcher")] {
                story.kubectl(&["exec", &pod, "--", "touch", "/tmp/go"])?;
                wait::until(PATIENCE, &format!("{pod} to end"), || {
                    let path = format!("{}/{pod}", story.path("/api/v1", "pods"));
                    let pod = story.cluster.api().get(&path)?;
                    Ok((pod["status"]["phase"] == "Succeeded").then_some(()))
                })?;
            }
        }
        let operator = story.operator(&Start::default())?;
        for (policy, left) in jobs {
            let name = format!("ended-{}", policy.to_lowercase());
            story.succeeds(&name)?;
            story.until(&name, "cleaned up", |_| {
                let pods = story.pods(&name).unwrap_or_default();
                pods.iter().filter(|it| it.contains("-worker-")).eq(left.iter())
            })?;
        }
        operator.terminate()
    })
}

/// A launcher that ends at once is never seen in phase Running: that it ran is told all the same.
pub(crate) fn never_seen_running(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "tour-short", |story, _| {
        for version in ["v1alpha2", "v1", "v2beta1"] {
            story.create(&job(version, &format!("short-{version}"), "true"))?;
        }
        for version in ["v1alpha2", "v1", "v2beta1"] {
            are(
                &story.succeeds(&format!("short-{version}"))?,
                &[
                    ("Created", "True", "MPIJobCreated", "is created."),
                    ("Running", "False", "MPIJobRunning", "is running."),
                    ("Succeeded", "True", "MPIJobSucceeded", "successfully completed."),
                ],
            )
            .with_context(|| version)?;
        }
        Ok(())
    })
}
