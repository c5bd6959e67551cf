//! When an attempt has ended, and how: rules over groups, `min_failed` and `min_succeeded`, each may be absent.

use std::collections::BTreeMap;

use crate::{Ended, Member, Plan};

/// How an attempt ended, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Well. Nobody decided it when everything ended and no rule fired.
    Succeeded(Option<Member>),
    /// Not well.
    Failed(Member),
}

/// The outcome of an attempt in which these commands have ended.
///
/// Ends are taken in the order in which they happened, and the first that fulfils a rule decides; of two at the same
/// moment the good one does. When every command has ended and no rule fired, the attempt succeeded, failures or not.
pub(crate) fn outcome(plan: &Plan, ended: &BTreeMap<Member, Ended>) -> Option<Outcome> {
    let mut in_order: Vec<(&Member, &Ended)> = ended.iter().collect();
    in_order.sort_by_key(|(member, ended)| (ended.at, !ended.succeeded(), **member));
    let mut counts = vec![(0_u32, 0_u32); plan.job.groups.len()];
    for (member, ended) in in_order {
        let at = member.group as usize;
        let (Some((failed, succeeded)), Some(group)) =
            (counts.get_mut(at), plan.job.groups.get(at))
        else {
            continue;
        };
        if ended.succeeded() {
            *succeeded += 1;
            if group.end.min_succeeded.is_some_and(|enough| *succeeded >= enough) {
                return Some(Outcome::Succeeded(Some(*member)));
            }
        } else {
            *failed += 1;
            if group.end.min_failed.is_some_and(|enough| *failed >= enough) {
                return Some(Outcome::Failed(*member));
            }
        }
    }
    let mut commands = plan.hosts.iter().filter(|host| host.runs.runs_command());
    commands.all(|host| ended.contains_key(&host.member)).then_some(Outcome::Succeeded(None))
}

#[cfg(test)]
mod tests {
    use unisono_job::EndRule;

    use super::*;
    use crate::EngineKind;
    use crate::sample::{LAUNCHER, WORKER, ended, own_commands, plan};

    /// The outcome for three tasks of which these have ended: index, moment, code.
    fn of_tasks(end: EndRule, ends: &[(u32, u64, i32)]) -> Option<Outcome> {
        let plan = plan(EngineKind::Local, |job| own_commands(job, 3, end));
        let ended = ends
            .iter()
            .map(|(index, at, code)| (Member { group: 0, index: *index }, ended(*at, *code)));
        outcome(&plan, &ended.collect())
    }

    fn task(index: u32) -> Member {
        Member { group: 0, index }
    }

    #[test]
    fn a_launchers_end_decides_either_way_and_a_worker_never_does() {
        let plan = plan(EngineKind::Local, |_| {});
        let of = |member, code| outcome(&plan, &[(member, ended(1, code))].into());
        assert_eq!(of(LAUNCHER, 0), Some(Outcome::Succeeded(Some(LAUNCHER))));
        assert_eq!(of(LAUNCHER, 2), Some(Outcome::Failed(LAUNCHER)));
        assert_eq!(of(WORKER, 2), None);
    }

    #[test]
    fn counts_fire_when_they_are_reached() {
        let two = EndRule { min_failed: Some(2), min_succeeded: None };
        assert_eq!(of_tasks(two, &[(0, 1, 5)]), None);
        assert_eq!(of_tasks(two, &[(0, 1, 5), (2, 2, 5)]), Some(Outcome::Failed(task(2))));
    }

    #[test]
    fn the_earlier_end_decides_and_at_the_same_moment_the_good_one() {
        let ends = [(0, 9, 0), (1, 5, 1)];
        assert_eq!(of_tasks(EndRule::FIRST, &ends), Some(Outcome::Failed(task(1))));
        let ends = [(0, 5, 1), (1, 5, 0)];
        assert_eq!(of_tasks(EndRule::FIRST, &ends), Some(Outcome::Succeeded(Some(task(1)))));
    }

    #[test]
    fn when_all_have_ended_and_nothing_fired_the_attempt_succeeded() {
        let (never, all) = (EndRule::NEVER, [(0, 1, 1), (1, 1, 0), (2, 1, 137)]);
        assert_eq!(of_tasks(never, &all), Some(Outcome::Succeeded(None)));
        assert_eq!(of_tasks(never, &all[..2]), None);
    }
}
