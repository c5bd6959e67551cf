//! A plan as people and programs read it: one serialisable document.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::hostfile::{self, promised_name};
use crate::{Argv, HostRuns, Plan, Program, Variable, env};

/// A plan as one document. Notes are added by whoever prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View<'plan> {
    /// The job.
    pub job: JobView<'plan>,
    /// Every host.
    pub hosts: Vec<HostView<'plan>>,
    /// How many ranks start; null when nothing tells it.
    pub ranks: Option<u32>,
    /// The host file as the dialect promises it.
    pub hostfile: String,
    /// The launch line; null when no member launches.
    pub launch: Option<LaunchView<'plan>>,
}

/// The job of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobView<'plan> {
    /// Its name.
    pub name: &'plan str,
    /// Its dialect.
    pub dialect: &'static str,
    /// Its namespace.
    pub namespace: &'plan str,
}

/// A host of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView<'plan> {
    /// Its name.
    pub name: &'plan str,
    /// Its group.
    pub group: &'plan str,
    /// Its index in the group.
    pub index: u32,
    /// How many ranks it is meant to run.
    pub slots: u32,
    /// What it is for.
    pub runs: HostRuns,
}

/// The launch line of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchView<'plan> {
    /// The host that runs it.
    pub on: &'plan str,
    /// What is executed, with secrets hidden; null when only the image knows it.
    pub argv: Option<Vec<String>>,
    /// The environment Unisono adds.
    pub env: BTreeMap<String, String>,
}

impl<'plan> View<'plan> {
    /// The view of a plan.
    pub fn of(plan: &'plan Plan) -> Self {
        Self {
            job: JobView {
                name: plan.job.name.as_str(),
                dialect: plan.job.dialect.name(),
                namespace: plan.namespace(),
            },
            hosts: plan.hosts.iter().map(|host| host_view(plan, host)).collect(),
            ranks: plan.ranks,
            hostfile: hostfile(plan),
            launch: launch_view(plan),
        }
    }
}

/// The host file as the dialect promises it.
pub fn hostfile(plan: &Plan) -> String {
    hostfile::text(plan, plan.hostfile_form, |host| promised_name(plan, host))
}

fn host_view<'plan>(plan: &'plan Plan, host: &'plan crate::Host) -> HostView<'plan> {
    HostView {
        name: &host.name,
        group: &plan.group_of(host).name,
        index: host.member.index,
        slots: host.slots,
        runs: host.runs,
    }
}

fn launch_view(plan: &Plan) -> Option<LaunchView<'_>> {
    let host = plan.launch_host()?;
    let program = plan.program_of(host);
    let added = program.added_env.iter().cloned();
    Some(LaunchView {
        on: &host.name,
        argv: words(plan, program),
        env: added
            .chain(env::of_host(plan, host))
            .map(|Variable { name, value }| (name, value))
            .collect(),
    })
}

fn words(plan: &Plan, program: &Program) -> Option<Vec<String>> {
    match &program.argv {
        Argv::Words(words) => Some(plan.shown(words)),
        Argv::ImageEntry(_) | Argv::Nothing => None,
    }
}
