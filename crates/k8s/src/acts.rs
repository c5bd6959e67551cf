//! From what is wanted to single acts. Pure: what there is goes in, what is to be done comes out.

mod joined;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use unisono_job::{CleanUp, Dialect};
use unisono_plan::bind::Addresses;
use unisono_plan::{Host, Incarnation, Member, Plan, Seen, SeenState, Stage, Status, Want, Wanted};

use crate::children::{Children, STATEFUL_SET};
use crate::marks;
use crate::observe::{is_beyond_reach, no_image, released, runs_on};
use crate::render;
use crate::slim::Pod;
use crate::status::merge_patch;
use crate::writes::{Haste, Selected};

/// Everything that is to be done in one tick.
#[derive(Default)]
pub(crate) struct Acts {
    /// Pods to be deleted by one request, and what selects them.
    pub(crate) delete_all: Option<(Selected, Vec<Arc<Pod>>)>,
    /// Pods to be deleted one by one.
    pub(crate) delete: Vec<(Arc<Pod>, Haste)>,
    /// The StatefulSets, by name and uid, whose pods are to go: it would make them again.
    pub(crate) drop_sets: BTreeMap<String, String>,
    /// Pods to be stopped and kept, for their logs.
    pub(crate) stop: Vec<Arc<Pod>>,
    /// Pods that end by themselves once they are told how the job ended.
    pub(crate) end: Vec<Arc<Pod>>,
    /// Members whose pods are to be made.
    pub(crate) create: Vec<Member>,
    /// Pods whose command is to be let go, or whose host table has changed.
    pub(crate) release: Vec<(Incarnation, Arc<Pod>)>,
    /// Whether what the job shares must be there, because pods of it are made.
    pub(crate) share: bool,
    /// Whether the files that name all hosts may have changed.
    pub(crate) refresh: bool,
    /// The launcher Job that is to go.
    pub(crate) drop_job: Option<(String, Option<String>)>,
    /// Changes of the launcher Job's status.
    pub(crate) job_status: Option<(String, Value)>,
    /// Whether the PodGroup is to go.
    pub(crate) drop_pod_group: bool,
}

/// What acts follow from, beside what is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Known<'tick> {
    /// The status that was read.
    pub(crate) prior: &'tick Status,
    /// The status that holds now.
    pub(crate) status: &'tick Status,
    /// What exists.
    pub(crate) children: &'tick Children,
    /// How it was understood.
    pub(crate) seen: &'tick [Seen],
    /// Whether what followed from the status that was read is known to have been done.
    pub(crate) is_settled: bool,
}

/// What is to be done for the pods.
pub(crate) fn acts(plan: &Plan, want: &Want, known: &Known<'_>) -> Acts {
    let Known { prior, status, children, seen, is_settled } = *known;
    let found = children.incarnations(plan);
    let states: BTreeMap<Incarnation, &SeenState> =
        seen.iter().map(|seen| (seen.incarnation, &seen.state)).collect();
    let mut acts = Acts::default();
    for incarnation in &want.remove {
        if let Some(pod) = found.get(incarnation) {
            acts.refresh |= plan.host(incarnation.member).is_none() && !pod.is_going();
            acts.remove(pod);
        }
    }
    for (member, wanted) in &want.members {
        let Some(host) = plan.host(*member) else { continue };
        let place = in_place(host, &found, &states);
        match wanted {
            Wanted::Absent => place.iter().for_each(|(_, pod)| acts.remove(pod)),
            Wanted::Held => {
                let newest = Children::current(&found, *member).map(|(it, _)| it.epoch);
                if place.is_none() && newest.is_none_or(|epoch| epoch < want.epoch) {
                    acts.create.push(*member);
                }
            }
            Wanted::Running => {
                let waits = host.runs.runs_command() || plan.may_launch(*member);
                if let Some((incarnation, pod)) = place.filter(|_| waits) {
                    acts.release.push((incarnation, Arc::clone(pod)));
                }
            }
            Wanted::Stopping { .. } if host.runs.runs_command() => {
                place.iter().for_each(|(_, pod)| acts.halt(pod));
            }
            Wanted::Stopping { .. } => place.iter().for_each(|(_, pod)| acts.tell_end(pod)),
        }
    }
    // What is being deleted on a node that does not answer would stay for ever, and has no log that anybody could read.
    let unreachable = children.pods.iter().filter(|pod| is_beyond_reach(pod));
    let unknown: Vec<_> = unreachable
        .filter(|pod| !acts.delete.iter().any(|(known, _)| Arc::ptr_eq(known, pod)))
        .cloned()
        .collect();
    acts.delete.extend(unknown.into_iter().map(|pod| (pod, Haste::AtOnce)));
    acts.end_what_lingers(children, status);
    // Pods of another operator use nothing of what ours need.
    let first = found.iter().all(|(it, pod)| is_over(*it, &states) || pod.is_adopted());
    acts.share = !acts.create.is_empty() && first;
    acts.refresh |= !acts.create.is_empty() && !first;
    acts.about_the_job(plan, status, children);
    acts.drop_pod_group = pod_group_goes(plan, status)
        && (!is_settled
            || prior.stage != status.stage
            || !acts.delete.is_empty()
            || !acts.stop.is_empty());
    if status.is_at_rest() {
        acts.join_deletions(children);
    }
    acts
}

impl Acts {
    fn remove(&mut self, pod: &Arc<Pod>) {
        if let Some(set) = pod.owner(STATEFUL_SET) {
            self.drop_sets.insert(set.name.clone(), set.uid.clone());
            return;
        }
        match (pod.is_going(), is_beyond_reach(pod)) {
            (true, false) => {}
            (_, true) => self.delete.push((Arc::clone(pod), Haste::AtOnce)),
            (false, false) => self.delete.push((Arc::clone(pod), Haste::Usual)),
        }
    }

    /// Stops a pod whose log is worth keeping. One that no node has yet has no log, and nobody there to stop it.
    fn halt(&mut self, pod: &Arc<Pod>) {
        if pod.spec.node_name.is_none() {
            self.remove(pod);
        } else if pod.spec.active_deadline_seconds != Some(1) {
            self.stop.push(Arc::clone(pod));
        }
    }

    /// Tells a pod that hosts ranks how the job ended; it ends by itself, and stays with its log.
    fn tell_end(&mut self, pod: &Arc<Pod>) {
        if pod.spec.node_name.is_none() {
            self.remove(pod);
        } else if pod.annotation(marks::END).is_none() && !pod.is_going() {
            self.end.push(Arc::clone(pod));
        }
    }

    /// Stops pods that count as ended and that nobody ends, and those of a job that has ended which would go on asking for
    /// their image. A pod that another operator made is left to its own controller, which would start it again.
    fn end_what_lingers(&mut self, children: &Children, status: &Status) {
        let lingers = |pod: &&Arc<Pod>| {
            let ended = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
            let asked = pod.is_going() || pod.spec.active_deadline_seconds == Some(1);
            let is_in_vain = || status.is_terminal() && no_image(pod).is_some();
            !ended && !asked && !pod.is_adopted() && (runs_on(pod) || is_in_vain())
        };
        let is_known = |pod: &&Arc<Pod>| {
            let deleted = self.delete.iter().map(|(pod, _)| pod);
            deleted.chain(&self.stop).any(|known| Arc::ptr_eq(known, pod))
        };
        let pods = children.pods.iter().filter(lingers).filter(|pod| !is_known(pod));
        let unknown: Vec<_> = pods.cloned().collect();
        self.stop.extend(unknown);
    }

    /// Makes one request of the deletions of workers, where one can mean exactly those. To be called when no pod is wanted
    /// any more: what it selects beside them is none that anybody needs.
    fn join_deletions(&mut self, children: &Children) {
        let is_usual = |(pod, haste): &(Arc<Pod>, Haste)| {
            joined::is_worker(pod) && matches!(haste, Haste::Usual)
        };
        let workers: Vec<Arc<Pod>> =
            self.delete.iter().filter(|it| is_usual(it)).map(|(pod, _)| Arc::clone(pod)).collect();
        if let Some(selected) = joined::selection(&workers, &children.pods) {
            self.delete_all = Some((selected, workers));
            self.delete.retain(|it| !is_usual(it));
        }
    }

    fn about_the_job(&mut self, plan: &Plan, status: &Status, children: &Children) {
        let Some(job) = children.launcher_job(plan) else { return };
        let name = job.metadata.name.clone().unwrap_or_default();
        if status.stage == Stage::Suspended {
            self.drop_job = Some((name, job.metadata.uid.clone()));
            return;
        }
        if !job.is_ours() {
            return;
        }
        let map = |status| match serde_json::to_value(status) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let changes = merge_patch(&map(&job.status), &map(&render::job_status(plan, status)));
        if !changes.is_empty() {
            self.job_status = Some((name, Value::Object(changes)));
        }
    }
}

/// The pod that holds a member's place. A launch that has ended has a name of its own and holds none.
fn in_place<'found>(
    host: &Host,
    found: &BTreeMap<Incarnation, &'found Arc<Pod>>,
    states: &BTreeMap<Incarnation, &SeenState>,
) -> Option<(Incarnation, &'found Arc<Pod>)> {
    Children::current(found, host.member)
        .filter(|(it, _)| !(host.runs.launches() && is_over(*it, states)))
}

fn is_over(incarnation: Incarnation, states: &BTreeMap<Incarnation, &SeenState>) -> bool {
    matches!(states.get(&incarnation), Some(SeenState::Ended(_)))
}

/// Where every host of ranks is, as far as it is known.
pub(crate) fn addresses(plan: &Plan, children: &Children) -> Addresses {
    let found = children.incarnations(plan);
    plan.hosts
        .iter()
        .filter_map(|host| {
            let (_, pod) = Children::current(&found, host.member)?;
            Some((host.member, pod.status.pod_ip.as_ref()?.parse().ok()?))
        })
        .collect()
}

/// The annotations that let a pod's command go; none when it has them.
pub(crate) fn release(
    pod: &Pod,
    table: &str,
    digest: &str,
    large: bool,
    now: u64,
) -> Option<Value> {
    let same = pod.annotation(marks::TABLE_DIGEST) == Some(digest);
    if same && released(pod).is_some() {
        return None;
    }
    let at = released(pod).map_or(now, |time| time.0);
    let mut annotations = Map::new();
    if !large {
        annotations.insert(marks::TABLE.to_owned(), Value::from(table));
    }
    annotations.insert(marks::TABLE_DIGEST.to_owned(), Value::from(digest));
    annotations.insert(marks::RELEASED.to_owned(), Value::from(at.to_string()));
    Some(serde_json::json!({"metadata": {"annotations": annotations}}))
}

/// Whether the PodGroup is not needed any more. It goes with the workers, so where they stay it stays.
fn pod_group_goes(plan: &Plan, status: &Status) -> bool {
    match status.stage {
        Stage::Suspended => true,
        Stage::Ended(_) => {
            plan.job.policies.clean_up != CleanUp::None
                || plan.job.dialect == Dialect::KubeflowV1alpha2
        }
        Stage::New | Stage::Queued | Stage::Starting | Stage::Running => false,
    }
}

#[cfg(test)]
mod tests;
