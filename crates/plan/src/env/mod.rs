//! The environment Unisono adds: what each dialect promises, and what every MPI flavour needs.
//!
//! What all members of a group share is fixed in the plan. What depends on the host, or on addresses that are known only
//! when hosts are up, is made on demand by [`of_host`] and [`with_addresses`].

mod azure;
mod kube_batch;
mod kubeflow;
mod local;
mod mpi;
mod openpai;

use std::collections::BTreeMap;

use unisono_job::{Group, Job, LaunchRights, System};

use crate::bind::Addresses;
use crate::hostfile::Form;
use crate::{EngineKind, Facts, Host, Plan, Variable};

pub(crate) use mpi::{even_slots, reaches_by_ssh};

/// Paths of the host files, by who reads them.
pub(crate) struct HostfilePaths {
    /// Where the dialect promises its host file.
    pub(crate) promised: String,
    /// The file with `host slots=n`.
    pub(crate) slots: String,
    /// The file with `host:n`.
    pub(crate) colon: String,
}

impl HostfilePaths {
    pub(crate) fn of(job: &Job, facts: &Facts) -> Self {
        let promised = facts.path(match job.dialect.system() {
            System::KubeBatch => "/mpi/hostfile",
            System::AzureMl | System::OpenPai | System::Kubeflow | System::Unisono => {
                "/etc/mpi/hostfile"
            }
        });
        let form = Form::promised(job);
        // A bare line means one rank to Hydra, so kube-batch's own file serves as long as that is true.
        let one_each = form == Form::Bare && even_slots(job) == Some(1);
        let own = |name: &str| format!("{}/hostfile.{name}", facts.home);
        Self {
            slots: if form == Form::Slots { promised.clone() } else { own("openmpi") },
            colon: if form == Form::Colon || one_each { promised.clone() } else { own("hydra") },
            promised,
        }
    }
}

/// What all members of a group that run the same thing get.
pub(crate) fn shared(job: &Job, facts: &Facts, group: &Group, launches: bool) -> Vec<Variable> {
    let paths = HostfilePaths::of(job, facts);
    let mut variables = match job.dialect.system() {
        System::Kubeflow => kubeflow::shared(job, group, launches),
        System::OpenPai => openpai::shared(job, facts, group),
        System::AzureMl if launches => azure::shared(&paths),
        System::KubeBatch => kube_batch::shared(facts),
        System::AzureMl | System::Unisono => Vec::new(),
    };
    if may_start_ranks(job, launches) {
        variables.extend(mpi::variables(job, facts, &paths));
        if facts.engine == EngineKind::Local {
            variables.extend(local::variables(facts));
        }
    }
    variables.retain(|variable| !is_the_users(group, &variable.name));
    variables
}

/// Whether a member gets what a launcher of ranks needs. kube-batch gave it to every pod.
pub(crate) fn may_start_ranks(job: &Job, launches: bool) -> bool {
    launches
        || job.launch_rights == LaunchRights::Everybody
        || job.dialect.system() == System::KubeBatch
}

/// What this host gets beside what its group shares.
pub fn of_host(plan: &Plan, host: &Host) -> Vec<Variable> {
    match plan.job.dialect.system() {
        System::OpenPai => openpai::of_host(plan, host),
        System::AzureMl => azure::of_host(plan, host),
        System::Kubeflow | System::KubeBatch | System::Unisono => Vec::new(),
    }
}

/// What is known when a host starts, and not before.
#[derive(Clone, Copy, Debug)]
pub struct Start<'engine> {
    /// How many attempts went before.
    pub attempt: u32,
    /// The folder its command starts in, when the engine knows it.
    pub folder: Option<&'engine str>,
}

/// What a host gets when it starts.
pub fn at_start(plan: &Plan, start: &Start<'_>) -> Vec<Variable> {
    match plan.job.dialect.system() {
        System::OpenPai => openpai::at_start(start),
        System::AzureMl | System::Kubeflow | System::KubeBatch | System::Unisono => Vec::new(),
    }
}

/// What hosts get once every host has an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Variables that are the same on every host. As long as the job's list of hosts.
    pub shared: Vec<Variable>,
    /// Names of variables that hold the address of the host they are set on.
    pub own_address: &'static [&'static str],
    /// Names of variables that hold the folder that a command starts in.
    pub own_folder: &'static [&'static str],
}

/// What hosts get once every host has an address.
pub fn late(plan: &Plan, addresses: &Addresses) -> Late {
    match plan.job.dialect.system() {
        System::OpenPai => openpai::late(plan, addresses),
        System::AzureMl => {
            Late { shared: azure::with_addresses(plan, addresses), ..Late::default() }
        }
        System::Kubeflow | System::KubeBatch | System::Unisono => Late::default(),
    }
}

/// What this host gets once every host has an address.
pub fn with_addresses(plan: &Plan, host: &Host, addresses: &Addresses) -> Vec<Variable> {
    let late = late(plan, addresses);
    let own = addresses.get(&host.member).map(ToString::to_string);
    let of_host = own.iter().flat_map(|own| {
        late.own_address.iter().map(move |name| Variable::new(*name, own.as_str()))
    });
    of_host.chain(late.shared).collect()
}

/// The whole environment of a host, once every host has an address: the file's variables, and ours over them.
pub fn complete(plan: &Plan, host: &Host, addresses: &Addresses) -> BTreeMap<String, String> {
    let program = plan.program_of(host);
    let fixed = program.user_env.iter().chain(&program.added_env).cloned();
    fixed
        .chain(of_host(plan, host))
        .chain(with_addresses(plan, host, addresses))
        .map(|Variable { name, value }| (name, value))
        .collect()
}

/// Tuning that the file sets itself is left to it; how hosts are reached is not.
fn is_the_users(group: &Group, name: &str) -> bool {
    let how_hosts_are_reached = ["AGENT", "EXEC", "HOSTFILE", "HOST_FILE", "LAUNCHER", "BOOTSTRAP"]
        .iter()
        .any(|part| name.to_ascii_uppercase().contains(part))
        || name.starts_with("PAI_");
    !how_hosts_are_reached && group.env.iter().any(|variable| variable.name == name)
}

/// Pairs of literals as variables.
fn literals(pairs: &[(&str, &str)]) -> Vec<Variable> {
    pairs.iter().map(|(name, value)| Variable::new(*name, *value)).collect()
}
