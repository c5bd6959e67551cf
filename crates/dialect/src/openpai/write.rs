//! Any job as an OpenPAI job of protocol version 2: one task role for each group.

use serde_json::{Map, Value, json};
use unisono_job::{
    Command, Dialect, EndRule, Group, Image, Job, LaunchRights, Quantity, Retry, RetryCount, Runs,
    Shell, quote,
};

use super::KEPT;
use super::protocol::{PLUGINS, is_role_name};
use super::write_launch::hosts_named;
use crate::kept::Kept;
use crate::lost::Lost;
use crate::write::Written;

/// Where OpenPAI tells a task its number within its role.
const INDEX: &str = "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX";

/// The job as text, with what it could not carry.
pub(super) fn write(job: &Job) -> Written {
    let mut lost = Lost::new(job, Dialect::OpenPaiV2);
    lost.job_parts(KEPT);
    let mut document = Map::new();
    document.insert("protocolVersion".into(), 2.into());
    document.insert("name".into(), name(job, &mut lost).into());
    document.insert("type".into(), "job".into());
    let images = images(job, &mut lost);
    let entry = |(at, uri): (usize, &String)| json!({"type": "dockerimage", "name": image_name(at), "uri": uri});
    let prerequisites: Vec<Value> = images.iter().enumerate().map(entry).collect();
    document.insert("prerequisites".into(), prerequisites.into());
    let retries = retries(job, &mut lost);
    if retries > 0 {
        document.insert("jobRetryCount".into(), retries.into());
    }
    let mut roles = Map::new();
    for group in &job.groups {
        let image = images.iter().position(|uri| *uri == image_uri(group)).unwrap_or(0);
        let role = role(job, group, &image_name(image), &mut lost);
        let name = role_name(job, group);
        if name != group.name {
            let message =
                format!("`{}` is called `{name}`: roles have letters, digits and `_`", group.name);
            lost.change(&format!("{}.name", group.name), message);
        }
        roles.insert(name, role);
    }
    document.insert("taskRoles".into(), roles.into());
    lose_job(job, &mut lost);
    if let Some(queue) = &job.policies.gang.queue {
        document.insert("defaults".into(), json!({ "virtualCluster": queue }));
    }
    extras(job, &mut document, &mut lost);
    Kept::of(job, KEPT).restore(&mut document);
    Written { text: crate::to_yaml(&document.into()), notes: lost.finish() }
}

/// Names have no dots in this version.
fn name(job: &Job, lost: &mut Lost<'_>) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let name: String =
        job.name.as_str().chars().map(|it| if fits(it) { it } else { '-' }).collect();
    if name != job.name.as_str() {
        lost.change(
            "name",
            format!("the job is called `{name}`: OpenPAI takes letters, digits, `-` and `_`"),
        );
    }
    name
}

/// The group's name, as a role can have it. Its number keeps apart what only other characters told apart.
pub(super) fn role_name(job: &Job, group: &Group) -> String {
    if is_role_name(&group.name) {
        return group.name.clone();
    }
    let number = job.groups.iter().position(|it| it.name == group.name).unwrap_or(0);
    let fits = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    format!("role{number}_{}", group.name.chars().map(fits).collect::<String>())
}

fn image_name(at: usize) -> String {
    if at == 0 { "image".to_owned() } else { format!("image_{at}") }
}

/// The images of all groups, each once.
fn images(job: &Job, lost: &mut Lost<'_>) -> Vec<String> {
    let mut images: Vec<String> = Vec::new();
    for group in &job.groups {
        let key = format!("{}.image", group.name);
        match &group.image {
            Some(Image::Container(_)) => {}
            Some(Image::AzureEnvironment(name)) => {
                lost.change(
                    &key,
                    format!("`{name}` is an Azure ML environment: name its image instead"),
                );
            }
            None => lost.change(
                &key,
                format!("`{}` names no image, and OpenPAI needs one: replace IMAGE", group.name),
            ),
        }
        let uri = image_uri(group);
        if !images.contains(&uri) {
            images.push(uri);
        }
    }
    images
}

fn image_uri(group: &Group) -> String {
    match &group.image {
        Some(Image::Container(image) | Image::AzureEnvironment(image)) => image.clone(),
        None => "IMAGE".to_owned(),
    }
}

fn retries(job: &Job, lost: &mut Lost<'_>) -> u32 {
    match job.policies.retry {
        Retry::ByClass(RetryCount::Limited(count)) | Retry::Backoff { limit: count @ 0 } => count,
        Retry::Backoff { limit } => {
            let message =
                format!("{limit} further attempts: OpenPAI counts only failures of unknown cause");
            lost.change("policies.retry", message);
            limit
        }
        Retry::ByClass(RetryCount::Always) => {
            lost.say("policies.retry", "retries without end, even after success");
            0
        }
        Retry::ByClass(RetryCount::UntilSuccess) => {
            lost.say("policies.retry", "retries until success");
            0
        }
    }
}

fn role(job: &Job, group: &Group, image: &str, lost: &mut Lost<'_>) -> Value {
    let mut role = Map::new();
    let instances = group.replicas.max(1);
    if group.replicas == 0 {
        lost.change(
            &format!("{}.replicas", group.name),
            format!("`{}` gets one task: OpenPAI has no empty roles", group.name),
        );
    }
    role.insert("instances".into(), instances.into());
    let EndRule { min_failed, min_succeeded } = group.end;
    let count = |count: Option<u32>| count.map_or(-1, i64::from);
    role.insert(
        "completion".into(),
        json!({"minFailedInstances": count(min_failed), "minSucceededInstances": count(min_succeeded)}),
    );
    role.insert("dockerImage".into(), image.into());
    role.insert("resourcePerInstance".into(), resources(group, lost));
    let mut options = Map::new();
    if let Some(size) = group.shm_mib {
        options.insert("shmMB".into(), size.into());
    }
    if group.resources.limits.contains_key("rdma/hca") {
        options.insert("infiniband".into(), true.into());
    }
    if !options.is_empty() {
        role.insert("extraContainerOptions".into(), options.into());
    }
    if let Some(code) = &group.code {
        lost.say(&format!("{}.code", group.name), format!("the code folder `{}`", code.path));
    }
    role.insert("commands".into(), commands(job, group, lost).into());
    role.into()
}

/// The largest amount that OpenPAI's fields hold.
const MOST: u64 = i32::MAX as u64;

fn resources(group: &Group, lost: &mut Lost<'_>) -> Value {
    let key = format!("{}.resources", group.name);
    let limits = &group.resources.limits;
    for name in limits.keys().filter(|name| !is_known(name)) {
        lost.say(&key, format!("the {name} limit of `{}`", group.name));
    }
    let mut needed = |name: &str, unit: u64, default: u64| match limits.get(name) {
        Some(amount) => rounded(amount, unit),
        None => {
            let message = format!(
                "`{}` states no {name}, and OpenPAI needs it: {default} is written",
                group.name
            );
            lost.change(&key, message);
            default
        }
    };
    let cpu = needed("cpu", 1, 1);
    let memory = needed("memory", 1 << 20, 1024);
    for (name, unit) in [("cpu", 1), ("memory", 1 << 20)] {
        let exact = limits.get(name).is_none_or(|it| {
            it.milli() == rounded(it, unit).saturating_mul(unit).saturating_mul(1000)
        });
        if !exact {
            lost.change(&key, format!("the {name} limit of `{}` is rounded up", group.name));
        }
    }
    let mut ports = Map::new();
    for port in &group.ports {
        if port.begin_at.is_some() {
            lost.say(
                &format!("{}.ports", group.name),
                format!("the first port of `{}`", port.label),
            );
        }
        if port.count != 1 || !matches!(port.label.as_str(), "http" | "ssh") {
            ports.insert(port.label.clone(), port.count.into());
        }
    }
    let mut resources = Map::new();
    for (name, amount) in [("cpu", cpu), ("memoryMB", memory), ("gpu", group.resources.gpus())] {
        if amount > MOST {
            let message = format!("`{}` asks for more {name} than OpenPAI can count", group.name);
            lost.change(&key, message);
        }
        resources.insert(name.into(), amount.min(MOST).into());
    }
    if !ports.is_empty() {
        resources.insert("ports".into(), ports.into());
    }
    resources.into()
}

fn is_known(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory" | "nvidia.com/gpu" | "rdma/hca")
}

fn rounded(amount: &Quantity, unit: u64) -> u64 {
    amount.whole().div_ceil(unit)
}

/// What a task runs, line by line, with the variables and the folder that OpenPAI has no field for.
fn commands(job: &Job, group: &Group, lost: &mut Lost<'_>) -> Vec<Value> {
    let mut lines: Vec<String> = Vec::new();
    let command = match &group.runs {
        Runs::Launch(command) | Runs::LaunchOnFirst(command) => {
            Some(hosts_named(job, group, command, lost))
        }
        Runs::Own(command) | Runs::Ranks(Some(command)) => Some(text(group, command, lost)),
        Runs::Ranks(None) => None,
    };
    let strict =
        matches!(group.runs.command(), Some(Command::Line { shell: Shell::StrictBash, .. }));
    if !strict && group.runs.command().is_some() {
        // OpenPAI's runtime stops at the first failure; the job's own shell did not.
        lines.push("set +eu +o pipefail".to_owned());
    }
    for variable in &group.env {
        if let Some(value) = &variable.value {
            lines.push(format!("export {}={}", variable.name, quote(std::slice::from_ref(value))));
        }
    }
    if let Some(folder) = &group.working_dir {
        lines.push(format!("cd {}", quote(std::slice::from_ref(folder))));
    }
    match (&group.runs, command) {
        (Runs::LaunchOnFirst(_), Some(command)) => {
            lines.push(format!("if [ \"${{{INDEX}}}\" != 0 ]; then sleep infinity; fi"));
            lines.extend(command.split('\n').map(str::to_owned));
        }
        (_, Some(command)) => lines.extend(command.split('\n').map(str::to_owned)),
        (_, None) => lines.push("sleep infinity".to_owned()),
    }
    lines.into_iter().map(Value::String).collect()
}

/// A command as text for bash.
pub(super) fn text(group: &Group, command: &Command, lost: &mut Lost<'_>) -> String {
    match command {
        Command::Words(words) => quote(words),
        Command::Line { text, .. } => text.clone(),
        Command::ImageEntry(words) => {
            let message = format!(
                "`{}` runs its image's own command, which OpenPAI ignores: write it",
                group.name
            );
            lost.change(&format!("{}.command", group.name), message);
            quote(words)
        }
    }
}

fn lose_job(job: &Job, lost: &mut Lost<'_>) {
    if let Some(experiment) = &job.experiment {
        lost.say("experiment", format!("the experiment `{experiment}`"));
    }
    if let Some(seconds) = job.policies.deadline_seconds {
        lost.say("policies.deadline", format!("the deadline of {seconds} s"));
    }
}

/// Tasks reach each other by ssh, and start together unless the job says that fewer are enough.
fn extras(job: &Job, document: &mut Map<String, Value>, lost: &mut Lost<'_>) {
    let mut extras = Map::new();
    match job.launch_rights {
        LaunchRights::Everybody => {}
        LaunchRights::Launcher => {
            let ssh =
                json!([{"plugin": "ssh", "parameters": {"jobssh": true, "sshbarrier": true}}]);
            extras.insert(PLUGINS.into(), ssh);
        }
    }
    match job.policies.gang.min_members {
        None => {}
        Some(1) => drop(extras.insert("gangAllocation".into(), false.into())),
        Some(members) if u64::from(members) >= job.host_count() => {}
        Some(members) => {
            lost.say(
                "policies.gang.min_members",
                format!("that {members} members are enough to start"),
            );
        }
    }
    if !extras.is_empty() {
        document.insert("extras".into(), extras.into());
    }
}
