//! A run as people see it: which hosts came up, every line with its rank and host, and how it ended; or the same as JSON lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};
use unisono_engine::{Event, What};
use unisono_local::{RunDirectory, RunRecord, Told, Written};
use unisono_plan::{Plan, Status, Time, Verdict, Why};

use super::advice::advice;
use super::console::Console;
use super::seats::{Seats, Spread};
use super::table::counted;
use super::why::unnoticed;
use crate::commands::RunOutput;

/// Colours that ranks take turns with; none is red, which is for failures.
const COLOURS: [AnsiColor; 5] =
    [AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Blue, AnsiColor::Magenta];

/// What is shown of one run.
pub(crate) struct RunReport<'run> {
    plan: &'run Plan,
    record: &'run RunRecord,
    output: RunOutput,
    raw: bool,
    mpi: Option<String>,
    directory: RunDirectory,
    files: BTreeMap<String, BufWriter<File>>,
    seats: Seats,
    widest_host: usize,
    /// Why something that the job wrote could not be passed on or kept.
    lost: Option<String>,
    first_line: Option<Time>,
    ended: Time,
}

/// What the end of a run leaves for others to read.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Milliseconds until the first rank was seen or heard.
    pub(crate) first_rank_ms: Option<u64>,
    /// Milliseconds in all.
    pub(crate) took_ms: u64,
}

impl<'run> RunReport<'run> {
    /// A run that begins.
    pub(crate) fn new(
        plan: &'run Plan,
        record: &'run RunRecord,
        output: RunOutput,
        raw: bool,
        mpi: Option<String>,
        directory: RunDirectory,
    ) -> Self {
        let widest_host =
            plan.hosts.iter().map(|host| host.name.chars().count()).max().unwrap_or(0);
        Self {
            plan,
            record,
            output,
            raw,
            mpi,
            directory,
            files: BTreeMap::new(),
            seats: Seats::default(),
            widest_host,
            lost: None,
            first_line: None,
            ended: Time(record.began),
        }
    }

    /// Takes note of the end, and compares where ranks ran with where they were planned.
    pub(crate) fn finish(&mut self, now: Time) -> Spread {
        self.ended = now;
        self.seats.read(self.plan, &self.directory);
        let kept = self.directory.replace("summary.json", &self.summary());
        self.note_loss("the summary could not be kept", kept);
        self.seats.spread(self.plan)
    }

    /// Why something that the job wrote could not be passed on or kept, if so.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Remembers the first loss. A reader that has left wants no more: nothing is lost then.
    fn note_loss(&mut self, what: &str, done: io::Result<()>) {
        if let Err(error) = done
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.get_or_insert_with(|| format!("{what}: {error}"));
        }
    }

    fn summary(&self) -> Summary {
        let began = Time(self.record.began);
        let milliseconds =
            |at: Time| u64::try_from(at.since(began).as_millis()).unwrap_or(u64::MAX);
        let first = self.seats.first_rank.map(Time).into_iter().chain(self.first_line).min();
        Summary { first_rank_ms: first.map(milliseconds), took_ms: milliseconds(self.ended) }
    }

    /// Keeps what was written in the run's directory.
    fn keep(&mut self, name: String, bytes: &[u8]) -> io::Result<()> {
        use std::collections::btree_map::Entry;
        let file = match self.files.entry(name) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = self.directory.path().join(entry.key());
                entry.insert(BufWriter::new(File::options().append(true).create(true).open(path)?))
            }
        };
        file.write_all(bytes)
    }

    /// What stands before a line.
    fn prefix(&mut self, written: &Written) -> String {
        let wrote_it =
            self.plan.host(written.incarnation.member).map_or("?", |host| host.name.as_str());
        let host = match written.rank {
            Some(rank) => self.seats.host_of(rank, self.plan, &self.directory),
            None => wrote_it,
        };
        prefix(written.rank, host, self.widest_host)
    }
}

/// What stands before a line of a rank, or of a host's own command.
pub(super) fn prefix(rank: Option<u32>, host: &str, width: usize) -> String {
    let Some(rank) = rank else {
        return format!("{:>4} {host:<width$} | ", "");
    };
    let colour = COLOURS.get(rank as usize % COLOURS.len()).copied().unwrap_or(AnsiColor::Cyan);
    let style = Style::new().fg_color(Some(colour.into()));
    format!("{style}{rank:>4} {host:<width$} |{style:#} ")
}

/// A line of output as a JSON line.
#[derive(Serialize)]
struct OutputView<'run> {
    event: &'static str,
    host: &'run str,
    rank: Option<u32>,
    stream: &'static str,
    text: &'run str,
}

impl Console {
    /// Tells what begins.
    pub(crate) fn run_begins(&mut self, report: &mut RunReport<'_>) -> io::Result<()> {
        if report.output == RunOutput::Jsonl {
            return self.json_line(report.record);
        }
        let plan = report.plan;
        let ranks = plan.ranks.map_or_else(
            || "ranks as the program decides".to_owned(),
            |ranks| counted(ranks, "rank"),
        );
        let mpi = report.mpi.as_ref().map(|version| format!(", {version}")).unwrap_or_default();
        let hosts = counted(plan.hosts.len(), "host");
        self.talk(&format!("{}: {hosts}, {ranks}, {}{mpi}\n", plan.job.name, plan.job.dialect));
        Ok(())
    }

    /// Tells what happens.
    pub(crate) fn run_goes_on(&mut self, report: &mut RunReport<'_>, told: &Told<'_>, now: Time) {
        match told {
            Told::Wrote(written) if written.rank.is_some() => {
                report.first_line.get_or_insert(now);
                self.run_output(report, written);
            }
            Told::Event(event) => self.run_event(report, event),
            Told::Wrote(written) => self.run_output(report, written),
            Told::Waiting(why) => self.run_waits(report, why),
            Told::Quiet => {
                let passed_on = self.flush();
                report.note_loss("output could not be passed on", passed_on);
                let kept = report.files.values_mut().try_for_each(io::Write::flush);
                report.note_loss("output could not be kept", kept);
            }
            Told::Unkept(what) => report.note_loss(
                "the run's files could not be kept",
                Err(io::Error::other(what.to_owned())),
            ),
        }
    }

    /// Keeps what is waited for, for `unisono why`, and shows it on a terminal.
    fn run_waits(&mut self, report: &mut RunReport<'_>, why: &[Why]) {
        let kept = report.directory.replace("why.json", &why);
        report.note_loss("what the job waits for could not be kept", kept);
        if report.output == RunOutput::Text
            && let Some(first) = why.first()
        {
            self.wait(&format!("{}: {first}", report.plan.job.name));
        }
    }

    fn run_event(&mut self, report: &mut RunReport<'_>, event: &Event) {
        // A full disk must not stop the job.
        let kept = report.directory.append("events.jsonl", event);
        report.note_loss("an event could not be kept", kept);
        if report.output == RunOutput::Jsonl {
            let _nobody_listens = self.json_line(event);
            return;
        }
        let text = match &event.what {
            What::Released => {
                let after = seconds(event.at.0.saturating_sub(report.record.began));
                format!("{} up after {after}\n", counted(report.plan.hosts.len(), "host"))
            }
            What::Failed { message, last_lines, code, host, .. } => {
                let lines: String = last_lines.iter().map(|line| format!("    {line}\n")).collect();
                self.talk(&format!("{message}\n{lines}"));
                if let Some(advice) = advice(*code, host, last_lines) {
                    self.help(&advice.message, &advice.hint);
                }
                return;
            }
            What::GangRestart { count } => {
                format!("members were lost: everything starts again ({count})\n")
            }
            What::Suspended => "suspended: it starts when it is resumed\n".to_owned(),
            What::Starting { attempt, .. } if *attempt > 0 => format!("attempt {}\n", attempt + 1),
            What::Created
            | What::Queued
            | What::Resumed
            | What::Starting { .. }
            | What::Hosts { .. }
            | What::Running
            | What::CommandEnded { .. }
            | What::Ended { .. } => return,
        };
        self.talk(&text);
    }

    fn run_output(&mut self, report: &mut RunReport<'_>, written: &Written) {
        let host =
            report.plan.host(written.incarnation.member).map_or("?", |host| host.name.as_str());
        let name = written
            .rank
            .map_or_else(|| format!("output/{host}"), |rank| format!("output/rank-{rank}"));
        if let (Some(rank), Some(host)) = (written.rank, &written.host) {
            report.seats.learn(rank, host);
        }
        // A full disk must not stop the job.
        let kept = report.keep(name, &written.bytes);
        report.note_loss("output could not be kept", kept);
        let stream = if written.is_error { "stderr" } else { "stdout" };
        if report.output == RunOutput::Jsonl {
            let text = String::from_utf8_lossy(&written.bytes);
            let view = OutputView {
                event: "output",
                host,
                rank: written.rank,
                stream,
                text: text.trim_end_matches('\n'),
            };
            let passed_on = self.json_line(&view);
            return report.note_loss("output could not be passed on", passed_on);
        }
        if report.raw {
            let passed_on = self.bytes(&written.bytes, written.is_error);
            return report.note_loss("output could not be passed on", passed_on);
        }
        let prefix = report.prefix(written);
        let mut line = written.bytes.clone();
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        let passed_on = self.prefixed(&prefix, &line, written.is_error);
        report.note_loss("output could not be passed on", passed_on);
    }

    /// Tells how it ended.
    pub(crate) fn run_ends(
        &mut self,
        report: &mut RunReport<'_>,
        status: &Status,
    ) -> io::Result<()> {
        if report.output == RunOutput::Jsonl {
            return Ok(());
        }
        let plan = report.plan;
        if let Some(odd) = report.seats.spread(plan).told {
            self.warn(&[format!("ranks did not run where they were planned: {odd}")]);
        }
        if let Some(lost) = report.lost() {
            self.warn(&[lost.to_owned()]);
        }
        for sentence in unnoticed(&report.directory, status) {
            self.talk(&format!("{sentence}\n"));
        }
        let summary = report.summary();
        let took = seconds(summary.took_ms);
        let first = summary.first_rank_ms.map(|it| format!(", first rank after {}", seconds(it)));
        let (verdict, code) =
            status.end().map_or((Verdict::Failed, 125), |end| (end.verdict, end.code));
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
        Ok(())
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.2} s", Duration::from_millis(milliseconds).as_secs_f64())
}
