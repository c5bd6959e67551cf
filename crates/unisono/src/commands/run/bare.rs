//! A job without a file, and what flags add to any job.

use unisono_job::{
    Command, Dialect, EndRule, EnvVar, Group, Job, JobName, MpiChoice, MpiFrom, Runs, Slots,
};

use super::RunArgs;

/// The job of `unisono run --hosts 3 --slots 2 -- COMMAND`: one group, whose first host also launches.
pub(super) fn job(command: &[String], hosts: Option<u32>, slots: Option<u32>) -> Job {
    let program = command.first().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    // What files write as `$(NAME)` and `$$` is not meant here: every word is the caller's own.
    let words = command.iter().map(|word| word.replace('$', "$$")).collect();
    let launch = Command::Words(words);
    let flavour = launch.launch_line().and_then(|line| line.flavour);
    let name = JobName::new(program)
        .or_else(|_| JobName::new("job"))
        .unwrap_or_else(|_| unreachable!("`job` is a name"));
    let from = if flavour.is_some() { MpiFrom::LaunchLine } else { MpiFrom::Unknown };
    let slots = Slots::stated(slots.unwrap_or(1));
    let group = Group {
        end: EndRule::FIRST,
        ..Group::new("host", hosts.unwrap_or(1), slots, Runs::LaunchOnFirst(launch))
    };
    Job { mpi: MpiChoice { flavour, from }, ..Job::new(name, Dialect::Unisono, vec![group]) }
}

/// The job with what flags add.
pub(super) fn with(mut job: Job, args: &RunArgs) -> Job {
    if let Some(seconds) = args.timeout {
        job.policies.deadline_seconds = Some(seconds);
    }
    if args.resume {
        job.policies.suspend = false;
    }
    if let Some(queue) = &args.queue {
        job.policies.gang.queue = Some(queue.clone());
    }
    if let Some(priority) = args.priority {
        job.policies.gang.priority_class = Some(priority.to_string());
    }
    // Whoever manages the job on a cluster does not do so on this machine.
    job.policies.managed_by = None;
    for group in &mut job.groups {
        let given = args
            .env
            .iter()
            .map(|(name, value)| EnvVar { name: name.clone(), value: Some(value.clone()) });
        group.env.extend(given);
    }
    job
}

/// Reads `NAME=VALUE`.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write NAME=VALUE".to_owned()),
    }
}
