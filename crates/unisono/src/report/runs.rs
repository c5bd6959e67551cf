//! Runs of this machine and jobs of a cluster: records and statuses enter, a table, a picture of one run, or JSON leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use unisono_agent::proof::{self, Event};
use unisono_local::{RunDirectory, RunRecord};
use unisono_plan::line::Ticket;
use unisono_plan::{Stage, Status, Time, Verdict};

use super::Output;
use super::console::Console;
use super::run::Summary;
use super::table::{Align, Table};
#[cfg(feature = "kubernetes")]
use crate::cluster::ClusterJob;

/// One run, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    #[serde(flatten)]
    record: Record,
    state: &'static str,
    exit: Option<i32>,
    ended: Option<u64>,
    failure: Option<String>,
    #[serde(flatten)]
    summary: Option<Summary>,
}

/// What a run is, wherever it is.
#[derive(Debug, Serialize)]
struct Record {
    engine: &'static str,
    /// The namespace of a job in a cluster.
    namespace: Option<String>,
    id: String,
    job: String,
    dialect: String,
    /// The file, where it is known.
    file: Option<String>,
    experiment: Option<String>,
    hosts: usize,
    ranks: Option<u32>,
    /// The process that runs it, on this machine.
    process: Option<u32>,
    began: u64,
    /// What it wants of this machine.
    ticket: Option<Ticket>,
    ttl_seconds: Option<u64>,
    /// Whether its directory stays until somebody removes it.
    keep: bool,
}

impl RunView {
    /// What its directory tells about a run.
    pub(crate) fn of(directory: &RunDirectory, record: &RunRecord) -> Self {
        let status: Status = directory.read("status.json").unwrap_or_default();
        let running = directory.is_running();
        let summary: Option<Summary> = directory.read("summary.json");
        let doubt = || summary.as_ref()?.doubts.first().map(|it| format!("not believed: {it}"));
        let record = record.clone();
        Self {
            record: Record {
                engine: "local",
                namespace: None,
                id: record.id,
                job: record.job,
                dialect: record.dialect,
                file: Some(record.file),
                experiment: record.experiment,
                hosts: record.hosts,
                ranks: record.ranks,
                process: Some(record.process),
                began: record.began,
                ticket: record.ticket,
                ttl_seconds: record.ttl_seconds,
                keep: record.keep,
            },
            state: state(&status.stage, running),
            exit: status.end().map(|end| end.code),
            ended: status.completed.map(|at| at.0),
            failure: status.first_failure.as_ref().map(|it| it.sentence()).or_else(doubt),
            summary,
        }
    }

    /// What its object tells about a job of a cluster.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn in_cluster(job: &ClusterJob) -> Self {
        let (object, status) = (&job.object, &job.status);
        let plan = job.plan.as_ref();
        let dialect = plan.map(|plan| plan.job.dialect.name());
        let began = job.created();
        let after = |at: Option<Time>| at.map(|at| at.0.saturating_sub(began));
        Self {
            record: Record {
                engine: "kubernetes",
                namespace: Some(object.namespace().to_owned()),
                id: object.name().to_owned(),
                job: plan.map_or_else(|| object.name().to_owned(), |it| it.job.name.to_string()),
                dialect: dialect.unwrap_or("-").to_owned(),
                file: None,
                experiment: plan.and_then(|plan| plan.job.experiment.clone()),
                hosts: plan.map_or(0, |plan| plan.hosts.len()),
                ranks: plan.and_then(|plan| plan.ranks),
                process: None,
                began,
                ticket: None,
                keep: false,
                ttl_seconds: plan.and_then(|plan| plan.job.policies.ttl_seconds),
            },
            state: if plan.is_some() { state(&status.stage, true) } else { "invalid" },
            exit: status.end().map(|end| end.code),
            ended: status.completed.map(|at| at.0),
            failure: status.first_failure.as_ref().map(|failure| failure.sentence()),
            summary: after(status.completed).map(|took_ms| Summary {
                first_rank_ms: after(status.running_since),
                took_ms,
                ..Summary::default()
            }),
        }
    }

    /// The experiment that the job belongs to.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.record.experiment.as_deref()
    }

    /// Why its success is not believed.
    pub(super) fn doubts(&self) -> &[String] {
        self.summary.as_ref().map_or(&[], |summary| &summary.doubts)
    }

    /// The dialect that the job was written in.
    #[cfg(feature = "kubernetes")]
    pub(super) fn dialect(&self) -> &str {
        &self.record.dialect
    }

    /// The run, its state and its job on one line.
    pub(super) fn headline(&self) -> String {
        let record = &self.record;
        format!("{}: {} ({}, {})\n", record.id, self.state, record.job, record.dialect)
    }
}

/// A run whose process is gone without an end has crashed; its hosts ended with it.
const fn state(stage: &Stage, running: bool) -> &'static str {
    match (stage, running) {
        (Stage::Ended(end), _) => match end.verdict {
            Verdict::Succeeded => "succeeded",
            Verdict::Failed => "failed",
            Verdict::Stopped => "stopped",
        },
        (_, false) => "crashed",
        (Stage::New | Stage::Starting, true) => "starting",
        (Stage::Suspended, true) => "suspended",
        (Stage::Queued, true) => "queued",
        (Stage::Running, true) => "running",
    }
}

/// What is known about one host.
#[derive(Debug, Default, Serialize)]
pub(crate) struct HostView {
    /// When it was reached, in milliseconds since 1970.
    pub(crate) reached: Option<u64>,
    /// The ranks that ran there.
    pub(crate) ranks: BTreeSet<u32>,
    /// Why it was lost or refused, or how it is.
    pub(crate) lost: Option<String>,
}

/// What the launch proof of a run tells about its hosts.
pub(crate) fn proof_of(directory: &RunDirectory) -> BTreeMap<String, HostView> {
    let mut hosts: BTreeMap<String, HostView> = BTreeMap::new();
    let folders = std::fs::read_dir(directory.path().join("hosts")).into_iter().flatten().flatten();
    for folder in folders {
        for record in proof::read(&folder.path().join("proof"), 0).unwrap_or_default() {
            let host = hosts.entry(record.host).or_default();
            match record.event {
                Event::Reached { .. } => host.reached = host.reached.or(Some(record.at)),
                Event::Rank(rank) => {
                    host.ranks.insert(rank.rank);
                }
                Event::Lost { reason } | Event::Refused { reason } => host.lost = Some(reason),
                _ => {}
            }
        }
    }
    hosts
}

impl Console {
    /// Prints runs as a table.
    pub(crate) fn run_list(&mut self, runs: &[RunView], output: Output) -> io::Result<()> {
        if output == Output::Json {
            return self.json(&serde_json::json!({ "runs": runs }));
        }
        let mut table = Table::new(&[
            ("RUN", Align::Left),
            ("JOB", Align::Left),
            ("SYSTEM", Align::Left),
            ("HOSTS", Align::Right),
            ("RANKS", Align::Right),
            ("STATE", Align::Left),
            ("EXIT", Align::Right),
            ("BEGAN", Align::Left),
        ]);
        for run in runs {
            let record = &run.record;
            table.row([
                record.id.clone(),
                record.job.clone(),
                record.dialect.clone(),
                record.hosts.to_string(),
                record.ranks.map_or_else(|| "-".to_owned(), |it| it.to_string()),
                run.state.to_owned(),
                run.exit.map(|it| it.to_string()).unwrap_or_default(),
                Time(record.began).to_string(),
            ]);
        }
        self.data(&table.rendered(""))
    }

    /// Prints one run.
    pub(crate) fn run_status(
        &mut self,
        run: &RunView,
        hosts: &BTreeMap<String, HostView>,
        output: Output,
    ) -> io::Result<()> {
        if output == Output::Json {
            return self.json(&serde_json::json!({ "run": run, "hosts": hosts }));
        }
        let record = &run.record;
        let mut text = run.headline();
        if let Some(failure) = &run.failure {
            text.extend(["  ", failure, "\n"]);
        }
        for warning in run.summary.iter().flat_map(|summary| &summary.warnings) {
            text.extend(["  warning: ", warning, "\n"]);
        }
        let mut table = Table::new(&[
            ("HOST", Align::Left),
            ("REACHED AFTER", Align::Right),
            ("RANKS", Align::Left),
            ("", Align::Left),
        ]);
        for (name, host) in hosts {
            let reached = host.reached.map(|at| format!("{} ms", at.saturating_sub(record.began)));
            let ranks: Vec<String> = host.ranks.iter().map(u32::to_string).collect();
            table.row([
                name.clone(),
                reached.unwrap_or_default(),
                ranks.join(","),
                host.lost.clone().unwrap_or_default(),
            ]);
        }
        text.push_str(&table.rendered("  "));
        self.data(&text)
    }
}
