//! `type: MpiJob` with `launcher` and `worker`: the first form, in which the command is the launch line.
//!
//! That form left open where processes per host come from. Here they are `worker.slots_per` or, beside the count of
//! hosts, `compute.process_count_per_instance`; else the GPU limit, else the launch line tells them.

use unisono_job::{Dialect, Job, Note};

use super::codes::WORKER_COMMAND;
use super::fields::MANAGED;
use super::launched::{Compute, Launched, Needs};
use super::{environment, values};
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::Node;
use crate::{Options, codes};

/// The job of a document.
pub(super) fn lower(root: &Node, options: &Options, notebook: &mut Notebook<'_>) -> Option<Job> {
    let mut kept = Kept::default();
    let name = values::name(root, options, notebook);
    let compute = compute(root, &mut kept);
    warn_about_worker_commands(root, notebook);
    let launcher = needs(root, "launcher", &mut kept, notebook);
    let worker = needs(root, "worker", &mut kept, notebook);
    if compute == Some(Compute::Managed) {
        check_managed(root, notebook);
    }
    let hosts = values::count(
        &[
            root.at(&["worker", "num_replicas"]),
            root.at(&["compute", "instance_count"]),
            root.at(&["compute", "node_count"]),
        ],
        "the number of hosts",
        notebook,
    );
    let processes = values::count(
        &[root.at(&["worker", "slots_per"]), root.at(&["compute", "process_count_per_instance"])],
        "the number of processes on each host",
        notebook,
    );
    let group = if compute == Some(Compute::Kubernetes) { "worker" } else { "node" };
    let launching = if compute == Some(Compute::Kubernetes) { "launcher" } else { "node" };
    notebook.origin(format!("{group}.replicas"), hosts.map(|(_, node)| node));
    notebook.origin(format!("{group}.slots"), processes.map(|(_, node)| node));
    notebook.origin(format!("{launching}.command"), root.at(&["launcher", "spec", "command"]));
    notebook.origin(format!("{group}.image"), root.at(&["worker", "spec", "environment"]));
    if launching != group {
        let environment = root.at(&["launcher", "spec", "environment"]);
        notebook.origin(format!("{launching}.image"), environment);
    }
    Launched {
        dialect: Dialect::AzureMpiJob,
        name,
        experiment: root.at(&["experiment_name"]).and_then(Node::text).map(str::to_owned),
        command: root.at(&["launcher", "spec", "command"]),
        code: values::code(root.at(&["launcher", "spec", "code"]), notebook),
        env: Vec::new(),
        launcher,
        worker,
        compute: compute?,
        hosts: hosts.map(|(count, _)| count),
        processes: processes.map(|(count, _)| count),
        kept,
    }
    .into_job(notebook)
}

fn compute(root: &Node, kept: &mut Kept) -> Option<Compute> {
    if let Some(target) = root.at(&["compute", "target"]).and_then(Node::text) {
        kept.set(&["compute"], values::cluster_reference(target).into());
    }
    let kind = root.at(&["compute", "type"])?.text()?;
    let managed = MANAGED.iter().any(|name| name.eq_ignore_ascii_case(kind));
    Some(if managed { Compute::Managed } else { Compute::Kubernetes })
}

fn needs(root: &Node, role: &str, kept: &mut Kept, notebook: &mut Notebook<'_>) -> Needs {
    let image = environment::image(root.at(&[role, "spec", "environment"]), kept, notebook);
    let limits = [root.at(&[role, "spec", "resource_limits"]), root.at(&[role, "resource_limits"])];
    Needs { image, resources: values::limits(&limits, notebook) }
}

/// Managed hosts are rented by the count, and the launcher is one of them.
fn check_managed(root: &Node, notebook: &mut Notebook<'_>) {
    let counted =
        ["instance_count", "node_count"].iter().any(|key| root.at(&["compute", key]).is_some())
            || root.at(&["worker", "num_replicas"]).is_some();
    if let (Some(compute), false) = (root.at(&["compute"]), counted) {
        let note = Note::new(&codes::MISSING, "AmlCompute needs `compute.instance_count`")
            .hint("add `instance_count`: how many hosts the job runs on");
        notebook.tell(note, compute);
    }
    let limits = root
        .at(&["launcher", "spec", "resource_limits"])
        .or_else(|| root.at(&["launcher", "resource_limits"]));
    if let Some(limits) = limits {
        let message =
            "on AmlCompute the launcher is one of the hosts: limits of its own have no effect";
        notebook.tell(Note::new(&codes::IGNORED, message), limits);
    }
}

fn warn_about_worker_commands(root: &Node, notebook: &mut Notebook<'_>) {
    for key in ["command", "code"] {
        if let Some(node) = root.at(&["worker", "spec", key]) {
            let message = format!("the workers of an MPI job have no {key} of their own");
            let note = Note::new(&WORKER_COMMAND, message)
                .hint(format!("move it to `launcher.spec.{key}`, or remove it"));
            notebook.tell(note, node);
        }
    }
}
