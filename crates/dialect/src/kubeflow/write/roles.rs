//! Which members of a job become the launcher and which the workers. An MPIJob has one kind of each.

use unisono_job::{Command, Dialect, EndRule, Group, Runs, System};

use super::words::spoken_here;
use super::{Writer, has_gpu_limit};

/// The launcher and the workers.
pub(super) struct Roles<'job> {
    pub(super) launcher: Member<'job>,
    pub(super) worker: Option<Member<'job>>,
}

/// Members of one group in one role.
pub(super) struct Member<'job> {
    pub(super) group: &'job Group,
    pub(super) replicas: u32,
    pub(super) slots: u32,
    pub(super) command: Option<Command>,
}

/// Finds the roles; none when the job has no group at all.
pub(super) fn arrange<'job>(writer: &mut Writer<'job>) -> Option<Roles<'job>> {
    let groups: &'job [Group] = &writer.job.groups;
    let index = launching(groups);
    let group = groups.get(index)?;
    let slots = group.slots.count;
    let (launcher_slots, rest) = match &group.runs {
        Runs::Launch(_) => (slots, 0),
        Runs::LaunchOnFirst(_) => on_first(writer, group),
        Runs::Own(_) => (slots, group.replicas.saturating_sub(1)),
        Runs::Ranks(_) => {
            writer.lost("the job has no launch line", "write the launcher's command");
            (slots, group.replicas.saturating_sub(1))
        }
    };
    let command = group.runs.command().map(|command| spoken_here(writer, command));
    let launcher = Member { group, replicas: 1, slots: launcher_slots, command };
    let siblings = (rest > 0).then(|| Member {
        group,
        replicas: rest,
        slots,
        command: sibling_command(&group.runs),
    });
    let others = groups
        .iter()
        .enumerate()
        .filter(|(other, group)| *other != index && group.replicas > 0)
        .map(|(_, group)| Member {
            group,
            replicas: group.replicas,
            slots: group.slots.count,
            command: group.runs.command().cloned(),
        });
    let mut workers = siblings.into_iter().chain(others);
    let worker = workers.next().map(|worker| without_sleep(writer, worker));
    for left in workers {
        writer.lost(
            format!(
                "an MPIJob has one kind of worker; {} members of {} are left out",
                left.replicas, left.group.name
            ),
            "write a UnisonoJob, which has any number of groups",
        );
    }
    tell_ends(writer, &launcher, worker.as_ref());
    tell_names(writer, &launcher, worker.as_ref());
    Some(Roles { launcher, worker })
}

/// The group with the launch line, else the one whose own command starts ranks, else the first.
fn launching(groups: &[Group]) -> usize {
    let has_line = |group: &Group| group.runs.launch_line().is_some();
    let starts_ranks =
        |group: &Group| group.runs.command().is_some_and(|it| it.launch_line().is_some());
    groups.iter().position(has_line).or_else(|| groups.iter().position(starts_ranks)).unwrap_or(0)
}

/// The launching member's slots, and how many equal members there are beside it.
fn on_first(writer: &mut Writer<'_>, group: &Group) -> (u32, u32) {
    if writer.is_v2() || has_gpu_limit(group) {
        writer.converted(format!(
            "the first of {} members of {} becomes the launcher, which hosts ranks too",
            group.replicas, group.name
        ));
        return (group.slots.count, group.replicas.saturating_sub(1));
    }
    writer.lost(
        format!(
            "a v1 launcher without a GPU hosts no ranks; it is written beside {} workers",
            group.replicas
        ),
        "write v2beta1, which has `runLauncherAsWorker`",
    );
    (0, group.replicas)
}

/// What the members beside the launching one run.
fn sibling_command(runs: &Runs) -> Option<Command> {
    match runs {
        Runs::Launch(_) | Runs::LaunchOnFirst(_) => None,
        Runs::Own(command) => Some(command.clone()),
        Runs::Ranks(command) => command.clone(),
    }
}

/// A worker that only sleeps did so for kubectl's sake: v2beta1 workers wait in their own way.
fn without_sleep<'job>(writer: &mut Writer<'job>, mut worker: Member<'job>) -> Member<'job> {
    let sleeps = match &worker.command {
        Some(Command::Words(words)) => {
            words.first().is_some_and(|it| it.rsplit('/').next() == Some("sleep"))
        }
        Some(Command::Line { .. } | Command::ImageEntry(_)) | None => false,
    };
    let by_exec = matches!(writer.job.dialect, Dialect::KubeflowV1alpha2 | Dialect::KubeflowV1);
    if sleeps && by_exec && writer.is_v2() {
        worker.command = None;
        writer.converted("the workers' sleep is left out: v2beta1 workers wait in their own way");
    }
    worker
}

/// An MPIJob ends with its launcher, whatever the workers do.
fn tell_ends(writer: &mut Writer<'_>, launcher: &Member<'_>, worker: Option<&Member<'_>>) {
    let ends = |group: &Group| group.end != EndRule::NEVER;
    let other = worker.filter(|it| it.group.name != launcher.group.name && ends(it.group));
    if launcher.group.end != EndRule::FIRST || other.is_some() {
        writer.lost(
            "an MPIJob ends when its launcher ends; the job's own rules for its end are left out",
            "check that the launcher ends last",
        );
    }
}

/// Hosts of an MPIJob are called after it.
fn tell_names(writer: &mut Writer<'_>, launcher: &Member<'_>, worker: Option<&Member<'_>>) {
    let system = writer.job.dialect.system();
    if matches!(system, System::Kubeflow | System::AzureMl) {
        return;
    }
    let expected =
        launcher.group.name == "launcher" && worker.is_none_or(|it| it.group.name == "worker");
    if !expected {
        let job = writer.job.name.as_str();
        writer.converted(format!(
            "hosts are called {job}-launcher and {job}-worker-0, -1, …; change commands that name hosts"
        ));
    }
}
