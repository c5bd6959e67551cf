//! Builds the job of a form in which the user writes the launch line.

use std::collections::BTreeMap;

use unisono_job::{
    CodeFolder, Command, Dialect, EndRule, EnvVar, Group, Image, Job, JobName, LaunchLine,
    MpiChoice, MpiFrom, Note, Resources, Runs, Slots, SlotsFrom,
};

use super::codes::{HOST_COUNT, PROCESS_COUNT};
use super::fields::{MAX_HOSTS, MAX_PROCESSES};
use crate::codes;
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::Node;

/// What the two forms have in common, taken from where each has it.
pub(super) struct Launched<'tree> {
    pub(super) dialect: Dialect,
    pub(super) name: Option<JobName>,
    pub(super) experiment: Option<String>,
    /// The launch line.
    pub(super) command: Option<&'tree Node>,
    pub(super) code: Option<CodeFolder>,
    pub(super) env: Vec<EnvVar>,
    pub(super) launcher: Needs,
    pub(super) worker: Needs,
    pub(super) compute: Compute,
    /// How many hosts (or workers), where the file states it.
    pub(super) hosts: Option<u32>,
    /// Processes on each, where the file states it.
    pub(super) processes: Option<u32>,
    pub(super) kept: Kept,
}

/// What one kind of member needs.
pub(super) struct Needs {
    pub(super) image: Option<Image>,
    pub(super) resources: Resources,
}

/// Where the job runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compute {
    /// Hosts of Azure ML's own; the first of them launches and hosts ranks as well.
    Managed,
    /// A Kubernetes cluster; a launcher without ranks stands beside the workers.
    Kubernetes,
}

impl Launched<'_> {
    /// The job; none while a fault stands in its way.
    pub(super) fn into_job(self, notebook: &mut Notebook<'_>) -> Option<Job> {
        let text = self.command?.text()?;
        let line = LaunchLine::from_text(text);
        let hosts = self.host_count(line.as_ref(), notebook)?;
        let (name, false) = (self.name.clone()?, notebook.has_faults()) else { return None };
        let slots = self.slots(hosts, line.as_ref(), notebook);
        if slots.count > MAX_PROCESSES {
            let message =
                format!("{} processes on each host: the most is {MAX_PROCESSES}", slots.count);
            notebook.tell(Note::new(&codes::OUT_OF_RANGE, message), self.command?);
            return None;
        }
        let flavour = line.and_then(|line| line.flavour);
        let from = if flavour.is_some() { MpiFrom::LaunchLine } else { MpiFrom::Unknown };
        let command = Command::bash(text);
        let group = |name: &str, replicas, slots, runs, needs: Needs, end| Group {
            image: needs.image,
            resources: needs.resources,
            env: self.env.clone(),
            code: self.code.clone(),
            end,
            ..Group::new(name, replicas, slots, runs)
        };
        let groups = match self.compute {
            Compute::Managed => {
                let runs = Runs::LaunchOnFirst(command);
                vec![group("node", hosts, slots, runs, self.worker, EndRule::FIRST)]
            }
            Compute::Kubernetes => vec![
                group(
                    "launcher",
                    1,
                    Slots::NONE,
                    Runs::Launch(command),
                    self.launcher,
                    EndRule::FIRST,
                ),
                group("worker", hosts, slots, Runs::Ranks(None), self.worker, EndRule::NEVER),
            ],
        };
        Some(Job {
            experiment: self.experiment,
            annotations: annotations(self.kept),
            mpi: MpiChoice { flavour, from },
            ..Job::new(name, self.dialect, groups)
        })
    }

    /// The stated count; else the ranks of the launch line, divided by those of one host; else one.
    fn host_count(&self, line: Option<&LaunchLine>, notebook: &mut Notebook<'_>) -> Option<u32> {
        if let Some(stated) = self.hosts {
            return Some(stated);
        }
        let gpus = u32::try_from(self.worker.resources.gpus()).ok().filter(|gpus| *gpus > 0);
        let each = self.processes.or(gpus).or(line.and_then(|line| line.per_host));
        let ranks = line.and_then(|line| line.ranks);
        let command = self.command?;
        match (ranks, each) {
            (Some(ranks), Some(each)) if ranks > 0 && each > 0 => {
                let hosts = ranks.div_ceil(each);
                if hosts > MAX_HOSTS {
                    let message = format!(
                        "{ranks} ranks, {each} on each host, need {hosts} hosts: the most is {MAX_HOSTS}"
                    );
                    notebook.tell(Note::new(&codes::OUT_OF_RANGE, message), command);
                    return None;
                }
                Some(hosts)
            }
            _ => {
                if !notebook.has_faults() {
                    let note = Note::new(&HOST_COUNT, "nothing tells how many hosts: one is taken")
                        .hint("state the count, or `-np N` and the GPUs of a worker");
                    notebook.tell(note, command);
                }
                Some(1)
            }
        }
    }

    fn slots(&self, hosts: u32, line: Option<&LaunchLine>, notebook: &mut Notebook<'_>) -> Slots {
        if let Some(stated) = self.processes {
            return Slots::stated(stated);
        }
        let each = line.and_then(|line| line.per_host);
        let ranks = line.and_then(|line| line.ranks);
        let ranks = ranks.or_else(|| each.map(|each| each.saturating_mul(hosts)));
        let slots = Slots::derived(self.worker.resources.gpus(), ranks, hosts);
        if let (SlotsFrom::Default, Some(command)) = (slots.from, self.command) {
            let note = Note::new(
                &PROCESS_COUNT,
                "nothing tells how many processes each host runs: one is taken",
            )
            .hint("state it, or write `-np N` in the launch line");
            notebook.tell(note, command);
        }
        slots
    }
}

/// The job's annotations: what was kept, if anything was.
pub(super) fn annotations(kept: Kept) -> BTreeMap<String, String> {
    kept.into_annotation().map(|text| (super::KEPT.to_owned(), text)).into_iter().collect()
}
