//! Lost members: hosts of ranks that ended under a running job, hosts that ended before their command was let go, and
//! members that are not seen any more.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::step::sight::Sight;
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
            SeenState::Coming(_) | SeenState::Up | SeenState::Running { .. } => None,
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
