//! The rules of a job's life, in words.

use unisono_job::{CleanUp, EndRule, Job, LauncherStart, Retry, RetryCount, Slots, SlotsFrom};

use crate::report::table::counted;

/// Each rule that has something to say, with its name.
pub(super) fn of(job: &Job) -> Vec<(String, String)> {
    let policies = &job.policies;
    let mut rules: Vec<(&str, String)> = Vec::new();
    rules.extend(job.groups.iter().filter_map(|it| Some(("slots", slots(&it.name, it.slots)?))));
    rules.extend(job.groups.iter().filter_map(|it| Some(("end", end(&it.name, it.end)?))));
    rules.push(("retries", retries(policies.retry)));
    rules.push((
        "lost hosts",
        format!("all ranks start again, {} times at most", policies.gang_restarts),
    ));
    rules.extend(policies.deadline_seconds.map(|it| ("deadline", seconds(it))));
    rules.push(("clean-up", clean_up(policies.clean_up).to_owned()));
    rules.extend(
        policies.ttl_seconds.map(|it| ("removed", format!("{} after its end", seconds(it)))),
    );
    rules.extend(policies.suspend.then(|| ("suspended", "waits until it is resumed".to_owned())));
    rules.extend(policies.managed_by.iter().map(|it| ("managed by", it.clone())));
    if policies.launcher_start == LauncherStart::AfterWorkers {
        rules.push(("launcher", "created when every worker is ready".to_owned()));
    }
    rules.extend(policies.gang.min_members.map(|it| ("gang", gang(it, job.host_count()))));
    rules.extend(policies.gang.schedule_timeout_seconds.map(|it| {
        let each = format!("{} for its place, each time the scheduler tries", seconds(it.into()));
        ("gang waits", each)
    }));
    rules.extend(policies.gang.queue.iter().map(|it| ("queue", it.clone())));
    rules.extend(policies.gang.priority_class.iter().map(|it| ("priority", it.clone())));
    rules.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect()
}

/// A gang is placed as one; commands wait for every host, however small the gang.
fn gang(members: u32, all: u64) -> String {
    if u64::from(members) < all {
        format!("{members} of {all} members must fit at once; commands wait for all of them")
    } else {
        format!("{} must fit at once", counted(members, "member"))
    }
}

fn slots(group: &str, slots: Slots) -> Option<String> {
    let each = format!("{} on each {group}", slots.count);
    match slots.from {
        SlotsFrom::Stated => Some(format!("{each}, as the file states")),
        SlotsFrom::Gpus => Some(format!("{each}, one for each of its GPUs")),
        SlotsFrom::LaunchLine => Some(format!("{each}, the launch line's ranks spread evenly")),
        SlotsFrom::Default => Some(format!("{each}, because nothing states them")),
        SlotsFrom::Role => None,
    }
}

fn end(group: &str, rule: EndRule) -> Option<String> {
    let count = |count: u32| match count {
        1 => format!("one {group}"),
        count => format!("{count} members of {group}"),
    };
    match (rule.min_succeeded, rule.min_failed) {
        (None, None) => None,
        (Some(1), Some(1)) => Some(format!("the first end of {group} decides")),
        (Some(good), Some(bad)) => {
            Some(format!("succeeds with {}, fails with {}", count(good), count(bad)))
        }
        (Some(good), None) => Some(format!("succeeds with {}", count(good))),
        (None, Some(bad)) => Some(format!("fails with {}", count(bad))),
    }
}

fn retries(retry: Retry) -> String {
    match retry {
        Retry::Backoff { limit: 0 } => "none".to_owned(),
        Retry::Backoff { limit } => format!("{} after the first", counted(limit, "attempt")),
        Retry::ByClass(RetryCount::Always) => "always, even after success".to_owned(),
        Retry::ByClass(RetryCount::UntilSuccess) => {
            "until success, unless the failure is the job's own".to_owned()
        }
        Retry::ByClass(RetryCount::Limited(limit)) => {
            format!("{limit} for unknown failures, any number for passing ones")
        }
    }
}

const fn clean_up(clean_up: CleanUp) -> &'static str {
    match clean_up {
        CleanUp::None => "workers stay as they are",
        CleanUp::Running => "workers that still run or wait are removed",
        CleanUp::All => "all workers are removed",
    }
}

fn seconds(count: u64) -> String {
    counted(count, "second")
}
