//! The neutral job: groups of members, what each runs, and the rules of its life.
//!
//! A [`Job`] is what every dialect is read into and what every plan is made from. It is right by construction: whoever
//! builds one has already refused what cannot run. This crate knows no file format, no engine and no clock.

mod command;
mod dialect;
mod group;
mod launch_line;
mod mpi;
mod name;
mod note;
mod place;
mod policy;
mod quantity;
mod secrets;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

pub use command::{Command, Shell};
pub use dialect::{Dialect, System};
pub use group::{
    CodeFolder, CodeSource, EndRule, EnvVar, Extras, Group, Image, PortRequest, Resources, Runs,
    Slots, SlotsFrom,
};
pub use launch_line::{LaunchLine, LaunchParts, Launcher};
pub use mpi::{Flavour, MpiChoice, MpiFrom};
pub use name::{
    JobName, MAX_LABEL, NameError, is_dns_label, is_label_value, label_from, shortened,
};
pub use note::{Code, Note, Severity};
pub use place::{Origins, Place, Position, Span};
pub use policy::{
    CleanUp, Gang, LaunchRights, LauncherStart, Policies, RestartPolicy, Retry, RetryCount,
};
pub use quantity::{Quantity, QuantityError};
pub use secrets::Secrets;
pub use words::{SplitError, quote, split_words};

/// One MPI job, whatever system it was written for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The name the user gave, or the one the dialect's rules made up.
    pub name: JobName,
    /// The Kubernetes namespace the file names, if it names one.
    pub namespace: Option<String>,
    /// The system and version the file was written for: names, defaults and status follow it.
    pub dialect: Dialect,
    /// Azure's `experiment_name`: a label under which runs are listed together.
    pub experiment: Option<String>,
    /// Labels of the job object itself.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the job object itself.
    pub annotations: BTreeMap<String, String>,
    /// Which MPI the job wants, and how we know.
    pub mpi: MpiChoice,
    /// The kinds of member, in the order in which their hosts are numbered.
    pub groups: Vec<Group>,
    /// Which members may start processes on which others.
    pub launch_rights: LaunchRights,
    /// Retries, deadlines, clean-up and the like.
    pub policies: Policies,
    /// Values in the commands that nobody is to be shown.
    #[serde(skip)]
    pub secrets: Secrets,
    /// Where the values above stood in the file.
    #[serde(skip)]
    pub origins: Origins,
}

impl Job {
    /// A job of these groups with nothing else said: any MPI, one attempt, only the launcher launches.
    pub fn new(name: JobName, dialect: Dialect, groups: Vec<Group>) -> Self {
        Self {
            name,
            namespace: None,
            dialect,
            experiment: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            mpi: MpiChoice { flavour: None, from: MpiFrom::Unknown },
            groups,
            launch_rights: LaunchRights::Launcher,
            policies: Policies::default(),
            secrets: Secrets::default(),
            origins: Origins::default(),
        }
    }

    /// The number of hosts over all groups.
    pub fn host_count(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.replicas)).sum()
    }

    /// The number of rank slots over all groups.
    pub fn slot_count(&self) -> u64 {
        self.groups
            .iter()
            .map(|group| u64::from(group.replicas) * u64::from(group.slots.count))
            .sum()
    }

    /// The group whose member runs the launch line, if the job has one.
    pub fn launching_group(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.runs.launch_line().is_some())
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}
