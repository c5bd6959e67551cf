//! What a plan tells about a job: numbers that do not fit together, and what this engine cannot do.

pub mod codes;

use unisono_job::{CodeSource, Command, Flavour, Group, Job, Note, Place, Runs, System};

use crate::env::even_slots;
use crate::overrides::after_leading_sleep;
use crate::ranks::{LaunchCommand, names_our_hostfile};
use crate::{EngineKind, Facts, Names, only_sshd};

/// Where a pod template names its own priority class.
const POD_PRIORITY: &str = "spec.priorityClassName";

/// Every note about a job with these ranks.
pub(crate) fn of(
    job: &Job,
    facts: &Facts,
    launch: Option<&LaunchCommand<'_>>,
    ranks: Option<u32>,
) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(launch) = launch {
        notes.extend(about_the_line(job, launch));
        notes.extend(about_the_ranks(job, launch, ranks));
    }
    notes.extend(about_slots(job));
    notes.extend(about_names(job));
    notes.extend(about_the_gang(job, facts));
    notes.extend(about_the_queue(job, facts));
    for group in &job.groups {
        notes.extend(about_a_group(job, group));
        match facts.engine {
            EngineKind::Local => notes.extend(about_a_group_here(job, facts, group)),
            EngineKind::Kubernetes => {
                notes.extend(about_a_kept_entry(job, group));
                notes.extend(about_code_elsewhere(job, facts, group));
            }
        }
    }
    notes
}

fn about_the_line(job: &Job, launch: &LaunchCommand<'_>) -> Vec<Note> {
    let place = command_place(job, &job.groups[launch.group]);
    let Some(line) = &launch.line else {
        let message = "the launch line calls no launcher that Unisono knows, so its number of ranks is not known";
        return vec![Note::new(&codes::NO_LAUNCHER_VISIBLE, message).at(place)];
    };
    let mut notes = Vec::new();
    if line.ranks_unreadable {
        let message =
            "the number of ranks stands in a shell variable and is known only when the job runs";
        notes.push(Note::new(&codes::RANKS_UNKNOWN, message).at(place.clone()));
    }
    // OpenPAI's users always name their hosts: they were given no host file.
    if line.names_hosts
        && !names_our_hostfile(launch.command)
        && job.dialect.system() != System::OpenPai
    {
        let message = "the launch line names its own hosts, so the planned host file is not used";
        notes.push(Note::new(&codes::OWN_HOSTS, message).at(place.clone()));
    }
    if let (Some(stated), Some(seen)) = (job.mpi.flavour, line.flavour)
        && is_open_mpi(stated) != is_open_mpi(seen)
    {
        let message = format!(
            "the job is for {}, but the launch line has options of {}",
            stated.name(),
            seen.name()
        );
        notes.push(
            Note::new(&codes::FLAVOUR_MISMATCH, message)
                .hint(format!("state {} in the file, or use its options", seen.name()))
                .at(place),
        );
    }
    notes
}

/// Intel MPI and MPICH share their launcher's options; only Open MPI's are different.
const fn is_open_mpi(flavour: Flavour) -> bool {
    matches!(flavour, Flavour::OpenMpi)
}

fn about_the_ranks(job: &Job, launch: &LaunchCommand<'_>, ranks: Option<u32>) -> Option<Note> {
    let (ranks, slots) = (u64::from(ranks?), job.slot_count());
    let line = launch.line.as_ref()?;
    let own_hosts = line.names_hosts && !names_our_hostfile(launch.command);
    if own_hosts || slots == 0 {
        return None;
    }
    let place = command_place(job, &job.groups[launch.group]);
    if ranks > slots && !line.oversubscribes {
        let message =
            format!("the launch line starts {ranks} ranks, but the hosts have {slots} slots");
        Some(
            Note::new(&codes::RANKS_OVER_SLOTS, message)
                .hint(format!("use -np {slots}, or give the hosts more slots"))
                .at(place),
        )
    } else if ranks < slots {
        let message = format!("the launch line starts {ranks} ranks on {slots} slots");
        Some(Note::new(&codes::SLOTS_IDLE, message).at(place))
    } else {
        None
    }
}

fn about_slots(job: &Job) -> Option<Note> {
    let launches = job.launching_group().is_some();
    if launches && job.slot_count() == 0 {
        let message = "no host of the job has a slot for a rank";
        return Some(Note::new(&codes::NO_RANK_HOSTS, message));
    }
    let uneven = job.slot_count() > 0 && even_slots(job).is_none();
    (uneven && job.mpi.flavour == Some(Flavour::Intel)).then(|| {
        let message =
            "the hosts have different slots, which Intel MPI reads only from -machinefile";
        Note::new(&codes::UNEVEN_SLOTS, message)
            .hint("add -machinefile /etc/mpi/hostfile to the launch line")
    })
}

fn about_the_gang(job: &Job, facts: &Facts) -> Option<Note> {
    let gang = &job.policies.gang;
    // kube-batch's jobs were always placed as one.
    let asks = gang.min_members.is_some()
        || gang.queue.is_some()
        || job.dialect.system() == System::KubeBatch;
    (asks && !facts.places_gangs).then(|| {
        let message =
            "it starts without a gang: no scheduler of this cluster places all its hosts at once";
        let place = job.origins.of("policies.gang").cloned();
        Note::new(&codes::WITHOUT_GANG, message).at(place)
    })
}

fn about_the_queue(job: &Job, facts: &Facts) -> Option<Note> {
    let gang = &job.policies.gang;
    // What a template says of its pods holds for them, whoever places them.
    let said_of_pods = job.groups.iter().filter_map(|group| group.extras.as_ref());
    let is_of_pods = said_of_pods.flat_map(|it| &it.kubernetes_only).any(|it| it == POD_PRIORITY);
    let class = gang.priority_class.as_ref().filter(|_| !is_of_pods);
    let queue = gang.queue.as_ref().map(|it| format!("the queue `{it}`"));
    let unused: Vec<String> =
        queue.into_iter().chain(class.map(|it| format!("the priority class `{it}`"))).collect();
    (!unused.is_empty() && !facts.knows_queues).then(|| {
        let message = format!(
            "it is placed without {}: no scheduler of this cluster reads that of a job",
            unused.join(" and ")
        );
        let place = job.origins.of("policies.gang").cloned();
        Note::new(&codes::QUEUE_UNUSED, message).at(place)
    })
}

fn about_names(job: &Job) -> Option<Note> {
    let names = Names::of(job);
    let group = job.groups.first()?;
    let host = names.host(job, &group.name, 0);
    let stem = match job.dialect.system() {
        System::OpenPai => group.name.as_str(),
        System::AzureMl | System::Kubeflow | System::KubeBatch | System::Unisono => {
            job.name.as_str()
        }
    };
    (!host.starts_with(stem)).then(|| {
        let message =
            format!("{stem:?} cannot be part of a host name; hosts are called {host} and so on");
        Note::new(&codes::NAME_SHORTENED, message).at(job.origins.of("name").cloned())
    })
}

fn about_a_group(job: &Job, group: &Group) -> Vec<Note> {
    let mut notes = Vec::new();
    let (gpus, slots) = (group.resources.gpus(), u64::from(group.slots.count));
    // OpenPAI's users place ranks themselves: its slots are not theirs.
    if gpus > 0 && slots > 0 && gpus != slots && job.dialect.system() != System::OpenPai {
        let message = format!("each {} has {gpus} GPUs and {slots} slots", group.name);
        let place = job.origins.of(&format!("{}.slots", group.name)).cloned();
        notes.push(
            Note::new(&codes::GPUS_DIFFER, message)
                .hint(format!("use {gpus} slots to give every GPU a rank"))
                .at(place),
        );
    }
    if let Some(Command::Line { text, .. }) = group.runs.command()
        && after_leading_sleep(text).is_some()
    {
        let message = format!(
            "the leading sleep of {} is not needed: commands start when every host answers",
            group.name
        );
        notes.push(
            Note::new(&codes::LEADING_SLEEP, message)
                .hint("remove it, or run with --skip-sleep")
                .at(command_place(job, group)),
        );
    }
    notes
}

fn about_a_group_here(job: &Job, facts: &Facts, group: &Group) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(about_a_command_left_out(job, facts, group));
    let runs_something = !matches!(group.runs, Runs::Ranks(_));
    if let (true, Some(Command::ImageEntry(_))) = (runs_something, group.runs.command()) {
        let message = format!("only the image knows what {} runs", group.name);
        notes.push(
            Note::new(&codes::IMAGE_ENTRY, message)
                .hint("state the command in the file")
                .at(command_place(job, group)),
        );
    }
    if let Some(extras) = &group.extras
        && !extras.kubernetes_only.is_empty()
    {
        let message = format!(
            "on this machine {} goes without {}",
            group.name,
            extras.kubernetes_only.join(", ")
        );
        notes.push(Note::new(&codes::KUBERNETES_ONLY, message));
    }
    for variable in group.env.iter().filter(|it| it.value.is_none()) {
        let message = format!(
            "{} of {} takes its value from Kubernetes and is not set on this machine",
            variable.name, group.name
        );
        notes.push(
            Note::new(&codes::VALUE_FROM, message).hint(format!("--env {}=VALUE", variable.name)),
        );
    }
    notes
}

fn about_a_kept_entry(job: &Job, group: &Group) -> Option<Note> {
    let Runs::Ranks(Some(Command::ImageEntry(_))) = group.runs else { return None };
    let message = format!(
        "{} has arguments for the image's entry point and no command, so its hosts are reached by the image's own ssh",
        group.name
    );
    Some(
        Note::new(&codes::KEPT_ENTRY, message)
            .hint("state `command` too, or remove `args`, and no sshd is needed")
            .at(command_place(job, group)),
    )
}

/// Pods know no folder of anybody's machine. Files that are no objects only get there by `unisono submit`, which packs it.
fn about_code_elsewhere(job: &Job, facts: &Facts, group: &Group) -> Option<Note> {
    let is_object = facts.told_as.unwrap_or(job.dialect).is_kubernetes_object();
    let CodeSource::Path(path) = group.code.as_ref()?.source() else { return None };
    if !is_object {
        return None;
    }
    let message = format!(
        "the code `{path}` of {} is not in the cluster: an object that names it runs without it",
        group.name
    );
    Some(
        Note::new(&codes::CODE_ELSEWHERE, message)
            .hint("`unisono submit FILE` takes it along; code in a volume is `claim:NAME/FOLDER`"),
    )
}

fn about_a_command_left_out(job: &Job, facts: &Facts, group: &Group) -> Option<Note> {
    let command = group.runs.command()?;
    let (code, message) = match &group.runs {
        Runs::Ranks(_) | Runs::Own(_) if only_sshd::is_skipped(facts, command) => {
            let name = &group.name;
            (&codes::SSHD_LEFT_OUT, format!("the sshd of {name} is not started: the agent serves"))
        }
        Runs::Ranks(Some(Command::Words(_) | Command::Line { .. })) => {
            let name = &group.name;
            (
                &codes::COMMAND_LEFT_OUT,
                format!("{name} runs no command here: its hosts stay up by themselves"),
            )
        }
        Runs::Ranks(_) | Runs::Own(_) | Runs::Launch(_) | Runs::LaunchOnFirst(_) => return None,
    };
    Some(Note::new(code, message).at(command_place(job, group)))
}

fn command_place(job: &Job, group: &Group) -> Option<Place> {
    job.origins.of(&format!("{}.command", group.name)).cloned()
}
