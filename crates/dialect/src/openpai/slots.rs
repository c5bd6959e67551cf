//! Rank slots of each role: the hosts a launch line names, else GPUs, else the line's ranks spread over all tasks.

use unisono_job::{Command, LaunchLine, Slots, SlotsFrom, split_words};

use super::role::Role;

/// The slots of every role, in their order.
pub(super) fn of(roles: &[Role]) -> Vec<Slots> {
    let launching = roles.iter().find_map(|role| Some((role, role.command.launch_line()?)));
    let tasks = roles.iter().map(|role| role.tasks).fold(0, u32::saturating_add);
    let Some((launcher, line)) = launching else {
        return roles.iter().map(|role| Slots::derived(role.gpus, None, tasks)).collect();
    };
    match named_hosts(&launcher.command, roles) {
        Some(named) => roles.iter().map(|role| named_slots(role, &named, &line)).collect(),
        None => {
            let each = line.per_host.map(|each| each.saturating_mul(tasks));
            roles.iter().map(|role| Slots::derived(role.gpus, line.ranks.or(each), tasks)).collect()
        }
    }
}

/// A host of a `-H` list, and the slots it states there.
struct Named {
    role: String,
    slots: Option<u32>,
}

/// Hosts after `-H` and its other names, when all of them are tasks of this job.
fn named_hosts(command: &Command, roles: &[Role]) -> Option<Vec<Named>> {
    let words = match command {
        Command::Line { text, .. } => split_words(text).ok()?,
        Command::Words(words) | Command::ImageEntry(words) => words.clone(),
    };
    let option = words.iter().position(|word| {
        matches!(word.as_str(), "-H" | "-host" | "--host" | "-hosts" | "--hosts")
    })?;
    words.get(option + 1)?.split(',').map(|host| named(host, roles)).collect()
}

fn named(host: &str, roles: &[Role]) -> Option<Named> {
    let (name, slots) = match host.split_once(':') {
        Some((name, slots)) => (name, Some(slots.parse().ok()?)),
        None => (host, None),
    };
    let (role, index) = name.rsplit_once('-')?;
    let index: u32 = index.parse().ok()?;
    roles
        .iter()
        .any(|it| it.name == role && index < it.tasks)
        .then(|| Named { role: role.to_owned(), slots })
}

/// Roles that the list leaves out host no ranks.
fn named_slots(role: &Role, named: &[Named], line: &LaunchLine) -> Slots {
    let mut of_role = named.iter().filter(|it| it.role == role.name).peekable();
    if of_role.peek().is_none() {
        return Slots::NONE;
    }
    if let Some(count) = of_role.filter_map(|it| it.slots).max() {
        return Slots { count, from: SlotsFrom::LaunchLine };
    }
    if let Some(count) = line.per_host {
        return Slots { count, from: SlotsFrom::LaunchLine };
    }
    let hosts = u32::try_from(named.len()).unwrap_or(u32::MAX);
    Slots::derived(role.gpus, line.ranks, hosts)
}
