//! Host files: the hosts that run ranks, in the form that an MPI's launcher reads.

use std::fmt::Write;

use serde::Serialize;
use unisono_job::{Dialect, Flavour, Job, System};

use crate::{Host, Plan};

/// How a host and its slots stand on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `host slots=n`: Open MPI.
    Slots,
    /// `host:n`: Intel MPI and MPICH.
    Colon,
    /// `host`: kube-batch promised no more.
    Bare,
}

impl Form {
    /// The form that a job's dialect promises.
    pub(crate) fn promised(job: &Job) -> Self {
        match (job.dialect.system(), job.mpi.flavour) {
            (System::KubeBatch, _) => Self::Bare,
            (_, Some(Flavour::Intel | Flavour::Mpich)) => Self::Colon,
            (_, Some(Flavour::OpenMpi) | None) => Self::Slots,
        }
    }
}

/// The host file of a plan, with hosts as `name` calls them.
pub fn text<'plan>(
    plan: &'plan Plan,
    form: Form,
    name: impl Fn(&'plan Host) -> std::borrow::Cow<'plan, str>,
) -> String {
    let mut text = String::with_capacity(plan.hosts.len() * 40);
    for host in plan.rank_hosts() {
        let (name, slots) = (name(host), host.slots);
        // Writing to a String cannot fail.
        let _written = match form {
            Form::Slots => writeln!(text, "{name} slots={slots}"),
            Form::Colon => writeln!(text, "{name}:{slots}"),
            Form::Bare => writeln!(text, "{name}"),
        };
    }
    text
}

/// What a host is called in the dialect's own host file.
pub fn promised_name<'plan>(plan: &'plan Plan, host: &'plan Host) -> std::borrow::Cow<'plan, str> {
    match plan.job.dialect {
        Dialect::KubeflowV2beta1 => full_name(plan, host).into(),
        Dialect::AzureMpiJob
        | Dialect::AzureFlat
        | Dialect::AzureCommand
        | Dialect::OpenPaiV1
        | Dialect::OpenPaiV2
        | Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeflowV1
        | Dialect::KubeBatch
        | Dialect::Unisono => host.name.as_str().into(),
    }
}

/// A host's full name inside a cluster.
pub(crate) fn full_name(plan: &Plan, host: &Host) -> String {
    let stem = format!("{}.{}.{}.svc", host.name, plan.names.service(), plan.namespace());
    match &plan.facts.cluster_domain {
        Some(domain) => format!("{stem}.{domain}"),
        None => stem,
    }
}

/// Every name under which a host can be reached, its own first.
pub fn aliases(plan: &Plan, host: &Host) -> Vec<String> {
    let mut names = vec![host.name.clone()];
    if plan.job.dialect == Dialect::KubeflowV2beta1 {
        let service = plan.names.service();
        let short = format!("{}.{service}", host.name);
        let with_namespace = format!("{short}.{}", plan.namespace());
        let in_cluster = format!("{with_namespace}.svc");
        names.extend([short, with_namespace, in_cluster]);
        names.extend(plan.facts.cluster_domain.is_some().then(|| full_name(plan, host)));
    }
    names
}
