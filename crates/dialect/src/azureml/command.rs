//! CLI v2 command jobs: the command is what every rank runs, and we write the launch line before it.

use unisono_job::{
    Command, Dialect, EndRule, Group, Job, LaunchLine, Note, Policies, Runs, Slots, SlotsFrom,
};

use super::codes::{OWN_LAUNCHER, PROCESS_COUNT, UNRESOLVED_INPUT};
use super::launched::annotations;
use super::{command_fields, environment, placeholders, values};
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::Node;
use crate::{Options, clipped, codes, nearest};

/// Fields that Unisono keeps but does not act on, and why; no reason means that nobody acts on them.
const KEPT_FIELDS: [(&[&str], &str); 15] = [
    (&["$schema"], ""),
    (&["display_name"], ""),
    (&["description"], ""),
    (&["tags"], ""),
    (&["properties"], ""),
    (&["inputs"], ""),
    (&["outputs"], ""),
    (&["identity"], "data is read as the user who runs the job"),
    (&["services"], "no services are started beside the job"),
    (&["queue_settings"], "there are no tiers to wait in"),
    (&["resources", "instance_type"], "hosts are taken as they are"),
    (&["resources", "docker_args"], "docker is not used"),
    (&["resources", "properties"], "they are for Azure ML's scheduler"),
    (&["resources", "locations"], "they are for Azure ML's scheduler"),
    (&["resources", "max_instance_count"], "jobs do not grow"),
];

/// The job of a document.
pub(super) fn lower(root: &Node, options: &Options, notebook: &mut Notebook<'_>) -> Option<Job> {
    let mut kept = Kept::default();
    let name = values::name(root, options, notebook);
    check_type(root, notebook);
    keep_fields(root, &mut kept, notebook);
    keep_compute(root, &mut kept);
    let image = environment::image(root.at(&["environment"]), &mut kept, notebook);
    let hosts = values::count(
        &[
            root.at(&["resources", "instance_count"]),
            root.at(&["compute", "instance_count"]),
            root.at(&["compute", "node_count"]),
        ],
        "the number of hosts",
        notebook,
    );
    let processes = values::count(
        &[
            root.at(&["distribution", "process_count_per_instance"]),
            root.at(&["distribution", "process_count_per_node"]),
        ],
        "the number of processes on each host",
        notebook,
    );
    let code = values::code(root.at(&["code"]), notebook);
    let env = values::variables(root.at(&["environment_variables"]), notebook);
    let (name, false) = (name?, notebook.has_faults()) else { return None };
    notebook.origin("node.replicas", hosts.map(|(_, node)| node));
    notebook.origin("node.slots", processes.map(|(_, node)| node));
    notebook.origin("node.command", root.at(&["command"]));
    notebook.origin("node.image", root.at(&["environment"]));
    notebook.origin("policies.deadline", root.at(&["limits", "timeout"]));
    let slots = slots(processes.map(|(count, _)| count), root, notebook);
    let replicas = hosts.map_or(1, |(count, _)| count);
    let command = rank_command(root, notebook)?;
    let launch = launch_line(u64::from(replicas) * u64::from(slots.count), command);
    let group = Group {
        image,
        env,
        code,
        shm_mib: shm_mib(root.at(&["resources", "shm_size"])),
        end: EndRule::FIRST,
        ..Group::new("node", replicas, slots, Runs::LaunchOnFirst(launch))
    };
    let deadline_seconds = root.at(&["limits", "timeout"]).and_then(Node::integer);
    Some(Job {
        experiment: root.at(&["experiment_name"]).and_then(Node::text).map(str::to_owned),
        annotations: annotations(kept),
        policies: Policies { deadline_seconds, ..Policies::default() },
        ..Job::new(name, Dialect::AzureCommand, vec![group])
    })
}

/// The line that starts `ranks` times the command, with options that every MPI takes. Hosts come from the host file
/// that every MPI is told of by its variables.
pub(super) fn launch_line(ranks: u64, command: String) -> Command {
    let [mpirun, np, bash, c] = LAUNCH_WORDS.map(str::to_owned);
    Command::Words(vec![mpirun, np, ranks.to_string(), bash, c, command])
}

/// The words of our launch line, without the count after the second and the command at the end.
pub(super) const LAUNCH_WORDS: [&str; 4] = ["mpirun", "-np", "bash", "-c"];

/// Other ways of starting processes are known, and are not ours.
fn check_type(root: &Node, notebook: &mut Notebook<'_>) {
    let Some(node) = root.at(&["distribution", "type"]) else { return };
    let Some(text) = node.text() else { return };
    match text.to_ascii_lowercase().as_str() {
        "mpi" => {}
        "pytorch" | "torch.distributed" | "tensorflow" | "ray" => {
            let message =
                format!("`distribution: {{type: {text}}}` does not start its processes by MPI");
            let note = Note::new(&codes::OTHER_JOB, message).hint(
                "to run it by MPI, write `distribution: {type: mpi, process_count_per_instance: N}` and let the program take its rank from `OMPI_COMM_WORLD_RANK` or `PMI_RANK`",
            );
            notebook.tell(note, node);
        }
        other => {
            let known = ["mpi", "pytorch", "tensorflow", "ray"];
            let message = format!("`{}` is none of {}", clipped(text), known.join(", "));
            let note = Note::new(&codes::NOT_ONE_OF, message);
            let near = nearest(other, known.into_iter()).unwrap_or("mpi");
            notebook.tell(note.hint(format!("did you mean `{near}`?")), node);
        }
    }
}

fn keep_fields(root: &Node, kept: &mut Kept, notebook: &mut Notebook<'_>) {
    for (path, reason) in KEPT_FIELDS {
        let Some(node) = root.at(path) else { continue };
        kept.set(path, node.to_json());
        if !reason.is_empty() {
            let message = format!("`{}` has no effect: {reason}", path.join("."));
            notebook.tell(Note::new(&codes::IGNORED, message), node);
        }
    }
}

/// The cluster is kept; its name has no meaning outside Azure ML.
fn keep_compute(root: &Node, kept: &mut Kept) {
    let Some(compute) = root.at(&["compute"]) else { return };
    let target = compute.text().or_else(|| compute.at(&["target"]).and_then(Node::text));
    if let Some(target) = target {
        kept.set(&["compute"], values::cluster_reference(target).into());
    }
    if let Some(size) = compute.at(&["instance_type"]) {
        kept.set(&["resources", "instance_type"], size.to_json());
    }
}

fn slots(stated: Option<u32>, root: &Node, notebook: &mut Notebook<'_>) -> Slots {
    if let Some(count) = stated {
        return Slots::stated(count);
    }
    if let Some(distribution) = root.at(&["distribution"]) {
        let note = Note::new(
            &PROCESS_COUNT,
            "nothing tells how many processes each host runs: one is taken",
        )
        .hint("write `process_count_per_instance: N`, most often the number of GPUs of a host");
        notebook.tell(note, distribution);
    }
    Slots { count: 1, from: SlotsFrom::Default }
}

/// The command with literal inputs put in; launchers inside it are warned about.
fn rank_command(root: &Node, notebook: &mut Notebook<'_>) -> Option<String> {
    let node = root.at(&["command"])?;
    let done = placeholders::substitute(node.text()?, root.at(&["inputs"]));
    for written in &done.unresolved {
        let message =
            format!("`{}` stays in the command: it has no literal value", clipped(written));
        let note = Note::new(&UNRESOLVED_INPUT, message)
            .hint("write the path or value itself in the command");
        notebook.tell(note, node);
    }
    let starts_ranks = LaunchLine::from_text(&done.text).is_some();
    if starts_ranks || done.text.split_whitespace().next() == Some("deepspeed") {
        let message = "the command starts ranks itself, and would do so in every rank";
        let note = Note::new(&OWN_LAUNCHER, message)
            .hint("write only the program: the `mpirun` line before it is added");
        notebook.tell(note, node);
    }
    Some(done.text)
}

fn shm_mib(node: Option<&Node>) -> Option<u64> {
    command_fields::shm_mib(&node?.scalar_text()?)
}
