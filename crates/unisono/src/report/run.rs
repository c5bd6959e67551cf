//! A run as people see it: which hosts came up, every line with its rank and host, and how it ended; or the same as JSON lines.

mod closing;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unisono_engine::{Event, What};
use unisono_local::{RunDirectory, RunRecord, Told, Written};
use unisono_plan::{Plan, Time, Why};

use super::advice::advice;
use super::console::Console;
use super::seats::Seats;
use super::table::counted;
use crate::commands::RunOutput;

pub(super) use closing::Summary;

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
    /// The job's end, not told before it is known whether it is believed.
    end: Option<Event>,
    ended: Time,
    summary: Summary,
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
            end: None,
            ended: Time(record.began),
            summary: Summary::default(),
        }
    }

    /// Remembers the first loss. A reader that has left wants no more: nothing is lost then.
    fn note_loss(&mut self, what: &str, done: io::Result<()>) {
        if let Err(error) = done
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.get_or_insert_with(|| format!("{what}: {error}"));
        }
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

    /// The host on which something was written: a rank's own, where it is known, not that of its launcher.
    fn host_of(&mut self, written: &Written) -> Option<&str> {
        match written.rank {
            Some(rank) => self.seats.host_of(rank, self.plan, &self.directory),
            None => self.plan.host(written.incarnation.member).map(|host| host.name.as_str()),
        }
    }

    /// What stands before a line.
    fn prefix(&mut self, written: &Written) -> String {
        let width = self.widest_host;
        prefix(written.rank, self.host_of(written).unwrap_or_default(), width)
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

/// More hosts of a group than this are named by the first and the last of them.
const NAMED: usize = 3;

/// The names of all hosts, for people.
pub(super) fn hosts_named(plan: &Plan) -> String {
    let groups = (0_u32..).zip(&plan.job.groups).flat_map(|(at, _)| {
        let names: Vec<&str> =
            plan.hosts_of_group(at).iter().map(|host| host.name.as_str()).collect();
        match names.as_slice() {
            [first, .., last] if names.len() > NAMED => vec![format!("{first} … {last}")],
            few => few.iter().map(|&name| name.to_owned()).collect(),
        }
    });
    groups.collect::<Vec<String>>().join(", ")
}

/// A line of output as a JSON line.
#[derive(Serialize)]
struct OutputView<'run> {
    event: &'static str,
    /// The host of the rank, or of the command.
    host: Option<&'run str>,
    rank: Option<u32>,
    stream: &'static str,
    /// Without the line's end.
    text: &'run str,
    /// Whether this is a piece of a line that goes on, or ends without a line's end.
    #[serde(skip_serializing_if = "is_whole")]
    partial: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
const fn is_whole(partial: &bool) -> bool {
    !*partial
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
        if matches!(event.what, What::Ended { .. }) {
            report.end = Some(event.clone());
            return;
        }
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
                let count = counted(report.plan.hosts.len(), "host");
                format!("{count} up after {after}: {}\n", hosts_named(report.plan))
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
            let line = text.strip_suffix('\n');
            let view = OutputView {
                event: "output",
                host: report.host_of(written),
                rank: written.rank,
                stream,
                text: line.unwrap_or(&text),
                partial: line.is_none(),
            };
            let passed_on = self.json_line(&view);
            return report.note_loss("output could not be passed on", passed_on);
        }
        if report.raw {
            let passed_on = self.bytes(&written.bytes, written.is_error);
            return report.note_loss("output could not be passed on", passed_on);
        }
        let prefix = report.prefix(written);
        let passed_on = self.prefixed(&prefix, &written.bytes, written.is_error);
        report.note_loss("output could not be passed on", passed_on);
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.2} s", Duration::from_millis(milliseconds).as_secs_f64())
}
