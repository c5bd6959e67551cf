//! Lost members: hosts of ranks that ended under a running job, hosts that ended before their command was let go, and
//! members that are not seen any more.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::step::sight::{Sight, comes};
use crate::{Cause, Ended, EngineKind, Host, Member, Plan, SeenState, Stage, Status, Time};

/// How long a member may be unseen before it counts as lost: a view of a cluster can lag behind, one of this machine not.
pub(crate) const fn patience(engine: EngineKind) -> Duration {
    match engine {
        EngineKind::Local => Duration::ZERO,
        EngineKind::Kubernetes => Duration::from_secs(5),
    }
}

/// Members that were there when the commands were let go and are not seen now, each with since when.
pub(crate) fn missing(
    plan: &Plan,
    status: &Status,
    sight: &Sight<'_>,
    now: Time,
) -> BTreeMap<Member, Time> {
    if status.stage != Stage::Running {
        return BTreeMap::new();
    }
    let unseen = |host: &&Host| {
        was_released(status, host.member)
            && !status.ended.contains_key(&host.member)
            && !sight.current.contains_key(&host.member)
    };
    plan.hosts
        .iter()
        .filter(unseen)
        .map(|host| {
            let since = status.missing.get(&host.member).copied().unwrap_or(now);
            (host.member, since)
        })
        .collect()
}

/// Hosts that a command was let go for and that are not up yet.
pub(crate) fn still_coming<'plan>(
    plan: &'plan Plan,
    status: &Status,
    sight: &Sight<'_>,
) -> impl Iterator<Item = &'plan Host> {
    plan.hosts
        .iter()
        .filter(|host| sight.state(host).is_some_and(comes) && was_released(status, host.member))
}

/// Members that are lost, each with how it ended.
pub(crate) fn lost(
    plan: &Plan,
    status: &Status,
    sight: &Sight<'_>,
    now: Time,
) -> BTreeMap<Member, Ended> {
    let held = status.stage == Stage::Starting;
    let only_hosts = |host: &&Host| held || !host.runs.runs_command();
    let ended =
        plan.hosts.iter().filter(only_hosts).filter_map(|host| match sight.state(host)? {
            SeenState::Ended(ended) => Some((host.member, ended.clone())),
            SeenState::Coming(_)
            | SeenState::Stuck(_)
            | SeenState::NoPlace(_)
            | SeenState::NoImage(_)
            | SeenState::Placed(_)
            | SeenState::Up
            | SeenState::Running { .. } => None,
        });
    let patience = patience(plan.facts.engine);
    let vanished = status.missing.iter().filter(|(_, since)| now.since(**since) >= patience);
    ended.chain(vanished.map(|(member, _)| (*member, vanished_at(now)))).collect()
}

/// Whether the member was there when the commands were let go.
pub(crate) fn was_released(status: &Status, member: Member) -> bool {
    status.released.get(member.group as usize).is_some_and(|count| member.index < *count)
}

const fn vanished_at(at: Time) -> Ended {
    Ended {
        started: None,
        at,
        code: 137,
        cause: Cause::Deleted,
        rank: None,
        last_lines: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LAUNCHER, OTHER_WORKER, WORKER, ended, plan, seen};

    const UP: SeenState = SeenState::Up;

    #[test]
    fn a_host_of_ranks_that_ended_is_lost_and_a_command_that_ended_is_not() {
        let plan = plan(EngineKind::Local, |_| {});
        let gone = SeenState::Ended(ended(1, 1));
        let observed = seen(&[(LAUNCHER, gone.clone()), (WORKER, gone), (OTHER_WORKER, UP)]);
        let at = |stage| {
            let status = Status { stage, ..Status::default() };
            let sight = Sight::of(&plan, &status, &observed);
            Vec::from_iter(lost(&plan, &status, &sight, Time(2)).into_keys())
        };
        assert_eq!(at(Stage::Running), [WORKER]);
        // Before it was let go a command cannot end: its host is lost.
        assert_eq!(at(Stage::Starting), [LAUNCHER, WORKER]);
    }

    #[test]
    fn a_member_that_is_not_seen_is_lost_only_after_a_while() {
        let plan = plan(EngineKind::Kubernetes, |_| {});
        let mut status =
            Status { stage: Stage::Running, released: vec![1, 2], ..Status::default() };
        let observed = seen(&[(LAUNCHER, UP), (WORKER, UP)]);
        let sight = Sight::of(&plan, &status, &observed);
        status.missing = missing(&plan, &status, &sight, Time(1_000));
        assert_eq!(status.missing, [(OTHER_WORKER, Time(1_000))].into());
        assert!(lost(&plan, &status, &sight, Time(5_999)).is_empty());
        assert!(lost(&plan, &status, &sight, Time(6_000)).contains_key(&OTHER_WORKER));
    }

    #[test]
    fn a_member_that_joins_later_is_not_missing() {
        let plan = plan(EngineKind::Kubernetes, |_| {});
        let status = Status { stage: Stage::Running, released: vec![1, 1], ..Status::default() };
        let observed = seen(&[(LAUNCHER, UP), (WORKER, UP)]);
        let sight = Sight::of(&plan, &status, &observed);
        assert_eq!(missing(&plan, &status, &sight, Time(0)), [].into());
    }
}
