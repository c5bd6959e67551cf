//! How a run ended: its status, where its ranks ran and what was lost enter; whether its success is believed, the closing line and
//! the last JSON line leave.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use unisono_engine::What;
use unisono_plan::{End, Stage, Status, Time, Verdict};

use super::{RunReport, seconds};
use crate::commands::RunOutput;
use crate::report::console::Console;
use crate::report::table::counted;
use crate::report::why::unnoticed;

/// What a run ends with that ended well and cannot be believed.
const NOT_BELIEVED: i32 = 125;

/// What the end of a run leaves for others to read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    /// Milliseconds until the first rank was seen or heard.
    pub(crate) first_rank_ms: Option<u64>,
    /// Milliseconds in all.
    pub(crate) took_ms: u64,
    /// What was odd.
    pub(crate) warnings: Vec<String>,
    /// Why its success is not believed; nothing when it is, or when it did not succeed anyway.
    pub(crate) doubts: Vec<String>,
}

/// The last line of the event stream.
#[derive(Serialize)]
struct SummaryView<'run> {
    event: &'static str,
    run: &'run str,
    verdict: Verdict,
    exit: i32,
    ranks: Option<u32>,
    hosts: usize,
    /// The ranks that ran on each host, as far as it is known.
    ran: BTreeMap<&'run str, BTreeSet<u32>>,
    #[serde(flatten)]
    summary: &'run Summary,
}

impl RunReport<'_> {
    /// Takes note of the end. A job that succeeded and cannot be believed has not succeeded: the status that leaves says so, and
    /// so does the run's directory.
    pub(crate) fn finish(&mut self, mut status: Status, now: Time, strict: bool) -> Status {
        self.ended = now;
        self.seats.read(self.plan, &self.directory);
        let odd = self.seats.odd_spread(self.plan);
        let odd = odd.map(|odd| format!("ranks did not run where they were planned: {odd}"));
        let mut doubts: Vec<String> = odd.iter().filter(|_| strict).cloned().collect();
        doubts.extend(self.lost.clone());
        self.summary = self.summarise(odd, doubts);
        if self.disbelieve(&mut status) {
            let kept = self.directory.replace("status.json", &status);
            self.note_loss("the run's end could not be kept", kept);
        } else {
            self.summary.doubts.clear();
        }
        if let (Some(event), Some(end)) = (&mut self.end, status.end()) {
            event.what = What::Ended { verdict: end.verdict, code: end.code };
            let kept = self.directory.append("events.jsonl", event);
            self.note_loss("an event could not be kept", kept);
        }
        let kept = self.directory.replace("summary.json", &self.summary);
        self.note_loss("the summary could not be kept", kept);
        // What could not be kept just now counts, too.
        if let Some(lost) = self.lost.clone().filter(|it| !self.summary.warnings.contains(it)) {
            self.summary.warnings.push(lost.clone());
            self.summary.doubts.push(lost);
            self.disbelieve(&mut status);
        }
        status
    }

    fn summarise(&self, odd: Option<String>, doubts: Vec<String>) -> Summary {
        let began = Time(self.record.began);
        let milliseconds =
            |at: Time| u64::try_from(at.since(began).as_millis()).unwrap_or(u64::MAX);
        let first = self.seats.first_rank.map(Time).into_iter().chain(self.first_line).min();
        Summary {
            first_rank_ms: first.map(milliseconds),
            took_ms: milliseconds(self.ended),
            warnings: odd.into_iter().chain(self.lost.clone()).collect(),
            doubts,
        }
    }

    /// Makes a failure of a success that cannot be believed.
    fn disbelieve(&self, status: &mut Status) -> bool {
        let Stage::Ended(end @ End { verdict: Verdict::Succeeded, .. }) = &mut status.stage else {
            return false;
        };
        if self.summary.doubts.is_empty() {
            return false;
        }
        (end.verdict, end.code) = (Verdict::Failed, NOT_BELIEVED);
        true
    }
}

impl Console {
    /// Tells how it ended.
    pub(crate) fn run_ends(&mut self, report: &RunReport<'_>, status: &Status) {
        let summary = &report.summary;
        let (verdict, code) =
            status.end().map_or((Verdict::Failed, NOT_BELIEVED), |end| (end.verdict, end.code));
        if report.output == RunOutput::Jsonl {
            let view = SummaryView {
                event: "summary",
                run: &report.record.id,
                verdict,
                exit: code,
                ranks: report.plan.ranks,
                hosts: report.plan.hosts.len(),
                ran: report.seats.by_host(),
                summary,
            };
            // The exit code tells it, too, and a reader that has left wants no more.
            let told = report.end.iter().try_for_each(|event| self.json_line(event));
            let _nobody_listens = told.and_then(|()| self.json_line(&view));
            return;
        }
        let plan = report.plan;
        self.warn(&summary.warnings);
        for sentence in unnoticed(&report.directory, status) {
            self.talk(&format!("{sentence}\n"));
        }
        if !summary.doubts.is_empty() {
            self.talk("its commands ended well, but that is not believed\n");
        }
        let took = seconds(summary.took_ms);
        let first = summary.first_rank_ms.map(|it| format!(", first rank after {}", seconds(it)));
        let verdict = match verdict {
            Verdict::Succeeded => "succeeded".to_owned(),
            Verdict::Failed => format!("failed with exit code {code}"),
            Verdict::Stopped => "was stopped".to_owned(),
        };
        let ranks =
            plan.ranks.map(|ranks| format!("{} on ", counted(ranks, "rank"))).unwrap_or_default();
        let hosts = counted(plan.hosts.len(), "host");
        let first = first.unwrap_or_default();
        self.talk(&format!(
            "{}: {verdict}, {ranks}{hosts}{first}, {took} in all ({})\n",
            plan.job.name, report.record.id
        ));
    }
}
