//! Runs of this machine: records and statuses enter, a table, a picture of one run, or JSON leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use unisono_agent::proof::{self, Event};
use unisono_local::{RunDirectory, RunRecord};
use unisono_plan::{Stage, Status, Time, Verdict};

use super::Output;
use super::console::Console;
use super::run::Summary;
use super::table::{Align, Table};

/// One run, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    #[serde(flatten)]
    record: RunRecord,
    state: &'static str,
    exit: Option<i32>,
    ended: Option<u64>,
    failure: Option<String>,
    #[serde(flatten)]
    summary: Option<Summary>,
}

impl RunView {
    /// What its directory tells about a run.
    pub(crate) fn of(directory: &RunDirectory, record: &RunRecord) -> Self {
        let status: Status = directory.read("status.json").unwrap_or_default();
        let running = directory.is_running();
        Self {
            record: record.clone(),
            state: state(&status.stage, running),
            exit: status.end().map(|end| end.code),
            ended: status.completed.map(|at| at.0),
            failure: status.first_failure.as_ref().map(|failure| failure.sentence()),
            summary: directory.read("summary.json"),
        }
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

/// What the launch proof tells about one host.
#[derive(Debug, Default, Serialize)]
struct HostProof {
    reached: Option<u64>,
    ranks: BTreeSet<u32>,
    lost: Option<String>,
}

fn proof_of(directory: &RunDirectory) -> BTreeMap<String, HostProof> {
    let mut hosts: BTreeMap<String, HostProof> = BTreeMap::new();
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
        directory: &RunDirectory,
        output: Output,
    ) -> io::Result<()> {
        let hosts = proof_of(directory);
        if output == Output::Json {
            return self.json(&serde_json::json!({ "run": run, "hosts": hosts }));
        }
        let record = &run.record;
        let mut text = run.headline();
        if let Some(failure) = &run.failure {
            text.extend(["  ", failure, "\n"]);
        }
        let mut table = Table::new(&[
            ("HOST", Align::Left),
            ("REACHED AFTER", Align::Right),
            ("RANKS", Align::Left),
            ("", Align::Left),
        ]);
        for (name, host) in &hosts {
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
