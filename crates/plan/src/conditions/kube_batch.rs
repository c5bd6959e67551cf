//! kube-batch's status: the Job's and the PodGroup's. Its own code never filled it.
//!
//! The PodGroup's part tells what is known of the gang without asking its scheduler: the PodGroup that one was given is
//! not read, and where none places gangs there is none.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Unplaced, holds, put};
use crate::{EndReason, GroupCounts, Plan, Stage, Status, Time, Verdict};

/// The one type of condition that a PodGroup of kube-batch's has.
const UNSCHEDULABLE: &str = "Unschedulable";

/// The status of an `MPI` object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeBatchStatus {
    /// The Job's.
    pub job: JobStatus,
    /// The PodGroup's.
    pub pod_group: GroupStatus,
    /// What else there is to know: the executor, once there is one, the objects with its files, the PodGroup, the attempt.
    pub descriptors: BTreeMap<&'static str, String>,
}

/// A batch Job's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Pods that exist and have not ended.
    pub active: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Tries that failed.
    pub failed: u32,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// `Complete` or `Failed`, once it has ended.
    pub conditions: Vec<JobCondition>,
}

/// A condition of a batch Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True`.
    pub status: &'static str,
    /// Why, as one word, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Why, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

/// A PodGroup's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStatus {
    /// `Pending`, `Running` or `Unknown`.
    pub phase: &'static str,
    /// Pods that run.
    pub running: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Tries that failed.
    pub failed: u32,
    /// `Unschedulable`, once not all pods could be placed; False when they are.
    pub conditions: Vec<GroupCondition>,
}

/// A condition of a PodGroup. kube-batch numbers its scheduling cycles in them; nobody here has any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupCondition {
    /// `Unschedulable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: &'static str,
    /// When it last changed.
    pub last_transition_time: String,
    /// `NotEnoughResources`, `NotEnoughTasks`, or `Scheduled` where it does not hold any more.
    pub reason: String,
    /// Why.
    pub message: String,
}

/// Brings the gang's condition up to date. It holds until commands are let go: all pods have their places then.
pub(super) fn update(status: &mut Status, unplaced: Option<Unplaced<'_>>, now: Time) {
    let (is_unplaced, reason, message) = match unplaced {
        Some(Unplaced::NoRoom(why)) => (true, "NotEnoughResources", why),
        Some(Unplaced::NotMade(why)) => (true, "NotEnoughTasks", why),
        None if holds(status, UNSCHEDULABLE) && !status.released.is_empty() => {
            (false, "Scheduled", "all pods have a place")
        }
        None => return,
    };
    put(status, UNSCHEDULABLE, is_unplaced, reason.to_owned(), message.to_owned(), now);
}

fn descriptors(plan: &Plan, status: &Status) -> BTreeMap<&'static str, String> {
    let executor = plan.launch_host().filter(|_| !status.released.is_empty());
    let pod_group = plan.facts.places_gangs.then(|| plan.names.pod_group());
    let all = [
        ("executor", executor.map(|host| host.name.clone())),
        ("hostfile", Some(plan.names.config_map())),
        ("data", Some(plan.names.data_config_map())),
        ("podGroup", pod_group),
        ("attempt", Some(status.attempt.to_string())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(super) fn status(plan: &Plan, status: &Status) -> KubeBatchStatus {
    let sum = |count: fn(&GroupCounts) -> u32| status.groups.iter().map(count).sum::<u32>();
    let running = sum(|it| it.active);
    let everybody = u32::try_from(plan.hosts.len()).unwrap_or(u32::MAX);
    // The other pods end with the executor, and their own ends tell nothing.
    let ended_well = status.end().is_some_and(|end| end.verdict == Verdict::Succeeded);
    let (succeeded, failed) = (if ended_well { everybody } else { 0 }, status.failed_launches);
    let enough = plan.job.policies.gang.min_members.unwrap_or(everybody);
    let phase = match status.stage {
        Stage::Running | Stage::Ended(_) => "Running",
        Stage::New | Stage::Suspended | Stage::Queued => "Pending",
        Stage::Starting if running >= enough => "Running",
        // Some run and some do not, and nobody can say whether the rest will fit.
        Stage::Starting if status.failed_launches > 0 => "Unknown",
        Stage::Starting => "Pending",
    };
    let condition = status.end().map(|end| JobCondition {
        kind: if ended_well { "Complete" } else { "Failed" },
        status: "True",
        reason: (!ended_well).then(|| end.reason.of_the_job().0),
        last_transition_time: status.completed.map(|time| time.to_string()),
        message: super::failure_sentence(plan, status).map(|why| match end.reason {
            EndReason::ImageUnavailable => format!("{why}; {}", end.reason.text()),
            _ => why,
        }),
    });
    KubeBatchStatus {
        job: JobStatus {
            active: sum(|it| it.existing),
            succeeded,
            failed,
            start_time: status.started.map(|time| time.to_string()),
            completion_time: status.completed.map(|time| time.to_string()),
            conditions: Vec::from_iter(condition),
        },
        pod_group: GroupStatus {
            phase,
            running,
            succeeded,
            failed,
            conditions: conditions(status),
        },
        descriptors: descriptors(plan, status),
    }
}

fn conditions(status: &Status) -> Vec<GroupCondition> {
    let views = super::views(status).into_iter();
    let conditions = views.map(|view| GroupCondition {
        kind: view.kind,
        status: view.status,
        last_transition_time: view.last_transition_time,
        reason: view.reason,
        message: view.message,
    });
    conditions.collect()
}

#[cfg(test)]
mod tests {
    use unisono_job::Dialect;

    use super::*;
    use crate::conditions::{ObjectStatus, object_status};
    use crate::sample::{LAUNCHER, OTHER_WORKER, WORKER, plan, seen};
    use crate::{EngineKind, Observed, SeenState, step};

    fn told(prior: &Status, observed: &Observed, now: u64) -> (Status, KubeBatchStatus) {
        let mut plan = plan(EngineKind::Kubernetes, |job| job.dialect = Dialect::KubeBatch);
        plan.facts.places_gangs = false;
        let status = step(&plan, prior, observed, Time(now)).status;
        match object_status(&plan, &status) {
            ObjectStatus::KubeBatch(view) => (status, view),
            other => panic!("{other:?}"),
        }
    }

    fn condition(view: &KubeBatchStatus) -> String {
        let say = |it: &GroupCondition| {
            format!("{} {} {}: {}", it.kind, it.status, it.reason, it.message)
        };
        view.pod_group.conditions.iter().map(say).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_gang_says_why_it_cannot_be_placed_and_when_it_is() {
        let up = SeenState::Up;
        let no_room = SeenState::NoPlace("no node has room".to_owned());
        let (first, view) = told(&Status::default(), &Observed::default(), 0);
        assert_eq!(condition(&view), "", "nothing is known to be wrong");
        let refused =
            Observed { refused: Some("exceeded quota".to_owned()), ..Observed::default() };
        let (_, view) = told(&first, &refused, 1);
        assert_eq!(condition(&view), "Unschedulable True NotEnoughTasks: exceeded quota");
        let some = seen(&[(LAUNCHER, up.clone()), (WORKER, no_room)]);
        let (waiting, view) = told(&first, &some, 1_000);
        assert_eq!(condition(&view), "Unschedulable True NotEnoughResources: no node has room");
        assert_eq!(view.pod_group.conditions[0].last_transition_time, "1970-01-01T00:00:01Z");
        let all = seen(&[(LAUNCHER, up.clone()), (WORKER, up.clone()), (OTHER_WORKER, up)]);
        let (_, view) = told(&waiting, &all, 2_000);
        assert_eq!(condition(&view), "Unschedulable False Scheduled: all pods have a place");
    }

    #[test]
    fn descriptors_name_what_belongs_to_the_job() {
        let (first, view) = told(&Status::default(), &Observed::default(), 0);
        let keys = |view: &KubeBatchStatus| Vec::from_iter(view.descriptors.keys().copied());
        assert_eq!(keys(&view), ["attempt", "data", "hostfile"], "nobody is elected, and no gang");
        let up = SeenState::Up;
        let all = seen(&[(LAUNCHER, up.clone()), (WORKER, up.clone()), (OTHER_WORKER, up)]);
        let (_, view) = told(&first, &all, 1);
        assert_eq!(view.descriptors["executor"], "sample-run-0");
        assert_eq!(view.descriptors["hostfile"], "sample-hostfile");
        assert_eq!(view.descriptors["data"], "sample-mpi-data");
        assert_eq!(view.descriptors["attempt"], "0");
    }
}
