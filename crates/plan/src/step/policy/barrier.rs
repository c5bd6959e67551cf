//! The start barrier: no command begins before every host of the job is up and nothing of an earlier try is left.
//!
//! Where commands shake hands with every host themselves, engines say that hosts are placed, and that is enough to let the
//! commands go.
//!
//! A slow start is never a failure, and needs no `sleep` in anybody's command.

use unisono_job::LauncherStart;

use crate::step::sight::{Sight, is_placed, is_up};
use crate::{Host, Plan, SeenState, Status, Time, Wanted, Why};

/// What the job's commands wait for; nothing when they may begin.
pub(crate) fn waits(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Vec<Why> {
    let mut whys = Vec::new();
    if let Some(first) = sight.stale.first() {
        let host = plan.host(first.member).map(|host| host.name.clone());
        whys.push(Why::Clearing {
            host: host.unwrap_or_else(|| format!("surplus member {}", first.member)),
            others: sight.stale.len() - 1,
        });
    }
    if let Some(until) = status.not_before.filter(|until| now < *until) {
        whys.push(Why::Backoff { attempt: status.attempt, until });
    }
    whys.extend(coming(
        plan,
        plan.hosts.iter().filter(|host| !sight.state(host).is_some_and(is_placed)),
        sight,
    ));
    whys
}

/// Why one of these hosts is not up, and how many there are beside it. One that cannot come by itself is told first.
pub(crate) fn coming<'plan>(
    plan: &Plan,
    hosts: impl Iterator<Item = &'plan Host>,
    sight: &Sight<'_>,
) -> Option<Why> {
    let hosts: Vec<&Host> = hosts.collect();
    let others = hosts.len().checked_sub(1)?;
    for host in &hosts {
        let reason = match sight.state(host) {
            Some(SeenState::Stuck(reason) | SeenState::NoPlace(reason)) => reason.clone(),
            Some(SeenState::NoImage(waiting)) => waiting.reason(&plan.facts),
            _ => continue,
        };
        return Some(Why::Stuck { host: host.name.clone(), reason, others });
    }
    let first = hosts.first()?;
    let reason = match sight.state(first) {
        Some(SeenState::Coming(reason) | SeenState::Placed(reason)) => reason.clone(),
        // What is stuck was told above.
        _ => "it is being created".to_owned(),
    };
    Some(Why::Coming { host: first.name.clone(), reason, others })
}

/// What a host is to be while the job starts.
pub(crate) fn wanted(
    plan: &Plan,
    status: &Status,
    sight: &Sight<'_>,
    host: &Host,
    now: Time,
) -> Wanted {
    if sight.state(host).is_none() && sight.is_blocked(host.member) {
        return Wanted::Absent;
    }
    if !host.runs.runs_command() {
        return Wanted::Held;
    }
    let backs_off = status.not_before.is_some_and(|until| now < until);
    let comes_last = plan.job.policies.launcher_start == LauncherStart::AfterWorkers
        && !workers_are_up(plan, sight);
    if backs_off || comes_last { Wanted::Absent } else { Wanted::Held }
}

fn workers_are_up(plan: &Plan, sight: &Sight<'_>) -> bool {
    let mut workers = plan.hosts.iter().filter(|host| !host.runs.runs_command());
    workers.all(|host| sight.state(host).is_some_and(is_up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LAUNCHER, OTHER_WORKER, WORKER, plan, seen};
    use crate::{EngineKind, Member, Observed};

    const UP: SeenState = SeenState::Up;

    fn says(observed: &Observed, status: &Status) -> Vec<String> {
        let plan = plan(EngineKind::Local, |_| {});
        let sight = Sight::of(&plan, status, observed);
        waits(&plan, status, &sight, Time(0)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commands_wait_for_every_host_and_say_for_which() {
        let pulling = SeenState::Coming("it pulls its image".to_owned());
        let some = seen(&[(LAUNCHER, UP), (WORKER, pulling)]);
        let status = Status::default();
        assert_eq!(
            says(&some, &status),
            ["sample-work-0 (and 1 other) is not up: it pulls its image"]
        );
        let all = seen(&[(LAUNCHER, UP), (WORKER, UP), (OTHER_WORKER, UP)]);
        assert!(says(&all, &status).is_empty());
    }

    #[test]
    fn a_host_that_cannot_come_by_itself_is_told_first() {
        let stuck = SeenState::Stuck("its image is not there".to_owned());
        let pulling = SeenState::Coming("it pulls its image".to_owned());
        let all = seen(&[(LAUNCHER, pulling), (WORKER, UP), (OTHER_WORKER, stuck)]);
        let said = says(&all, &Status::default());
        assert_eq!(said, ["sample-work-1 (and 1 other) is not up: its image is not there"]);
    }

    #[test]
    fn hosts_that_have_their_place_are_waited_for_by_the_command_itself() {
        let starts = || SeenState::Placed("its containers are being started".to_owned());
        let all = seen(&[(LAUNCHER, starts()), (WORKER, starts()), (OTHER_WORKER, UP)]);
        assert!(says(&all, &Status::default()).is_empty());
    }

    #[test]
    fn what_the_platform_refuses_is_told_first_and_only_while_the_job_starts() {
        let plan = plan(EngineKind::Kubernetes, |_| {});
        let reason = "create Pod sample-work-1: exceeded quota".to_owned();
        let refused = Observed { refused: Some(reason), ..seen(&[(LAUNCHER, UP), (WORKER, UP)]) };
        let next = crate::step(&plan, &Status::default(), &refused, Time(0));
        let said: Vec<String> = next.why.iter().map(ToString::to_string).collect();
        assert_eq!(said[0], "create Pod sample-work-1: exceeded quota", "{said:?}");
        let all = seen(&[(LAUNCHER, UP), (WORKER, UP), (OTHER_WORKER, UP)]);
        let later = Observed { refused: refused.refused, ..all };
        let next = crate::step(&plan, &next.status, &later, Time(1));
        assert!(!next.why.iter().any(|why| matches!(why, Why::Refused { .. })), "{:?}", next.why);
    }

    #[test]
    fn a_gang_smaller_than_the_job_still_waits_for_every_host() {
        let plan = plan(EngineKind::Kubernetes, |job| {
            job.policies.gang.min_members = Some(2);
            job.policies.gang.schedule_timeout_seconds = Some(1);
        });
        let status = Status::default();
        let placed = seen(&[(LAUNCHER, UP), (WORKER, UP)]);
        let sight = Sight::of(&plan, &status, &placed);
        // However long: waiting for a place is no failure.
        let whys = waits(&plan, &status, &sight, Time(3_600_000));
        assert_eq!(whys.len(), 1, "{whys:?}");
        assert_eq!(whys[0].to_string(), "sample-work-1 is not up: it is being created");
    }

    #[test]
    fn commands_wait_until_nothing_of_an_earlier_try_is_left() {
        let all = seen(&[(LAUNCHER, UP), (WORKER, UP), (OTHER_WORKER, UP)]);
        let restarted = Status { epoch: 1, launched_epoch: 1, ..Status::default() };
        let said = says(&all, &restarted);
        assert_eq!(said[0], "sample-run-0 of an earlier try is still there");
        assert_eq!(said[1], "sample-run-0 is not up: it is being created");
    }

    #[test]
    fn a_launcher_that_comes_last_is_made_when_the_workers_are_up() {
        let plan = plan(EngineKind::Local, |job| {
            job.policies.launcher_start = LauncherStart::AfterWorkers;
        });
        let status = Status::default();
        let wanted_with = |states: &[(Member, SeenState)]| {
            let observed = seen(states);
            let sight = Sight::of(&plan, &status, &observed);
            wanted(&plan, &status, &sight, plan.host(LAUNCHER).unwrap(), Time(0))
        };
        assert_eq!(wanted_with(&[(WORKER, UP)]), Wanted::Absent);
        assert_eq!(wanted_with(&[(WORKER, UP), (OTHER_WORKER, UP)]), Wanted::Held);
    }
}
