//! The caller's numbers instead of the file's: `--np`, `--hosts`, `--slots` shrink a job to a laptop.

use unisono_job::{Command, Group, Job, Note, Runs, Slots};

use crate::notes::codes;
use crate::{Overrides, ranks, recount};

/// The job with the caller's numbers, and what is to be told about that.
pub(crate) fn apply(job: &Job, overrides: &Overrides) -> (Job, Vec<Note>) {
    let mut job = job.clone();
    let mut notes = Vec::new();
    if let Some(hosts) = overrides.hosts {
        set_hosts(&mut job, hosts, &mut notes);
    }
    if let Some(slots) = overrides.slots {
        let hosting = job.groups.iter_mut().filter(|group| group.slots.count > 0);
        hosting.for_each(|group| group.slots = Slots::stated(slots));
    }
    if overrides.skip_sleep {
        job.groups.iter_mut().for_each(drop_leading_sleep);
    }
    set_ranks(&mut job, overrides, &mut notes);
    (job, notes)
}

/// The group whose size a number of hosts means: the one that hosts ranks beside or below the launching one.
fn set_hosts(job: &mut Job, hosts: u32, notes: &mut Vec<Note>) {
    let launching = ranks::launch_command(job).map(|launch| launch.group);
    let alone = job.groups.len() == 1;
    let scales = |at: usize, group: &Group| match group.runs {
        Runs::Ranks(_) | Runs::LaunchOnFirst(_) => true,
        Runs::Own(_) => alone || launching != Some(at),
        Runs::Launch(_) => false,
    };
    let mut candidates = job.groups.iter_mut().enumerate().filter(|(at, group)| scales(*at, group));
    match (candidates.next(), candidates.next()) {
        (Some((_, only)), None) => only.replicas = hosts,
        (None, _) => notes.push(Note::new(
            &codes::OVERRIDE_NOT_APPLIED,
            format!("{hosts} hosts were asked for, but no group of this job hosts ranks"),
        )),
        (Some(_), Some(_)) => notes.push(
            Note::new(
                &codes::OVERRIDE_NOT_APPLIED,
                format!("{hosts} hosts were asked for, but several groups of this job host ranks"),
            )
            .hint("change the counts in the file"),
        ),
    }
}

fn set_ranks(job: &mut Job, overrides: &Overrides, notes: &mut Vec<Note>) {
    let Some(launch) = ranks::launch_command(job) else {
        return;
    };
    let stated = launch.line.as_ref().and_then(|line| line.ranks);
    let slots = u32::try_from(job.slot_count()).unwrap_or(u32::MAX);
    let shrunk = overrides.hosts.is_some() || overrides.slots.is_some();
    let wanted = match (overrides.ranks, stated) {
        (Some(wanted), _) => wanted,
        // Fewer slots without fewer ranks would only oversubscribe what was meant to be small.
        (None, Some(stated)) if shrunk && stated > slots && slots > 0 => slots,
        (None, _) => return,
    };
    if stated == Some(wanted) {
        return;
    }
    let (at, recounted) = (launch.group, recount::with_ranks(launch.command, wanted));
    let Some(command) = recounted else {
        notes.push(
            Note::new(
                &codes::OVERRIDE_NOT_APPLIED,
                format!(
                    "{wanted} ranks were asked for, but the launch line's count cannot be changed"
                ),
            )
            .hint("change the count in the file"),
        );
        return;
    };
    notes.push(Note::new(
        &codes::RANKS_CHANGED,
        match stated {
            Some(stated) => format!("the launch line starts {wanted} ranks instead of {stated}"),
            None => format!("the launch line is given a count of {wanted} ranks"),
        },
    ));
    set_command(&mut job.groups[at], command);
}

fn set_command(group: &mut Group, command: Command) {
    match &mut group.runs {
        Runs::Launch(old) | Runs::LaunchOnFirst(old) | Runs::Own(old) => *old = command,
        Runs::Ranks(old) => *old = Some(command),
    }
}

fn drop_leading_sleep(group: &mut Group) {
    let Some(Command::Line { shell, text }) = group.runs.command() else {
        return;
    };
    if let Some(rest) = after_leading_sleep(text) {
        let command = Command::Line { shell: *shell, text: rest.to_owned() };
        set_command(group, command);
    }
}

/// What follows a leading `sleep N &&` or `sleep N;`.
pub(crate) fn after_leading_sleep(text: &str) -> Option<&str> {
    let after_word = text.trim_start().strip_prefix("sleep")?;
    let argument = after_word.strip_prefix(char::is_whitespace)?.trim_start();
    let is_duration = |it: char| it.is_ascii_digit() || ".smhd".contains(it);
    let after = argument.trim_start_matches(is_duration);
    if after.len() == argument.len() {
        return None;
    }
    let after = after.trim_start();
    let rest = after.strip_prefix("&&").or(after.strip_prefix(';'))?.trim();
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_sleep_is_found_only_where_it_leads() {
        assert_eq!(after_leading_sleep("sleep 1000 &&  ./a"), Some("./a"));
        assert_eq!(after_leading_sleep(" sleep 2.5m; ./a b"), Some("./a b"));
        for text in ["sleep infinity", "sleep 5", "sleep 5 && ", "./a && sleep 5", "sleepy 5 && a"]
        {
            assert_eq!(after_leading_sleep(text), None, "{text:?}");
        }
    }
}
