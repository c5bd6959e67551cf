//! The flattened form: `command` and `distributed.mpi` at the top, without launcher and worker specs.

use unisono_job::{Dialect, Job, Note};

use super::fields::KUBERNETES;
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
    check_framework(root, notebook);
    let compute = compute(root, &mut kept, notebook);
    if let Some(description) = root.at(&["description"]) {
        kept.set(&["description"], description.to_json());
    }
    let image = environment::image(root.at(&["environment"]), &mut kept, notebook);
    let mut limits = |role| {
        values::limits(&[root.at(&["distributed", "mpi", role, "resources", "limits"])], notebook)
    };
    let launcher = Needs { image: image.clone(), resources: limits("launcher") };
    let worker = Needs { image, resources: limits("worker") };
    let hosts = values::count(
        &[
            root.at(&["distributed", "mpi", "worker", "count"]),
            root.at(&["compute", "instance_count"]),
        ],
        "the number of workers",
        notebook,
    );
    let processes = root.at(&["distributed", "mpi", "worker", "slots_per"]);
    let (group, launching) = match compute {
        Compute::Managed => ("node", "node"),
        Compute::Kubernetes => ("worker", "launcher"),
    };
    notebook.origin(format!("{group}.replicas"), hosts.map(|(_, node)| node));
    notebook.origin(format!("{group}.slots"), processes);
    notebook.origin(format!("{launching}.command"), root.at(&["command"]));
    notebook.origin(format!("{launching}.image"), root.at(&["environment"]));
    notebook.origin(format!("{group}.image"), root.at(&["environment"]));
    Launched {
        dialect: Dialect::AzureFlat,
        name,
        experiment: root.at(&["experiment_name"]).and_then(Node::text).map(str::to_owned),
        command: root.at(&["command"]),
        code: values::code(root.at(&["code"]), notebook),
        env: values::variables(root.at(&["environment_variables"]), notebook),
        launcher,
        worker,
        compute,
        hosts: hosts.map(|(count, _)| count),
        processes: processes.and_then(Node::integer),
        kept,
    }
    .into_job(notebook)
}

/// `distributed` names the framework by its key; only `mpi` is ours.
fn check_framework(root: &Node, notebook: &mut Notebook<'_>) {
    let Some(distributed) = root.at(&["distributed"]) else { return };
    for entry in distributed.entries().iter().filter(|entry| entry.key != "mpi") {
        let message = format!(
            "`distributed.{}` does not start its processes by MPI",
            crate::clipped(&entry.key)
        );
        let note = Note::new(&codes::OTHER_JOB, message)
            .hint("to run it by MPI, write `distributed: {mpi: {worker: {count: N}}}` and a launch line (`mpirun -np N … python …`) as `command`");
        notebook.tell_key(note, entry);
    }
    if distributed.entries().is_empty() {
        let note = Note::new(&codes::MISSING, "`distributed` needs `mpi`")
            .hint("write `distributed: {mpi: {worker: {count: N}}}`");
        notebook.tell(note, distributed);
    }
}

fn compute(root: &Node, kept: &mut Kept, notebook: &mut Notebook<'_>) -> Compute {
    if let Some(target) = root.at(&["compute", "target"]).and_then(Node::text) {
        kept.set(&["compute"], values::cluster_reference(target).into());
    }
    if let Some(size) = root.at(&["compute", "instance_type"]) {
        kept.set(&["resources", "instance_type"], size.to_json());
        let note = Note::new(
            &codes::IGNORED,
            "hosts are taken as they are: `instance_type` has no effect",
        );
        notebook.tell(note, size);
    }
    let kind = |key| root.at(&["compute", key]).and_then(Node::text);
    let is_kubernetes = |kind: &str| KUBERNETES.iter().any(|name| name.eq_ignore_ascii_case(kind));
    if let (Some(infrastructure), Some(older)) = (kind("infrastructure"), kind("type"))
        && is_kubernetes(infrastructure) != is_kubernetes(older)
        && let Some(node) = root.at(&["compute", "type"])
    {
        let message =
            format!("`infrastructure: {infrastructure}` and `type: {older}` contradict each other");
        notebook.tell(Note::new(&codes::INVALID, message).hint("remove `type`"), node);
    }
    match kind("infrastructure").or(kind("type")) {
        Some(kind) if is_kubernetes(kind) => Compute::Kubernetes,
        Some(_) | None => Compute::Managed,
    }
}
