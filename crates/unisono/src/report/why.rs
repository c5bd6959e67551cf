//! Why a run waits, why it failed, or how it ended: what its directory tells enters, sentences or JSON leave.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use unisono_local::{RunDirectory, RunRecord, failed_ranks};
use unisono_plan::{EndReason, Failure, Stage, Status, Why};

use super::Output;
use super::advice::advice;
use super::console::Console;
use super::runs::RunView;
#[cfg(feature = "kubernetes")]
use crate::cluster::ClusterJob;

/// Why a run is where it is.
#[derive(Debug, Serialize)]
pub(crate) struct WhyView {
    run: RunView,
    /// One sentence each, the most important first.
    why: Vec<String>,
    /// The same, for programs: what it waits for.
    waits: Vec<Why>,
    /// What failed first, in the last attempt that failed.
    failure: Option<Failure>,
    /// What to do about it.
    help: Option<String>,
}

impl WhyView {
    /// What the directory of a run tells.
    pub(crate) fn of(directory: &RunDirectory, record: &RunRecord) -> Self {
        let run = RunView::of(directory, record);
        let status: Status = directory.read("status.json").unwrap_or_default();
        let waits: Vec<Why> = directory.read("why.json").unwrap_or_default();
        let running = directory.is_running();
        let mut why = Vec::new();
        let mut help = None;
        if let Some(failure) = &status.first_failure {
            why.push(failure.sentence());
            let ended = &failure.ended;
            if let Some(advice) = advice(ended.code, failure.place(), &ended.last_lines) {
                why.push(advice.message);
                help = Some(advice.hint);
            }
        }
        if status.first_failure.is_none() {
            why.extend(unnoticed(directory, &status));
        }
        why.extend(
            run.doubts().iter().map(|doubt| format!("its success is not believed: {doubt}")),
        );
        why.extend(match &status.stage {
            Stage::Ended(end) => vec![format!("the run has ended: {}", end.reason.text())],
            _ if running => waits.iter().map(ToString::to_string).collect(),
            _ => crashed(&waits),
        });
        let waits = if running && !status.is_terminal() { waits } else { Vec::new() };
        Self { run, why, waits, failure: status.first_failure, help }
    }
}

/// Ranks that failed although their launcher did not end: some launchers never do.
pub(super) fn unnoticed(directory: &RunDirectory, status: &Status) -> Vec<String> {
    let launcher = match status.end().map(|end| end.reason) {
        None => "goes on",
        Some(EndReason::DeadlineExceeded) => "went on",
        Some(_) => return Vec::new(),
    };
    let ranks = failed_ranks(directory, status.completed).into_iter();
    ranks.map(|rank| format!("{rank}, but its launcher {launcher}")).collect()
}

#[cfg(feature = "kubernetes")]
impl WhyView {
    /// What the object of a job in a cluster tells.
    pub(crate) fn in_cluster(job: &ClusterJob) -> Self {
        let status = &job.status;
        let mut why = Vec::from_iter(job.first_failure());
        let (mut told, mut help) = (job.why.clone(), None);
        match &status.stage {
            Stage::Ended(end) => told = vec![format!("the job has ended: {}", end.reason.text())],
            _ if job.plan.is_none() => {
                let faults = job.notes.iter().filter(|note| note.is_fault());
                told = faults.map(|note| note.message.clone()).collect();
                help = Some("mend the object: the job runs then".to_owned());
            }
            _ if !job.is_looked_at() => {
                told = vec!["no operator has looked at the job yet".to_owned()];
                help = Some("is one running? `unisono operator install` installs it".to_owned());
            }
            _ => {}
        }
        why.append(&mut told);
        let failure = status.first_failure.clone();
        Self { run: RunView::in_cluster(job), why, waits: Vec::new(), failure, help }
    }
}

/// Nothing tells why a process is gone; what it waited for last may help.
fn crashed(waits: &[Why]) -> Vec<String> {
    let gone = "the `unisono` that ran it is gone: it was killed, or the machine went down; its hosts ended with it";
    let last = waits.iter().map(|why| format!("it was last seen so: {why}"));
    std::iter::once(gone.to_owned()).chain(last).collect()
}

impl Console {
    /// Prints why a run is where it is.
    pub(crate) fn run_why(&mut self, view: &WhyView, output: Output) -> io::Result<()> {
        if output == Output::Json {
            return self.json(view);
        }
        let mut text = view.run.headline();
        for (at, sentence) in view.why.iter().enumerate() {
            // Writing to a String cannot fail.
            let _written = writeln!(text, "  {sentence}");
            if at == 0 {
                let lines = view.failure.iter().flat_map(|failure| &failure.ended.last_lines);
                text.extend(lines.map(|line| format!("    {line}\n")));
            }
        }
        if let Some(help) = &view.help {
            let _written = writeln!(text, "  help: {help}");
        }
        self.data(&text)
    }
}
