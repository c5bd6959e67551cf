//! A job of a cluster as people see it who follow it: what it waits for, every line with its rank and host, how it ended; or
//! the same as JSON lines.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use serde_json::json;
use unisono_local::{LogUntagger, Piece};
use unisono_plan::{EndReason, Plan, Stage, Verdict};

use super::console::Console;
use super::run::{hosts_named, prefix};
use super::runs::RunView;
use super::table::counted;
use crate::cluster::{Applied, ClusterJob, Told};
use crate::commands::RunOutput;
use crate::error::Error;

/// What is shown of one job.
pub(crate) struct FollowReport {
    name: String,
    namespace: String,
    output: RunOutput,
    raw: bool,
    widest_host: usize,
    shape: String,
    view: RunView,
    untagger: LogUntagger,
    /// Hosts that run ranks, as was planned, each with how many slots there are up to and with it.
    seats: Vec<(u64, String)>,
    told_up: bool,
    told_unseen: bool,
    /// What it waited for, as far as that was told where there is no live line.
    told_whys: BTreeSet<String>,
}

impl FollowReport {
    /// A job that somebody begins to follow.
    pub(crate) fn new(job: &ClusterJob, output: RunOutput, raw: bool) -> Self {
        let hosts = job.plan.iter().flat_map(|plan| &plan.hosts);
        let widest_host = hosts.map(|host| host.name.chars().count()).max().unwrap_or(0);
        let ranks = job.plan.as_ref().and_then(|plan| plan.ranks);
        let ranks = ranks.map(|it| format!("{} on ", counted(it, "rank"))).unwrap_or_default();
        let hosts = job.plan.as_ref().map_or(0, |plan| plan.hosts.len());
        Self {
            name: job.object.name().to_owned(),
            namespace: job.object.namespace().to_owned(),
            output,
            raw,
            widest_host,
            shape: format!("{ranks}{}", counted(hosts, "host")),
            view: RunView::in_cluster(job),
            untagger: LogUntagger::default(),
            seats: job.plan.as_ref().map(seats).unwrap_or_default(),
            told_up: false,
            told_unseen: false,
            told_whys: BTreeSet::new(),
        }
    }

    fn planned_host(&self, rank: u32) -> Option<&str> {
        let at = self.seats.partition_point(|(slots, _)| *slots <= u64::from(rank));
        self.seats.get(at).map(|(_, host)| host.as_str())
    }

    /// The job's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn seats(plan: &Plan) -> Vec<(u64, String)> {
    let counted = plan.rank_hosts().scan(0, |slots, host| {
        *slots += u64::from(host.slots);
        Some((*slots, host.name.clone()))
    });
    counted.collect()
}

impl Console {
    /// Tells what became of an object.
    pub(crate) fn applied(&mut self, applied: &Applied, output: RunOutput) -> io::Result<()> {
        let Applied { kind, name, namespace, change, .. } = applied;
        if output == RunOutput::Jsonl {
            return self.json_line(&json!({
                "event": change.name(), "kind": kind, "name": name, "namespace": namespace,
            }));
        }
        let place = namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
        self.talk(&format!("{kind} {place}{name} {}\n", change.name()));
        Ok(())
    }

    /// Tells how to go on with a job that was submitted.
    pub(crate) fn submitted(&mut self, job: &Applied, usual_namespace: &str, is_ambiguous: bool) {
        let engine = if is_ambiguous { " --engine kubernetes" } else { "" };
        let elsewhere = job.namespace.as_deref().filter(|it| *it != usual_namespace);
        let elsewhere = elsewhere.map(|it| format!(" --namespace {it}")).unwrap_or_default();
        let place = format!("{engine}{elsewhere}");
        let name = &job.name;
        self.talk(&format!(
            "`unisono logs {name} --follow{place}` shows what it writes, `unisono status {name}{place}` where it is, `unisono stop {name}{place}` stops it\n"
        ));
    }

    /// Tells what begins.
    pub(crate) fn follow_begins(&mut self, report: &FollowReport) -> io::Result<()> {
        match report.output {
            RunOutput::Jsonl => self.json_line(&report.view),
            RunOutput::Text => {
                self.talk(&format!(
                    "{}: {}, {}\n",
                    report.name,
                    report.shape,
                    report.view.dialect()
                ));
                Ok(())
            }
        }
    }

    /// Tells what happens.
    pub(crate) fn follow_goes_on(&mut self, report: &mut FollowReport, told: &Told<'_>) {
        match told {
            Told::Moved(job) => self.follow_moves(report, job),
            Told::Stays(job) => self.follow_stays(report, job),
            Told::Wrote { host, bytes } => self.follow_line(report, host, bytes),
            Told::Unread(fault) => {
                let _exit = self.fail(fault);
            }
            Told::Unseen(fault) => self.follow_sees_nothing(report, fault),
        }
    }

    /// Tells once that the job cannot be seen, until it can be seen again.
    fn follow_sees_nothing(&mut self, report: &mut FollowReport, fault: &Error) {
        if !report.told_unseen {
            report.told_unseen = true;
            let _exit = self.fail(fault);
        }
        self.wait(&format!("{}: {fault}; it is looked for again", report.name));
    }

    fn follow_moves(&mut self, report: &mut FollowReport, job: &ClusterJob) {
        report.told_unseen = false;
        if report.output == RunOutput::Jsonl {
            return;
        }
        if job.status.stage == Stage::Running && !report.told_up {
            report.told_up = true;
            let hosts = job.plan.as_ref().map_or(0, |plan| plan.hosts.len());
            let after = job.status.running_since.map(|at| at.0.saturating_sub(job.created()));
            let after = after.map(|it| format!(" after {}", seconds(it))).unwrap_or_default();
            let names = job.plan.as_ref().map(hosts_named).unwrap_or_default();
            self.talk(&format!("{} up{after}: {names}\n", counted(hosts, "host")));
        }
        if let Some(why) = why(job) {
            self.wait(&format!("{}: {why}", report.name));
        }
    }

    /// Tells what the job waits for where no live line does, each once. What has passed by the next time is not worth a line.
    fn follow_stays(&mut self, report: &mut FollowReport, job: &ClusterJob) {
        if report.output == RunOutput::Jsonl || self.has_live_line() {
            return;
        }
        if let Some(why) = why(job).filter(|it| !report.told_whys.contains(*it)) {
            report.told_whys.insert(why.to_owned());
            self.talk(&format!("{}: {why}\n", report.name));
        }
    }

    fn follow_line(&mut self, report: &mut FollowReport, host: &str, bytes: &[u8]) {
        for piece in report.untagger.take(host, bytes) {
            self.follow_piece(report, host, &piece);
        }
    }

    fn follow_piece(&mut self, report: &FollowReport, wrote_it: &str, piece: &Piece) {
        let planned = || report.planned_host(piece.rank?);
        // Open MPI 4 does not say where a rank is. One that is elsewhere than planned is told when the job ends.
        let host = piece.host.as_deref().or_else(planned).unwrap_or(wrote_it);
        let is_error = piece.is_error == Some(true);
        // Whoever reads what we write may have left; the job goes on.
        let _nobody_reads = if report.output == RunOutput::Jsonl {
            let text = String::from_utf8_lossy(&piece.bytes);
            self.json_line(&json!({
                "event": "output",
                "host": host,
                "rank": piece.rank,
                "stream": if is_error { "stderr" } else { "stdout" },
                "text": text.trim_end_matches('\n'),
            }))
        } else {
            let before = match report.raw {
                true => String::new(),
                false => prefix(piece.rank, host, report.widest_host),
            };
            let mut line = piece.bytes.clone();
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            self.prefixed(&before, &line, is_error).and_then(|()| self.flush())
        };
    }

    /// Asks whether a job is to be stopped.
    pub(crate) fn ask_what_now(&mut self, report: &FollowReport) {
        self.talk(&format!("\nstop {}? [y: stop it, N: leave it running, c: go on] ", report.name));
    }

    /// Tells how to come back to a job that goes on.
    pub(crate) fn come_back(&mut self, report: &FollowReport) {
        let FollowReport { name, namespace, .. } = report;
        self.talk(&format!(
            "{name} goes on; `unisono logs {name} --engine kubernetes --namespace {namespace} --follow` comes back to it\n"
        ));
    }

    /// Tells how it ended.
    pub(crate) fn follow_ends(
        &mut self,
        report: &mut FollowReport,
        job: &ClusterJob,
    ) -> io::Result<()> {
        for (host, piece) in report.untagger.rest() {
            self.follow_piece(report, &host, &piece);
        }
        report.view = RunView::in_cluster(job);
        if report.output == RunOutput::Jsonl {
            return self.json_line(&json!({ "event": "ended", "run": report.view }));
        }
        if let (Some(failure), Some(sentence)) = (&job.status.first_failure, job.first_failure()) {
            let is_told = |line: &&String| sentence.contains(line.trim());
            let lines = failure.ended.last_lines.iter().filter(|line| !is_told(line));
            let lines: String = lines.map(|line| format!("    {line}\n")).collect();
            self.talk(&format!("{sentence}\n{lines}"));
        }
        let verdict = match job.status.end() {
            Some(end) => match end.verdict {
                Verdict::Succeeded => "succeeded".to_owned(),
                Verdict::Failed => {
                    let told = format!("failed with exit code {}", end.code);
                    match end.reason {
                        EndReason::ImageUnavailable => format!("{told}: {}", end.reason.text()),
                        _ => told,
                    }
                }
                Verdict::Stopped => "was stopped".to_owned(),
            },
            None => "has ended".to_owned(),
        };
        let took = job.status.completed.map(|at| at.0.saturating_sub(job.created()));
        let took = took.map(|it| format!(", {} in all", seconds(it))).unwrap_or_default();
        let FollowReport { name, namespace, shape, .. } = report;
        self.talk(&format!("{name}: {verdict}, {shape}{took} ({namespace}/{name})\n"));
        Ok(())
    }
}

/// What the job waits for.
fn why(job: &ClusterJob) -> Option<&str> {
    let nobody = "no operator has looked at it yet; `unisono operator install` installs one";
    job.why.first().map(String::as_str).or((!job.is_looked_at()).then_some(nobody))
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.2} s", Duration::from_millis(milliseconds).as_secs_f64())
}
