//! Any job as a CLI v2 command job: hosts that all run the same program, started by Azure ML's own mpirun.

use serde_json::{Map, Value, json};
use unisono_job::{
    Command, Dialect, EndRule, EnvVar, Group, Image, Job, LaunchRights, Retry, RetryCount, Runs,
    SlotsFrom, quote,
};

use super::KEPT;
use super::command::LAUNCH_WORDS;
use super::fields::{MAX_HOSTS, MAX_PROCESSES};
use crate::kept::Kept;
use crate::launch_text::{LaunchText, option_and_value};
use crate::lost::Lost;
use crate::write::Written;

/// The job as text, with what it could not carry.
pub(super) fn write(job: &Job) -> Written {
    let mut lost = Lost::new(job, Dialect::AzureCommand);
    lost.job_parts(KEPT);
    let hosts = Hosts::of(job, &mut lost);
    let rank = rank_program(job, &hosts, &mut lost);
    let mut document = Map::new();
    document.insert("type".into(), "command".into());
    document.insert("name".into(), job.name.as_str().into());
    if let Some(experiment) = &job.experiment {
        document.insert("experiment_name".into(), experiment.as_str().into());
    }
    document.insert("command".into(), rank.program.into());
    let code = hosts.first.and_then(|group| group.code.as_ref());
    if let Some(code) = code.filter(|code| !code.path.trim().is_empty()) {
        document.insert("code".into(), code.path.as_str().into());
    }
    let kept = Kept::of(job, KEPT);
    document.insert("environment".into(), environment(hosts.first, &kept, &mut lost));
    let env = hosts.first.map_or(&[][..], |group| &group.env);
    let variables = variables(env, &rank.env);
    if !variables.is_empty() {
        document.insert("environment_variables".into(), variables.into());
    }
    document.insert("resources".into(), resources(&hosts));
    limits(job, &mut document, &mut lost);
    let mut distribution = Map::new();
    distribution.insert("type".into(), "mpi".into());
    if let Some(processes) = hosts.processes {
        distribution.insert("process_count_per_instance".into(), processes.into());
    }
    document.insert("distribution".into(), distribution.into());
    lose_policies(job, &mut lost);
    kept.restore(&mut document);
    Written { text: crate::to_yaml(&document.into()), notes: lost.finish() }
}

/// The hosts of a command job: all alike.
struct Hosts<'job> {
    /// The group whose image, code and variables stand for all.
    first: Option<&'job Group>,
    count: u64,
    /// Ranks on each; absent when the job leaves it at one.
    processes: Option<u64>,
}

impl<'job> Hosts<'job> {
    fn of(job: &'job Job, lost: &mut Lost<'_>) -> Self {
        let hosting = |group: &&Group| group.slots.count > 0 && group.replicas > 0;
        let groups: Vec<&Group> = job.groups.iter().filter(hosting).collect();
        let first = groups.first().copied().or(job.groups.first());
        let slots = groups.iter().map(|group| group.slots.count).max().unwrap_or(1);
        for group in groups.iter().filter(|group| group.slots.count != slots) {
            let key = format!("{}.slots", group.name);
            let message = format!(
                "every host gets {slots} processes, not {} as `{}`",
                group.slots.count, group.name
            );
            lost.change(&key, message);
        }
        for group in &job.groups {
            lose_group(group, first, lost);
        }
        let count = groups.iter().map(|group| u64::from(group.replicas)).sum::<u64>().max(1);
        let unstated = slots == 1 && first.is_some_and(|it| it.slots.from == SlotsFrom::Default);
        let at_most = |count: u64, most: u32, what: &str, lost: &mut Lost<'_>| {
            if count > u64::from(most) {
                lost.change("hosts", format!("{count} {what}: the most is {most}"));
            }
            count.min(u64::from(most))
        };
        let count = at_most(count, MAX_HOSTS, "hosts", lost);
        let processes = at_most(slots.into(), MAX_PROCESSES, "processes on each host", lost);
        Self { first, count, processes: (!unstated).then_some(processes) }
    }

    fn ranks(&self) -> u64 {
        self.count * self.processes.unwrap_or(1)
    }
}

/// What a group has and a command job's hosts, which are all like the first, have not.
fn lose_group(group: &Group, first: Option<&Group>, lost: &mut Lost<'_>) {
    let name = &group.name;
    for resource in group.resources.limits.keys() {
        lost.say(&format!("{name}.resources"), format!("the {resource} limit of `{name}`"));
    }
    let common = |label: &str| matches!(label, "http" | "ssh");
    for port in group.ports.iter().filter(|port| !common(&port.label) || port.begin_at.is_some()) {
        lost.say(&format!("{name}.ports"), format!("the ports `{}` of `{name}`", port.label));
    }
    let ends = match group.runs {
        Runs::Launch(_) | Runs::LaunchOnFirst(_) => EndRule::FIRST,
        Runs::Ranks(_) => EndRule::NEVER,
        Runs::Own(ref command) if command.launch_line().is_some() => EndRule::FIRST,
        Runs::Own(_) => EndRule::NEVER,
    };
    if group.end != ends {
        lost.say(&format!("{name}.end"), format!("when `{name}` ends the job"));
    }
    if let Runs::Ranks(Some(command)) | Runs::Own(command) = &group.runs
        && command.launch_line().is_none()
    {
        lost.say(&format!("{name}.command"), format!("the command of `{name}`"));
    }
    let Some(first) = first.filter(|first| first.name != *name) else { return };
    for (what, differs) in [
        ("image", group.image != first.image),
        ("variables", group.env != first.env),
        ("code folder", group.code != first.code),
        ("working directory", group.working_dir != first.working_dir),
        ("shared memory", group.shm_mib.is_some() && group.shm_mib != first.shm_mib),
    ] {
        if differs {
            let message =
                format!("all hosts have the {what} of `{}`, not that of `{name}`", first.name);
            lost.change(&format!("{name}.{what}"), message);
        }
    }
}

/// What every rank runs.
struct RankProgram {
    program: String,
    /// Variables that the launch line set.
    env: Vec<EnvVar>,
}

fn rank_program(job: &Job, hosts: &Hosts<'_>, lost: &mut Lost<'_>) -> RankProgram {
    let own = |group: &Group| group.runs.command().is_some_and(|it| it.launch_line().is_some());
    let launching = job.launching_group().or_else(|| job.groups.iter().find(|group| own(group)));
    let command = launching.or(hosts.first).and_then(|group| Some((group, group.runs.command()?)));
    let Some((group, command)) = command else {
        lost.change("command", "the job has no command; write one");
        return RankProgram { program: "true".to_owned(), env: Vec::new() };
    };
    let key = format!("{}.command", group.name);
    let mut rank = match (ours(command), LaunchText::of(command)) {
        (Some(program), _) => RankProgram { program: program.to_owned(), env: Vec::new() },
        (None, Some(line)) => taken_apart(&line, &key, hosts, lost),
        (None, None) => {
            let message = "Azure ML runs the command once in every rank, but this one does more than start ranks: write what each rank runs";
            lost.change(&key, message);
            RankProgram { program: command.display(), env: Vec::new() }
        }
    };
    if let Some(folder) = hosts.first.and_then(|group| group.working_dir.as_ref()) {
        let folder = quote(std::slice::from_ref(folder));
        rank.program = format!("cd {folder} && {}", rank.program);
    }
    rank
}

/// The command inside a launch line of our own making.
fn ours(command: &Command) -> Option<&str> {
    let Command::Words(words) = command else { return None };
    match words.as_slice() {
        [mpirun, np, _, bash, c, program]
            if [mpirun, np, bash, c].into_iter().eq(LAUNCH_WORDS.iter().copied()) =>
        {
            Some(program)
        }
        _ => None,
    }
}

/// The program of the user's own launch line; Azure ML writes another line before it, so its options are lost.
fn taken_apart(
    line: &LaunchText,
    key: &str,
    hosts: &Hosts<'_>,
    lost: &mut Lost<'_>,
) -> RankProgram {
    let mut env = Vec::new();
    let mut other = Vec::new();
    for option in &line.options {
        let (name, value) = option_and_value(option);
        let value = value.unwrap_or_default();
        match name.as_str() {
            "np" | "n" | "c" if value == hosts.ranks().to_string() => {}
            // A variable without a value needs nothing: ranks inherit what the container has.
            "x" => {
                if let Some((name, value)) = value.split_once('=') {
                    env.push(EnvVar { name: name.to_owned(), value: Some(value.to_owned()) });
                }
            }
            "hostfile" | "machinefile" | "f" | "allow-run-as-root" => {}
            _ => other.push(option.as_str()),
        }
    }
    if !other.is_empty() {
        let message =
            format!("Azure ML writes the launch line itself, without `{}`", other.join(" "));
        lost.change(key, message);
    }
    RankProgram { program: line.program.clone(), env }
}

fn environment(first: Option<&Group>, kept: &Kept, lost: &mut Lost<'_>) -> Value {
    match first.and_then(|group| group.image.as_ref()) {
        Some(Image::AzureEnvironment(reference)) => reference.as_str().into(),
        Some(Image::Container(image)) => json!({ "image": image }),
        None if kept.keys().any(|key| key == "environment") => json!({}),
        None => {
            lost.change("image", "the job names no image, and Azure ML needs one: replace IMAGE");
            json!({ "image": "IMAGE" })
        }
    }
}

fn variables(env: &[EnvVar], more: &[EnvVar]) -> Map<String, Value> {
    let known = env.iter().chain(more).filter_map(|it| Some((&it.name, it.value.as_ref()?)));
    known.map(|(name, value)| (name.clone(), value.as_str().into())).collect()
}

fn resources(hosts: &Hosts<'_>) -> Value {
    let mut resources = Map::new();
    resources.insert("instance_count".into(), hosts.count.into());
    if let Some(size) = hosts.first.and_then(|group| group.shm_mib) {
        resources.insert("shm_size".into(), format!("{size}m").into());
    }
    resources.into()
}

fn limits(job: &Job, document: &mut Map<String, Value>, lost: &mut Lost<'_>) {
    match job.policies.deadline_seconds {
        None => {}
        Some(0) => lost.say("policies.deadline", "a deadline of 0 s"),
        Some(seconds) => {
            document.insert("limits".into(), json!({ "timeout": seconds }));
        }
    }
}

fn lose_policies(job: &Job, lost: &mut Lost<'_>) {
    match job.policies.retry {
        Retry::Backoff { limit: 0 } => {}
        Retry::Backoff { limit } => lost.say("policies.retry", format!("{limit} further attempts")),
        Retry::ByClass(RetryCount::Limited(0)) => {
            lost.say("policies.retry", "retries after transient failures");
        }
        Retry::ByClass(_) => lost.say("policies.retry", "retries by the class of the exit code"),
    }
    let gang = &job.policies.gang;
    if let Some(queue) = gang.queue.as_ref().filter(|queue| *queue != "default") {
        lost.say("policies.gang.queue", format!("the queue `{queue}`"));
    }
    if let Some(members) = gang.min_members.filter(|it| u64::from(*it) != job.host_count()) {
        lost.say(
            "policies.gang.min_members",
            format!("that {members} members are enough to start"),
        );
    }
    match job.launch_rights {
        LaunchRights::Launcher => {}
        LaunchRights::Everybody => {
            lost.say("launch_rights", "that every member may start processes on every other");
        }
    }
}
