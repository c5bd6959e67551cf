//! From a status to what is wanted, when to look again, and why the job waits.

use std::collections::BTreeMap;

use super::policy::clean_up::Remains;
use super::policy::end_rules::{Outcome, outcome};
use super::policy::{admission, barrier, deadline, image, loss, suspend, ttl};
use super::sight::{Sight, comes, is_alive, is_up};
use super::transition::judged_at;
use crate::conditions::Unplaced;
use crate::{
    Cause, GroupCounts, Host, Member, Observed, Plan, SeenState, Stage, Status, Time, Want, Wanted,
    Why,
};

pub(super) fn want(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Want {
    let expired = ttl::due(&plan.job.policies, status).is_some_and(|due| now >= due);
    Want {
        attempt: status.attempt,
        epoch: status.epoch,
        members: members(plan, status, sight, now),
        remove: sight.stale.clone(),
        remove_job: status.is_terminal() && expired,
    }
}

fn members(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> BTreeMap<Member, Wanted> {
    let remains = Remains::of(plan, sight, status.completed.unwrap_or(now), now);
    let wanted = |host: &Host| match status.stage {
        Stage::New | Stage::Queued => None,
        Stage::Suspended => suspended(plan, status, host, sight.state(host)?, now),
        // What has ended is over, even when nothing of it is seen any more.
        Stage::Running if status.ended.contains_key(&host.member) => None,
        Stage::Starting => Some(barrier::wanted(plan, status, sight, host, now)),
        Stage::Running if loss::was_released(status, host.member) => Some(Wanted::Running),
        // It joins a running job.
        Stage::Running => Some(barrier::wanted(plan, status, sight, host, now)),
        Stage::Ended(_) => remains.wanted(host, sight.state(host)?),
    };
    plan.hosts.iter().filter_map(|host| Some((host.member, wanted(host)?))).collect()
}

fn suspended(
    plan: &Plan,
    status: &Status,
    host: &Host,
    state: &SeenState,
    now: Time,
) -> Option<Wanted> {
    if !is_alive(state) && host.runs.launches() {
        return None;
    }
    let until = stop_until(plan, status, now);
    let asks = is_alive(state) && host.runs.runs_command() && now < until;
    Some(if asks { Wanted::Stopping { until } } else { Wanted::Absent })
}

fn stop_until(plan: &Plan, status: &Status, now: Time) -> Time {
    let since = status.completed.or(status.stopping_since).unwrap_or(now);
    since.after(suspend::grace(plan.facts.engine))
}

/// Members of each group by what they are doing.
pub(super) fn counts(plan: &Plan, status: &Status, sight: &Sight<'_>) -> Vec<GroupCounts> {
    let mut counts = vec![GroupCounts::default(); plan.job.groups.len()];
    for host in &plan.hosts {
        let Some(count) = counts.get_mut(host.member.group as usize) else {
            continue;
        };
        let known = status.ended.get(&host.member);
        match (sight.state(host), known) {
            // Its end was wanted, and it is on its way out.
            (Some(SeenState::Ended(ended)), None)
                if status.is_at_rest() && ended.cause == Cause::Deleted => {}
            (_, Some(ended)) | (Some(SeenState::Ended(ended)), None) => {
                let which =
                    if ended.succeeded() { &mut count.succeeded } else { &mut count.failed };
                *which += 1;
            }
            (Some(state), None) => {
                count.existing += 1;
                count.active += u32::from(is_up(state));
            }
            (None, None) => {}
        }
    }
    counts
}

/// Why not all of a job that starts can be placed.
pub(super) fn unplaced<'seen>(
    status: &Status,
    observed: &'seen Observed,
    sight: &Sight<'seen>,
) -> Option<Unplaced<'seen>> {
    if status.stage != Stage::Starting {
        return None;
    }
    let no_place = sight.current.values().find_map(|seen| match &seen.state {
        SeenState::NoPlace(reason) => Some(Unplaced::NoRoom(reason)),
        _ => None,
    });
    no_place.or(observed.refused.as_deref().map(Unplaced::NotMade))
}

/// When to look again even if nothing happens.
pub(super) fn wake_at(plan: &Plan, status: &Status, sight: &Sight<'_>, now: Time) -> Option<Time> {
    let policies = &plan.job.policies;
    let anything_alive = sight.current.values().any(|seen| is_alive(&seen.state));
    let stopping = anything_alive.then(|| stop_until(plan, status, now));
    let times: Vec<Option<Time>> = match &status.stage {
        Stage::New | Stage::Queued => Vec::new(),
        Stage::Suspended => vec![stopping],
        Stage::Starting | Stage::Running => {
            let patience = loss::patience(plan.facts.engine);
            vec![
                deadline::due(policies, status),
                status.not_before,
                status.missing.values().min().map(|since| since.after(patience)),
                judging(plan, status).map(|(_, until)| until),
                image::next_due(plan, status, sight),
            ]
        }
        Stage::Ended(_) => vec![ttl::due(policies, status), stopping],
    };
    times.into_iter().flatten().filter(|time| *time > now).min()
}

/// The failed command whose failure is not judged yet, and when it will be.
fn judging(plan: &Plan, status: &Status) -> Option<(Member, Time)> {
    match outcome(plan, &status.ended)? {
        Outcome::Failed(member) => Some((member, judged_at(plan, status.ended.get(&member)?))),
        Outcome::Succeeded(_) => None,
    }
}

/// Why the job waits. Never empty.
pub(super) fn whys(
    plan: &Plan,
    status: &Status,
    observed: &Observed,
    sight: &Sight<'_>,
    now: Time,
) -> Vec<Why> {
    match &status.stage {
        Stage::New | Stage::Queued => {
            let why = admission::waits(status, &observed.room);
            vec![why.unwrap_or_else(|| Why::Queued { reason: "it was just seen".to_owned() })]
        }
        Stage::Suspended => {
            stopping(plan, sight, |_| true).into_iter().chain([Why::Suspended]).collect()
        }
        Stage::Starting => {
            let refused = observed.refused.iter();
            let refused = refused.map(|reason| Why::Refused { reason: reason.clone() });
            refused.chain(barrier::waits(plan, status, sight, now)).collect()
        }
        Stage::Running => running(plan, status, sight),
        Stage::Ended(_) => {
            let remains = Remains::of(plan, sight, status.completed.unwrap_or(now), now);
            let going = |host: &Host| {
                sight.state(host).is_some_and(|state| remains.wanted(host, state).is_some())
            };
            let expiring = ttl::due(&plan.job.policies, status).map(|at| Why::Expiring { at });
            let mut whys = Vec::from_iter(stopping(plan, sight, going));
            whys.push(expiring.unwrap_or(Why::Ended));
            whys
        }
    }
}

fn stopping(plan: &Plan, sight: &Sight<'_>, goes: impl Fn(&Host) -> bool) -> Option<Why> {
    let mut going = plan.hosts.iter().filter(|host| sight.state(host).is_some() && goes(host));
    let first = going.next()?;
    Some(Why::Stopping { host: first.name.clone(), others: going.count() })
}

fn running(plan: &Plan, status: &Status, sight: &Sight<'_>) -> Vec<Why> {
    let name = |member: Member| plan.host(member).map(|host| host.name.clone()).unwrap_or_default();
    let mut whys = Vec::new();
    if let Some((member, until)) = judging(plan, status) {
        whys.push(Why::Judging { host: name(member), until });
    }
    if let Some((member, since)) = status.missing.iter().next() {
        let until = since.after(loss::patience(plan.facts.engine));
        whys.push(Why::Missing { host: name(*member), until });
    }
    if status.running_since.is_none()
        && status.ended.is_empty()
        && let Some(why) = barrier::coming(plan, loss::still_coming(plan, status, sight), sight)
    {
        whys.push(why);
        return whys;
    }
    let busy = |host: &&Host| host.runs.runs_command() && !status.ended.contains_key(&host.member);
    let mut commands = plan.hosts.iter().filter(busy);
    if let Some(first) = commands.next() {
        whys.push(Why::Running { host: first.name.clone(), others: commands.count() });
    }
    let mut coming = plan.hosts.iter().filter(|host| sight.state(host).is_some_and(comes));
    if let Some(first) = coming.next() {
        let reason = "it joins a running job".to_owned();
        whys.push(Why::Coming { host: first.name.clone(), reason, others: coming.count() });
    }
    whys
}
