//! The plan: every host, what it runs, its variables and its files, as far as they can be known before anything runs.
//!
//! A plan is linear in its hosts: what members of a group share is held once, in a [`Program`], and lists that grow with
//! the number of hosts (host files, host tables, lists of addresses) are made on demand from the plan.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use unisono_job::{Dialect, Group, Job, Note};

use crate::hostfile::Form;
use crate::{EngineKind, Facts, Names};

/// What would run where. Made by [`lay_out`](crate::lay_out()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The job as it will run: the file's, with the caller's numbers.
    pub job: Job,
    /// What was known when the plan was made.
    pub facts: Facts,
    /// Which version of the job this is a plan of; grows with every change.
    pub generation: u64,
    /// Names of everything the job owns.
    pub names: Names,
    /// Every host, group by group, each group in index order.
    pub hosts: Vec<Host>,
    /// What hosts run, held once for all hosts that run the same.
    pub programs: Vec<Program>,
    /// How many ranks the launch line starts; absent when nothing tells it.
    pub ranks: Option<u32>,
    /// The host that runs the launch line.
    pub launch_on: Option<Member>,
    /// The form of the host file that the dialect promises.
    pub hostfile_form: Form,
    /// What is worth telling about the job.
    pub notes: Vec<Note>,
    /// Where each group's hosts begin.
    pub(crate) first_of_group: Vec<usize>,
}

/// One host of the job, and the one member that lives on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name users of this dialect call it by.
    pub name: String,
    /// Which member of which group.
    pub member: Member,
    /// How many ranks it is meant to run.
    pub slots: u32,
    /// What it is for.
    pub runs: HostRuns,
    /// Its program, as an index into [`Plan::programs`].
    pub(crate) program: usize,
}

/// A member, by its group's place in the job and its index in the group. Stays the same when groups grow or shrink.
/// Written as `GROUP.INDEX`, also where it is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The group's place in the job.
    pub group: u32,
    /// The index in the group, from 0.
    pub index: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.group, self.index)
    }
}

/// Why a text names no member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member is written as GROUP.INDEX, two numbers")]
pub struct NoMember;

impl FromStr for Member {
    type Err = NoMember;

    fn from_str(text: &str) -> Result<Self, NoMember> {
        let (group, index) = text.split_once('.').ok_or(NoMember)?;
        let number = |text: &str| text.parse().map_err(|_| NoMember);
        Ok(Self { group: number(group)?, index: number(index)? })
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// What a host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRuns {
    /// The launch line.
    Launch,
    /// A command of its own.
    Command,
    /// Ranks only.
    Ranks,
    /// The launch line, and ranks.
    LaunchAndRanks,
}

impl HostRuns {
    /// The word for it in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Command => "command",
            Self::Ranks => "ranks",
            Self::LaunchAndRanks => "launch+ranks",
        }
    }

    /// Whether the host runs something that ends, and so can end the job.
    pub const fn runs_command(self) -> bool {
        !matches!(self, Self::Ranks)
    }

    /// Whether the host runs the launch line.
    pub const fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::LaunchAndRanks)
    }
}

impl Serialize for HostRuns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a host runs, with what around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// What is executed.
    pub argv: Argv,
    /// Variables the file sets, in its order.
    pub user_env: Vec<Variable>,
    /// Variables Unisono adds; they win over the file's.
    pub added_env: Vec<Variable>,
    /// Files Unisono puts into the host.
    pub files: Vec<PlannedFile>,
    /// The working directory, where the file states one.
    pub working_dir: Option<String>,
}

/// What is executed on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Argv {
    /// These words.
    Words(Vec<String>),
    /// The image's entry point with these arguments; only an engine with images can do that.
    ImageEntry(Vec<String>),
    /// Nothing: the host waits for ranks.
    Nothing,
}

/// A variable with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Variable {
    /// A variable.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A file Unisono puts into a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedFile {
    /// Its path inside the host.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub content: FileContent,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// The hosts with rank slots, one a line.
    Hostfile(Form),
    /// A script that prints the hosts with rank slots, as elastic launchers call it.
    DiscoverHosts {
        /// Whether each line also has the slots, as `host:slots`.
        with_slots: bool,
    },
    /// This text.
    Text(String),
}

impl Plan {
    /// The host of a member, if the plan has it.
    pub fn host(&self, member: Member) -> Option<&Host> {
        let group = usize::try_from(member.group).ok()?;
        let replicas = self.job.groups.get(group)?.replicas;
        let index = usize::try_from(member.index).ok()?;
        (member.index < replicas)
            .then(|| self.hosts.get(self.first_of_group.get(group)? + index))
            .flatten()
    }

    /// The host of that name.
    pub fn host_named(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The host that runs the launch line.
    pub fn launch_host(&self) -> Option<&Host> {
        self.host(self.launch_on?)
    }

    /// The group a host belongs to.
    pub fn group_of(&self, host: &Host) -> &Group {
        &self.job.groups[host.member.group as usize]
    }

    /// What a host runs.
    pub fn program_of(&self, host: &Host) -> &Program {
        &self.programs[host.program]
    }

    /// The hosts of one group, in index order.
    pub fn hosts_of_group(&self, group: u32) -> &[Host] {
        let group = group as usize;
        let first = self.first_of_group.get(group).copied().unwrap_or(0);
        let count = self.job.groups.get(group).map_or(0, |group| group.replicas as usize);
        self.hosts.get(first..first + count).unwrap_or_default()
    }

    /// The hosts that are meant to run ranks, in the order in which host files list them.
    pub fn rank_hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.slots > 0)
    }

    /// The name of a host's pod that is made in that epoch.
    pub fn pod_name(&self, host: &Host, epoch: u32) -> String {
        let (group, index) = (&self.group_of(host).name, host.member.index);
        let launches = host.runs.launches();
        self.names.pod(&self.job, group, index, launches, epoch)
    }

    /// Slots over all hosts.
    pub fn slot_count(&self) -> u64 {
        self.hosts.iter().map(|host| u64::from(host.slots)).sum()
    }

    /// The namespace the job lives in.
    pub fn namespace(&self) -> &str {
        self.job.namespace.as_deref().unwrap_or(&self.facts.namespace)
    }

    /// Words of a command as they may be shown: the job's secrets are hidden.
    pub fn shown(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.job.secrets.hidden(word)).collect()
    }

    /// Whether hosts are reached by ssh, as their images provide it, and not by our agent.
    pub fn reaches_by_ssh(&self) -> bool {
        self.facts.engine == EngineKind::Kubernetes && crate::env::reaches_by_ssh(&self.job)
    }

    /// The dialect in whose words status and events are told.
    pub fn told_as(&self) -> Dialect {
        self.facts.told_as.unwrap_or(self.job.dialect)
    }

    /// Whether this member may start processes on other hosts.
    pub fn may_launch(&self, member: Member) -> bool {
        match self.job.launch_rights {
            unisono_job::LaunchRights::Launcher => self.launch_on == Some(member),
            unisono_job::LaunchRights::Everybody => true,
        }
    }
}
