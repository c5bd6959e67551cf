//! Jobs that fail, wait or are disturbed: each says what happened and why, where `kubectl describe` shows it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::story::{HELLO, PATIENCE, Story, condition, holds, job, tell};
use crate::support::put;

const LAUNCHER: &str = "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0";
const WORKER: &str = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0";

/// A job that is tried once.
fn once(name: &str, line: &str) -> anyhow::Result<Value> {
    let mut job = job("v2beta1", name, line);
    put(&mut job, "/spec/runPolicy", json!({"backoffLimit": 0, "cleanPodPolicy": "All"}))?;
    Ok(job)
}

/// The messages of a job's events of a kind.
fn told(story: &Story<'_>, name: &str, reason: &str) -> anyhow::Result<Vec<String>> {
    let fields = format!("involvedObject.name%3D{name},reason%3D{reason}");
    let events = story.path("/api/v1", "events");
    let list = story.cluster.api().get(&format!("{events}?fieldSelector={fields}"))?;
    let items = list["items"].as_array().context("no list")?;
    Ok(items.iter().filter_map(|it| it["message"].as_str().map(str::to_owned)).collect())
}

pub(crate) fn failures(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "failures", |story, _| {
        let ranks = "mpirun --allow-run-as-root -np 4 sh -c";
        // A rank of a millisecond would end before anybody saw where it ran.
        let of_rank = |what: &str| {
            format!("{ranks} '[ $OMPI_COMM_WORLD_RANK != 2 ] || {{ sleep 1; {what}; }}'")
        };
        let limit = |job: &mut Value, container: &str| {
            put(job, &format!("{container}/resources"), json!({"limits": {"memory": "48Mi"}}))
        };
        let mut starved_rank = once("starved-rank", &of_rank("tail /dev/zero"))?;
        limit(&mut starved_rank, WORKER)?;
        let mut starved_launcher = once("starved-launcher", "tail /dev/zero")?;
        limit(&mut starved_launcher, LAUNCHER)?;
        let mut no_program = once("no-program", "")?;
        put(
            &mut no_program,
            &format!("{LAUNCHER}/command"),
            json!(["/programs/none", "-np", "4"]),
        )?;
        let mut no_image = once("no-image", HELLO)?;
        put(&mut no_image, &format!("{LAUNCHER}/image"), json!("unisono.test/none:1"))?;
        let jobs = [
            (once("no-mpirun", "mpirun-of-mine -np 4 hello")?, "no `mpirun-of-mine` in image"),
            (no_program, "no `/programs/none` in image"),
            (once("no-script", "exec /etc/passwd")?, "`/etc/passwd` cannot be executed in image"),
            (
                once("bad-rank", &of_rank("exit 9"))?,
                "rank 2 on bad-rank-worker-1 ended with exit code 9",
            ),
            (
                starved_rank,
                "rank 2 on starved-rank-worker-1 was ended by signal 9 (SIGKILL): perhaps for want of memory",
            ),
            (starved_launcher, "starved-launcher-launcher ran out of memory: its limit is 48Mi"),
            (
                no_image,
                "no-image-launcher could not start: image unisono.test/none:1 of pod no-image-launcher is not to be had: \
                 Container image \"unisono.test/none:1\" is not present",
            ),
        ];
        for (job, _) in &jobs {
            story.create(job)?;
        }
        for (job, words) in &jobs {
            let name = job["metadata"]["name"].as_str().context("no name")?;
            let ended = story.until(name, "at its end", |job| holds(job, "Failed"))?;
            let failed = condition(&ended, "Failed").context("no condition")?;
            let message = failed["message"].as_str().unwrap_or_default();
            ensure!(message.contains(words), "{name}: {failed}");
            ensure!(ended["status"]["completionTime"].is_string(), "{name}: {}", ended["status"]);
            let described = wait::until(PATIENCE, &format!("{name} to be told"), || {
                let described = story.kubectl(&["describe", "mpijob", name])?;
                Ok(described.contains("FirstFailure").then_some(described))
            })?;
            ensure!(described.contains(words), "{name}: {described}");
        }
        Ok(())
    })
}

pub(crate) fn waiting(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "waiting", |story, _| {
        let mut wide = job("v2beta1", "wide", HELLO);
        let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
        put(&mut wide, &format!("{LAUNCHER}/resources"), asks("900"))?;
        put(&mut wide, &format!("{WORKER}/resources"), asks("10m"))?;
        story.create(&wide)?;
        let is_told = |job: &Value| {
            let why = job["status"]["unisono"]["why"][0].as_str().unwrap_or_default();
            why.starts_with("wide-launcher is not up: it cannot be scheduled: ")
                && why.contains("Insufficient cpu")
                && why.ends_with("; wide-worker-0 and 1 more hosts of this job hold 20m of CPU")
        };
        let job = story.until("wide", "told to be in its own way", is_told)?;
        ensure!(condition(&job, "Running").is_none(), "{}", job["status"]);
        let in_its_own_way = |text: &str| {
            // The event tells of the first worker that is seen to have a place, or of both.
            let held = ["-0 holds 10m", "-1 holds 10m", "-0 and 1 more hosts of this job hold 20m"];
            // Nor need the workers be up then.
            text.contains("wide-launcher")
                && text.contains(" is not up: it cannot be scheduled: ")
                && text.contains("Insufficient cpu")
                && held.iter().any(|it| text.contains(&format!("; wide-worker{it} of CPU")))
        };
        wait::until(PATIENCE, "a warning", || {
            let told = told(story, "wide", "Waiting")?;
            Ok(told.iter().any(|it| in_its_own_way(it)).then_some(()))
        })?;
        let described = story.kubectl(&["describe", "mpijob", "wide"])?;
        let events = described.split_once("\nEvents:").context("no events")?.1;
        let mut lines = events.lines().filter(|it| it.contains("Waiting"));
        ensure!(lines.any(in_its_own_way), "{described}");
        let told = told(story, "wide", "Waiting")?;
        ensure!(told.len() <= 2, "every change is told: {told:?}");
        Ok(())
    })
}

/// An Open MPI 5 that is kept from its host file starts every rank beside itself and ends well: the job says where they ran.
pub(crate) fn elsewhere(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "elsewhere", |story, _| {
        // Ranks of a millisecond would end before anybody saw where they ran.
        let line = "unset PRTE_MCA_prte_default_hostfile; \
                    /opt/openmpi5/bin/mpirun --allow-run-as-root -np 4 sh -c 'sleep 1'";
        let mut job = job("v2beta1", "homely", line);
        for container in [LAUNCHER, WORKER] {
            put(&mut job, &format!("{container}/image"), json!(Image::OtherMpis.reference()))?;
        }
        story.create(&job)?;
        let ended = story.succeeds("homely")?;
        let spread = condition(&ended, "Spread").context("it says nothing about its ranks")?;
        let words = "homely-launcher ran 4 of 4 ranks but has 0 slots; \
                     homely-worker-0 and 1 other ran none";
        ensure!(spread["status"] == "False" && spread["message"] == words, "{spread}");
        ensure!(spread["reason"] == "RanksElsewhere", "{spread}");
        wait::until(PATIENCE, "a warning", || {
            let told = told(story, "homely", "RanksElsewhere")?;
            Ok((told == [words]).then_some(()))
        })
    })
}

/// The API server refuses pods, and takes them later: the job says so, and runs.
pub(crate) fn quota(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "quota", |story, _| {
        let quotas = story.path("/api/v1", "resourcequotas");
        let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}});
        story.cluster.api().create(&quotas, &quota)?;
        story.create(&job("v2beta1", "refused", HELLO))?;
        story.until("refused", "waiting, and says for what", |job| {
            let why = job["status"]["unisono"]["why"].to_string();
            why.contains("create Pod refused-") && why.contains("exceeded quota: few")
        })?;
        let warned = told(story, "refused", "FailedWrite")?;
        ensure!(warned.iter().any(|it| it.contains("exceeded quota: few")), "{warned:?}");
        story.cluster.api().delete(&format!("{quotas}/few"))?;
        let ended = story.succeeds("refused")?;
        let why = ended["status"]["unisono"]["why"].to_string();
        ensure!(!why.contains("quota"), "{why}");
        Ok(())
    })
}

/// What somebody takes away is made anew, and the job ends well. A launcher Job is only a view: the pod runs on without it, and the next
/// try brings another one.
pub(crate) fn disturbed(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "disturbed", |story, _| {
        // The first try would wait for ever; later ones have a later table.
        let line = format!("grep -q '\"epoch\":0' /etc/unisono/agent/table && sleep 600; {HELLO}");
        let held = format!("until [ -e /tmp/told ]; do sleep 0.1; done; {HELLO}");
        let names = ["pod-deleted", "job-deleted", "both-deleted", "evicted"];
        for (name, line) in names.into_iter().zip([&line, &held, &line, &line]) {
            story.create(&job("v2beta1", name, line))?;
        }
        for name in names {
            story.until(name, "running", |job| holds(job, "Running"))?;
        }
        story.kubectl(&["delete", "pod", "pod-deleted-launcher", "--now", "--wait=false"])?;
        story.kubectl(&["delete", "job", "job-deleted-launcher"])?;
        story.kubectl(&["exec", "job-deleted-launcher", "--", "touch", "/tmp/told"])?;
        story.kubectl(&["delete", "job", "both-deleted-launcher"])?;
        story.kubectl(&["delete", "pod", "both-deleted-launcher", "--now", "--wait=false"])?;
        story.evict("evicted-worker-1")?;
        for name in names {
            let job = story.succeeds(name)?;
            ensure!(job["status"]["unisono"]["counted_failures"] == 0, "{}", job["status"]);
        }
        let job = story.get("job-deleted")?;
        ensure!(job["status"]["unisono"]["epoch"] == 0, "it began again: {}", job["status"]);
        let launcher_job = format!("{}/job-deleted-launcher", story.path("/apis/batch/v1", "jobs"));
        ensure!(cluster.api().find(&launcher_job)?.is_none(), "it was made for a pod that ran on");
        let complete = "--for=condition=complete";
        story.kubectl(&["wait", complete, "job/both-deleted-launcher", "--timeout=60s"])?;
        let told = told(story, "evicted", "FirstFailure")?;
        ensure!(told.iter().any(|it| it.starts_with("evicted-worker-1 was evicted")), "{told:?}");
        Ok(())
    })
}
