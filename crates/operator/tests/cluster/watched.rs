//! What people and programs see of an operator and of a job while both run: health, numbers, log lines, a launcher's words.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde_json::Value;
use unisono_testcluster::Cluster;

use crate::operator::Start;
use crate::story::{HELLO, Story, holds, job, tell, tell_alone};

/// Health, numbers by their names, and a log of one JSON object a line.
pub(crate) fn health(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "watched", |story| {
        let operator = story.operator(&Start { log_json: true, ..Start::default() })?;
        operator.says("working")?;
        story.create(&job("v2beta1", "seen", HELLO))?;
        story.succeeds("seen")?;
        // What happened is told after it was written down.
        operator.says("MPIJobSucceeded")?;
        let connections = operator.connections()?;
        ensure!(connections == 1, "all requests share one connection, and it has {connections}");
        ensure!(operator.answer(cluster, "/healthz")? == "ok\n", "it is not alive");
        ensure!(operator.answer(cluster, "/readyz")? == "ready\n", "it is not ready");
        let numbers = operator.answer(cluster, "/metrics")?;
        for name in [
            "unisono_operator_queue_depth",
            "unisono_operator_reconcile_seconds_count",
            "unisono_operator_reconcile_errors_total",
            "unisono_operator_time_to_first_rank_seconds_count",
            "unisono_operator_jobs",
            "unisono_operator_leader",
        ] {
            let is_there = |line: &str| {
                line.split_once(' ').is_some_and(|(key, value)| key == name && !value.is_empty())
            };
            ensure!(numbers.lines().any(is_there), "no {name} in {numbers}");
        }
        ensure!(numbers.contains("first_rank_seconds_count 1\n"), "{numbers}");
        let log = operator.log();
        let lines: Result<Vec<Value>, _> = log.lines().map(serde_json::from_str).collect();
        let lines = lines.with_context(|| log.clone())?;
        let told = lines.iter().find(|it| it["reason"] == "MPIJobSucceeded");
        let told = told.with_context(|| log.clone())?;
        ensure!(told["name"] == "seen" && told["namespace"] == "watched", "{told}");
        ensure!(told["level"] == "INFO" && told["timestamp"].is_string(), "{told}");
        operator.terminate()
    })
}

/// `kubectl logs -f` and `kubectl attach` follow a launcher that runs, to its end, without being told which container it is.
pub(crate) fn followed(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "followed", |story, _| {
        let line = format!("until test -e /tmp/go; do echo waiting; sleep 0.1; done; {HELLO}");
        for (name, words) in [
            ("logs", &["logs", "--follow", "job/logs-launcher"][..]),
            ("attach", &["attach", "attach-launcher"]),
        ] {
            story.create(&job("v2beta1", name, &line))?;
            story.until(name, "running", |job| holds(job, "Running"))?;
            let said = follow(story, name, words)?;
            for rank in 0..4 {
                ensure!(said.contains(&format!("rank {rank} of 4")), "{name}: {said}");
            }
            story.succeeds(name)?;
        }
        Ok(())
    })
}

/// What kubectl shows of a launcher, which is let go as soon as it is heard.
fn follow(story: &Story<'_>, name: &str, words: &[&str]) -> anyhow::Result<String> {
    let mut kubectl = story.cluster.command("kubectl")?;
    kubectl.args(["--namespace", story.namespace]).args(words);
    let mut child = kubectl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    let mut said = String::new();
    output.read_line(&mut said)?;
    ensure!(said == "waiting\n", "{name}: {said:?}");
    story.open(name)?;
    output.read_to_string(&mut said)?;
    let ended = child.wait()?;
    ensure!(ended.success(), "kubectl {}: {ended}: {said}", words.join(" "));
    Ok(said)
}
