//! What is seen, sorted: the incarnation of each member that counts, and those that are stale.

use std::collections::BTreeMap;

use crate::{Host, Incarnation, Member, Observed, Plan, Seen, SeenState, Status};

pub(crate) struct Sight<'seen> {
    /// The incarnation of each member that counts.
    pub(crate) current: BTreeMap<Member, &'seen Seen>,
    /// Incarnations to be removed: of an earlier try, or of a member the plan does not have.
    pub(crate) stale: Vec<Incarnation>,
}

impl<'seen> Sight<'seen> {
    pub(crate) fn of(plan: &Plan, status: &Status, observed: &'seen Observed) -> Self {
        let mut sight = Self { current: BTreeMap::new(), stale: Vec::new() };
        for seen in &observed.seen {
            let member = seen.incarnation.member;
            let host = plan.host(member);
            match host {
                Some(host) if seen.incarnation.epoch >= valid_from(status, host) => {
                    sight.take(host, seen);
                }
                Some(host) if is_kept(host, seen) => {}
                Some(_) | None => sight.stale.push(seen.incarnation),
            }
        }
        sight.stale.sort_unstable();
        sight.stale.dedup();
        sight
    }

    /// Of two incarnations that both could count, the newer does.
    fn take(&mut self, host: &Host, seen: &'seen Seen) {
        let Some(other) = self.current.insert(host.member, seen) else {
            return;
        };
        let older = if other.incarnation.epoch > seen.incarnation.epoch {
            self.current.insert(host.member, other);
            seen
        } else {
            other
        };
        if older.incarnation.epoch != self.current[&host.member].incarnation.epoch
            && !is_kept(host, older)
        {
            self.stale.push(older.incarnation);
        }
    }

    pub(crate) fn state(&self, host: &Host) -> Option<&'seen SeenState> {
        self.current.get(&host.member).map(|seen| &seen.state)
    }

    /// Whether a stale incarnation is in the member's place.
    pub(crate) fn is_blocked(&self, member: Member) -> bool {
        let from = Incarnation { member, epoch: 0 };
        let at = self.stale.partition_point(|it| *it < from);
        self.stale.get(at).is_some_and(|it| it.member == member)
    }
}

/// The first epoch whose incarnation of this member counts.
fn valid_from(status: &Status, host: &Host) -> u32 {
    let replaced = status.replaced.get(&host.member).copied().unwrap_or(0);
    let launched = if host.runs.runs_command() { status.launched_epoch } else { 0 };
    status.hosts_epoch.max(replaced).max(launched)
}

/// A launch that has ended is kept for its log; a later one has a name of its own.
fn is_kept(host: &Host, seen: &Seen) -> bool {
    host.runs.launches() && matches!(seen.state, SeenState::Ended(_))
}

/// Whether the host has its place: it is up, or whoever waits for it knows where it will be.
pub(crate) const fn is_placed(state: &SeenState) -> bool {
    is_up(state) || matches!(state, SeenState::Placed(_))
}

/// Whether the host is not up yet.
pub(crate) const fn comes(state: &SeenState) -> bool {
    matches!(
        state,
        SeenState::Coming(_)
            | SeenState::Stuck(_)
            | SeenState::NoPlace(_)
            | SeenState::NoImage(_)
            | SeenState::Placed(_)
    )
}

/// Whether the host is up.
pub(crate) const fn is_up(state: &SeenState) -> bool {
    matches!(state, SeenState::Up | SeenState::Running { .. })
}

/// Whether there is anything left to stop.
pub(crate) const fn is_alive(state: &SeenState) -> bool {
    !matches!(state, SeenState::Ended(_))
}
