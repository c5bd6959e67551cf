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
