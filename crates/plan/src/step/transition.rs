//! One transition of a job's life at a time, until there is none to make.

use std::collections::BTreeMap;
use std::time::Duration;

use unisono_job::Retry;

use super::policy::end_rules::{Outcome, outcome};
use super::policy::retry::{Decision, after_failure, never_ends, wait_seconds};
use super::policy::suspend::without_try;
use super::policy::{admission, barrier, deadline, gang_restart, image, loss, suspend};
use super::sight::{Sight, is_up};
use crate::{
    Cause, End, EndReason, Ended, EngineKind, Failure, Member, Observed, Plan, SeenState, Stage,
    Status, Time, Verdict,
};

/// The exit code of a job that took too long, as `timeout` gives it.
const TOOK_TOO_LONG: i32 = 124;
/// The exit code of a job that somebody stopped: 128 and SIGTERM.
const STOPPED: i32 = 143;

/// The status after the next transition; none when there is none to make now.
pub(super) fn next(
    plan: &Plan,
    status: &Status,
    observed: &Observed,
    sight: &Sight<'_>,
    now: Time,
) -> Option<Status> {
    match status.stage {
        Stage::Ended(_) => return None,
        Stage::New => return Some(first_look(plan, status, now)),
        Stage::Suspended | Stage::Queued | Stage::Starting | Stage::Running => {}
    }
    if status.generation != plan.generation {
        return Some(new_generation(plan, status));
    }
    if observed.stop_requested {
        return Some(ended(status, end(Verdict::Stopped, EndReason::StopRequested, STOPPED), now));
    }
    let is_suspended = status.stage == Stage::Suspended;
    match (plan.job.policies.suspend, is_suspended) {
        (true, true) => return None,
        (true, false) => return Some(suspend::suspended(status, now)),
        (false, true) => return Some(suspend::resumed(status)),
        (false, false) => {}
    }
    if status.stage == Stage::Queued {
        return admission::waits(status, &observed.room).is_none().then(|| Status {
            stage: Stage::Starting,
            started: Some(now),
            ..status.clone()
        });
    }
    noticed(plan, status, sight, now)
        .or_else(|| judged(plan, status, sight, now))
        .or_else(|| out_of_time(plan, status, now))
        .or_else(|| without_image(plan, status, sight, now))
        .or_else(|| let_go(plan, status, sight, now))
}

fn first_look(plan: &Plan, status: &Status, now: Time) -> Status {
    Status {
        stage: if plan.job.policies.suspend { Stage::Suspended } else { Stage::Queued },
        generation: plan.generation,
        created: Some(now),
        ..status.clone()
    }
}

/// A new version may have more or fewer members. New ones belong to a new epoch; commands that run are left to run.
fn new_generation(plan: &Plan, status: &Status) -> Status {
    let mut following = Status { generation: plan.generation, ..status.clone() };
    following.epoch += 1;
    for (released, group) in following.released.iter_mut().zip(&plan.job.groups) {
        *released = (*released).min(group.replicas);
    }
    following.ended.retain(|member, _| plan.host(*member).is_some());
    following.missing.retain(|member, _| plan.host(*member).is_some());
    following.replaced.retain(|member, _| plan.host(*member).is_some());
    following
}

/// Takes down what happened: commands that began or ended, members that are not seen. A command that is still held can do
/// neither: when its host has ended, the host is lost.
fn noticed(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Option<Status> {
    if status.stage != Stage::Running {
        return None;
    }
    let mut following = status.clone();
    let all_up = loss::still_coming(plan, status, sight).next().is_none();
    for host in plan.hosts.iter().filter(|host| host.runs.runs_command()) {
        match sight.state(host) {
            // A command that was let go early waits for hosts that are not up.
            Some(SeenState::Running { since }) if all_up => {
                following.running_since.get_or_insert(*since);
            }
            Some(SeenState::Ended(ended)) => {
                if let Some(started) = ended.started {
                    following.running_since.get_or_insert(started);
                }
                following.ended.entry(host.member).or_insert_with(|| Ended {
                    // Another machine's clock may be ahead of ours.
                    at: ended.at.min(now),
                    ..ended.clone()
                });
            }
            Some(
                SeenState::Coming(_)
                | SeenState::Stuck(_)
                | SeenState::NoPlace(_)
                | SeenState::NoImage(_)
                | SeenState::Placed(_)
                | SeenState::Up
                | SeenState::Running { .. },
            )
            | None => {}
        }
    }
    following.first_ran = following.first_ran.or(following.running_since);
    following.missing = loss::missing(plan, &following, sight, now);
    (following != *status).then_some(following)
}

/// Decides whether the attempt is over, and what follows it.
fn judged(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Option<Status> {
    let lost = loss::lost(plan, status, sight, now);
    match outcome(plan, &status.ended) {
        Some(Outcome::Succeeded(_)) if never_ends(plan.job.policies.retry) => {
            Some(another_attempt(plan, status, false, now))
        }
        Some(Outcome::Succeeded(by)) => {
            let success = end(Verdict::Succeeded, EndReason::Completed, 0);
            Some(ended(status, End { by, ..success }, now))
        }
        Some(Outcome::Failed(member)) => {
            let failed = status.ended.get(&member)?;
            if lost.is_empty() && now < judged_at(plan, failed) {
                return None;
            }
            Some(failed_attempt(plan, status, member, &lost, now))
        }
        None if lost.is_empty() => None,
        None if by_class(plan) => {
            let (member, how) = lost.first_key_value()?;
            Some(after_a_failure(plan, status, *member, how, now))
        }
        None => Some(members_lost(plan, status, &lost, now)),
    }
}

/// Whether the job's retries follow OpenPAI's classes: what the platform did is then free, and every attempt is new.
const fn by_class(plan: &Plan) -> bool {
    matches!(plan.job.policies.retry, Retry::ByClass(_))
}

/// A command may fail because a host is lost, and the news of the host come later than the news of the command.
pub(super) fn judged_at(plan: &Plan, failed: &Ended) -> Time {
    let patience = match (plan.facts.engine, failed.cause) {
        (EngineKind::Kubernetes, Cause::Exited) => Duration::from_secs(2),
        (EngineKind::Kubernetes | EngineKind::Local, _) => Duration::ZERO,
    };
    failed.at.after(patience)
}

fn failed_attempt(
    plan: &Plan,
    status: &Status,
    member: Member,
    lost: &BTreeMap<Member, Ended>,
    now: Time,
) -> Status {
    let failed = &status.ended[&member];
    if !by_class(plan) && (!lost.is_empty() || failed.cause.is_the_platforms()) {
        let mut lost = lost.clone();
        if lost.is_empty() {
            lost.insert(member, failed.clone());
        }
        return members_lost(plan, status, &lost, now);
    }
    after_a_failure(plan, status, member, failed, now)
}

fn after_a_failure(
    plan: &Plan,
    status: &Status,
    member: Member,
    failed: &Ended,
    now: Time,
) -> Status {
    let mut status = with_failure(plan, status, member, failed);
    status.failed_launches += 1;
    match after_failure(plan.job.policies.retry, status.counted_failures, failed) {
        Decision::Again { counts } => another_attempt(plan, &status, counts, now),
        Decision::Stop(reason) => {
            let failure = end(Verdict::Failed, reason, failed.code);
            let failure = End { by: Some(member), cause: Some(failed.cause), ..failure };
            ended(&status, failure, now)
        }
    }
}

/// The status at the beginning of another attempt. OpenPAI's begin with all hosts anew, others keep those of ranks.
fn another_attempt(plan: &Plan, status: &Status, counts: bool, now: Time) -> Status {
    let mut following = without_try(status);
    following.stage = Stage::Starting;
    following.attempt += 1;
    following.epoch += 1;
    following.launched_epoch = following.epoch;
    following.counted_failures += u32::from(counts);
    if by_class(plan) {
        following.hosts_epoch = following.epoch;
    }
    let wait = wait_seconds(following.failed_launches);
    following.not_before = (wait > 0).then(|| now.after_seconds(wait));
    following
}

/// The status after members were lost: they are replaced, and all ranks start again.
fn members_lost(plan: &Plan, status: &Status, lost: &BTreeMap<Member, Ended>, now: Time) -> Status {
    let first = lost.iter().min_by_key(|(member, ended)| (ended.at, **member));
    let Some((member, how)) = first else {
        return status.clone();
    };
    let mut following = with_failure(plan, status, *member, how);
    if !gang_restart::is_allowed(&plan.job.policies, status) {
        let failure = end(Verdict::Failed, EndReason::LostTooOften, how.code.max(1));
        let failure = End { by: Some(*member), cause: Some(how.cause), ..failure };
        return ended(&following, failure, now);
    }
    following.epoch += 1;
    following.gang_restarts += 1;
    for member in lost.keys() {
        following.replaced.insert(*member, following.epoch);
    }
    if status.stage == Stage::Running {
        // A command that still waited for its hosts has not failed; but it waits for the lost one, so it begins anew, too.
        following.failed_launches += u32::from(status.running_since.is_some());
        following.launched_epoch = following.epoch;
        following.stage = Stage::Starting;
        following = without_try(&following);
    }
    following
}

fn with_failure(plan: &Plan, status: &Status, member: Member, how: &Ended) -> Status {
    let mut following = status.clone();
    let known = status.first_failure.as_ref();
    if known.is_none_or(|known| known.epoch < status.epoch) {
        let host = plan.host(member).map(|host| host.name.clone());
        following.first_failure = Some(Failure {
            epoch: status.epoch,
            host: host.unwrap_or_else(|| format!("member {member}")),
            member,
            ended: how.clone(),
        });
    }
    following
}

fn out_of_time(plan: &Plan, status: &Status, now: Time) -> Option<Status> {
    let due = deadline::due(&plan.job.policies, status)?;
    let failure = end(Verdict::Failed, EndReason::DeadlineExceeded, TOOK_TOO_LONG);
    (now >= due).then(|| ended(status, failure, now))
}

/// Gives up on a job that has waited for an image long enough.
fn without_image(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Option<Status> {
    let (member, how) = image::given_up(plan, status, sight, now)?;
    let failure = end(Verdict::Failed, EndReason::ImageUnavailable, how.code);
    let failure = End { by: Some(member), cause: Some(how.cause), ..failure };
    Some(ended(&with_failure(plan, status, member, &how), failure, now))
}

/// Lets commands go when every host is up; afterwards takes in members that came later.
fn let_go(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Option<Status> {
    let all: Vec<u32> = plan.job.groups.iter().map(|group| group.replicas).collect();
    let begins = match status.stage {
        Stage::Starting => barrier::waits(plan, status, sight, now).is_empty(),
        Stage::Running => {
            status.released != all
                && plan.hosts.iter().all(|host| {
                    status.ended.contains_key(&host.member) || sight.state(host).is_some_and(is_up)
                })
        }
        Stage::New | Stage::Suspended | Stage::Queued | Stage::Ended(_) => false,
    };
    begins.then(|| Status {
        stage: Stage::Running,
        released: all,
        not_before: None,
        ..status.clone()
    })
}

const fn end(verdict: Verdict, reason: EndReason, code: i32) -> End {
    End { verdict, reason, by: None, code, cause: None }
}

/// Every end sets the time of completion.
fn ended(status: &Status, end: End, now: Time) -> Status {
    Status {
        stage: Stage::Ended(end),
        completed: Some(now),
        not_before: None,
        missing: BTreeMap::new(),
        ..status.clone()
    }
}
