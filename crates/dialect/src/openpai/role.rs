//! A task role of either version, as a group.

use std::collections::BTreeMap;

use unisono_job::{
    CodeFolder, Command, Dialect, EndRule, EnvVar, Group, Image, Job, JobName, LaunchRights,
    MpiChoice, MpiFrom, Note, Policies, PortRequest, Quantity, Resources, Runs, Secrets, Slots,
};

use super::codes::ROLE_NAME;
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::Node;

/// A role, with every default filled in.
pub(super) struct Role {
    pub(super) name: String,
    pub(super) tasks: u32,
    pub(super) cpus: u64,
    pub(super) memory_mib: u64,
    pub(super) gpus: u64,
    pub(super) shm_mib: u64,
    pub(super) infiniband: bool,
    pub(super) ports: Vec<PortRequest>,
    pub(super) image: Option<String>,
    pub(super) command: Command,
    pub(super) end: EndRule,
}

/// What a job of either version is made of.
pub(super) struct Parts {
    pub(super) dialect: Dialect,
    pub(super) name: JobName,
    pub(super) roles: Vec<Role>,
    pub(super) env: Vec<EnvVar>,
    pub(super) code: Option<CodeFolder>,
    pub(super) policies: Policies,
    pub(super) kept: Kept,
    pub(super) secrets: Secrets,
}

impl Parts {
    /// The job: one group for each role, each with its own command, all of which may launch on all others.
    pub(super) fn into_job(self) -> Job {
        let slots = super::slots::of(&self.roles);
        let line = self.roles.iter().find_map(|role| role.command.launch_line());
        let flavour = line.and_then(|line| line.flavour);
        let from = if flavour.is_some() { MpiFrom::LaunchLine } else { MpiFrom::Unknown };
        let groups = self
            .roles
            .into_iter()
            .zip(slots)
            .map(|(role, slots)| role.into_group(slots, &self.env, self.code.as_ref()))
            .collect();
        let annotation = self.kept.into_annotation();
        Job {
            annotations: annotation.map(|it| (super::KEPT.to_owned(), it)).into_iter().collect(),
            mpi: MpiChoice { flavour, from },
            launch_rights: LaunchRights::Everybody,
            policies: self.policies,
            secrets: self.secrets,
            ..Job::new(self.name, self.dialect, groups)
        }
    }
}

impl Role {
    fn into_group(self, slots: Slots, env: &[EnvVar], code: Option<&CodeFolder>) -> Group {
        let mut limits = BTreeMap::new();
        let memory = Quantity::parse(&format!("{}Mi", self.memory_mib)).ok();
        let amounts = [
            ("cpu", self.cpus > 0, Some(Quantity::of(self.cpus))),
            ("memory", self.memory_mib > 0, memory),
            ("nvidia.com/gpu", self.gpus > 0, Some(Quantity::of(self.gpus))),
            ("rdma/hca", self.infiniband, Some(Quantity::of(1))),
        ];
        for (name, wanted, amount) in amounts {
            if let (true, Some(amount)) = (wanted, amount) {
                limits.insert(name.to_owned(), amount);
            }
        }
        Group {
            image: self.image.map(Image::Container),
            resources: Resources { limits, requests: BTreeMap::new() },
            env: env.to_vec(),
            code: code.cloned(),
            ports: with_common_ports(self.ports),
            shm_mib: Some(self.shm_mib),
            end: self.end,
            ..Group::new(self.name, self.tasks, slots, Runs::Own(self.command))
        }
    }
}

/// Every task has a port for `http` and one for `ssh`, asked for or not.
fn with_common_ports(mut ports: Vec<PortRequest>) -> Vec<PortRequest> {
    for label in ["http", "ssh"] {
        if !ports.iter().any(|port| port.label == label) {
            ports.push(PortRequest { label: label.to_owned(), begin_at: None, count: 1 });
        }
    }
    ports
}

/// A whole number, also one written as text, as OpenPAI takes it.
pub(super) fn number<T: TryFrom<i128>>(node: Option<&Node>) -> Option<T> {
    let node = node?;
    node.integer().or_else(|| T::try_from(node.text()?.trim().parse().ok()?).ok())
}

/// Names with `.` or `~` give variables that no shell can read.
pub(super) fn warn_about_name(name: &str, node: &Node, notebook: &mut Notebook<'_>) {
    if name.contains(['.', '~']) {
        let message = format!("variables such as `PAI_HOST_IP_{name}_0` cannot be read by a shell");
        let better: String = name.replace(['.', '~'], "_");
        notebook
            .tell(Note::new(&ROLE_NAME, message).hint(format!("call the role `{better}`")), node);
    }
}
