//! The status of a job object: read as a prior status, written as the version's own status with ours beside it.

use serde_json::{Map, Value};
use unisono_job::System;
use unisono_plan::conditions::{Condition, object_status};
use unisono_plan::{End, EndReason, Next, Plan, Stage, Status, Time, Verdict};

use crate::children::Children;
use crate::object::JobObject;
use crate::observe::time;

/// Where our own status stands in the object's.
const OWN: &str = "unisono";
/// Where the reasons to wait stand in ours.
const WHY: &str = "why";
/// Where the number of workers stands in ours: `kubectl get` shows it, and each version has it in a place of its own, or none.
const WORKERS: &str = "workers";

/// Fields of a status that this program writes; others are left alone.
const WRITTEN: [&str; 13] = [
    "phase",
    "groups",
    "attempt",
    "exitCode",
    "conditions",
    "replicaStatuses",
    "startTime",
    "completionTime",
    "launcherStatus",
    "workerReplicas",
    "job",
    "podGroup",
    OWN,
];

/// The status so far. An object that another operator has begun to carry out is taken over as it stands: what runs goes on.
pub fn prior(plan: &Plan, object: &JobObject, children: &Children) -> Status {
    match object.status().get(OWN) {
        // What cannot be read was written by a later version, or by somebody else: the job is looked at anew.
        Some(own) => serde_json::from_value(own.clone()).unwrap_or_default(),
        None => adopted(plan, object.status(), children),
    }
}

/// Why the job waits, as it was written down last.
pub fn told_why(object: &JobObject) -> Vec<String> {
    let why = object.status().get(OWN).and_then(|own| own.get(WHY)).and_then(Value::as_array);
    why.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// The changes, as a merge patch of the status; none when there are none.
pub(crate) fn patch(plan: &Plan, object: &JobObject, next: &Next) -> Option<Value> {
    let mut wanted = match serde_json::to_value(object_status(plan, &next.status)) {
        Ok(Value::Object(wanted)) => wanted,
        _ => Map::new(),
    };
    let mut own = serde_json::to_value(&next.status).unwrap_or_default();
    if let Some(own) = own.as_object_mut() {
        let why = next.why.iter().map(|why| Value::from(why.to_string()));
        own.insert(WHY.to_owned(), why.collect());
        if plan.told_as().system() == System::Kubeflow {
            let workers = plan.hosts.iter().filter(|host| !host.runs.launches());
            own.insert(WORKERS.to_owned(), workers.count().into());
        }
    }
    wanted.insert(OWN.to_owned(), own);
    let old = object.status().as_object().cloned().unwrap_or_default();
    let old = old.into_iter().filter(|(key, _)| WRITTEN.contains(&key.as_str())).collect();
    let changes = merge_patch(&old, &wanted);
    (!changes.is_empty()).then(|| Value::Object(changes))
}

/// What makes the old object the new one when it is merged into it.
pub(crate) fn merge_patch(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut changes = Map::new();
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        match (old.get(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let inner = merge_patch(old, new);
                if !inner.is_empty() {
                    changes.insert(key.clone(), inner.into());
                }
            }
            (Some(old), new) if old == new => {}
            // Nothing to merge with: what is none inside must not be written as such.
            (_, Value::Object(new)) => {
                changes.insert(key.clone(), merge_patch(&Map::new(), new).into());
            }
            (_, new) => {
                changes.insert(key.clone(), new.clone());
            }
        }
    }
    let gone = old.keys().filter(|key| new.get(*key).is_none_or(Value::is_null));
    changes.extend(gone.map(|key| (key.clone(), Value::Null)));
    changes
}

/// The status of a job that another operator has begun to carry out; a new job's where none has.
///
/// Its retries are that operator's: what it started is not started again by us, and a host that is lost ends the job.
fn adopted(plan: &Plan, status: &Value, children: &Children) -> Status {
    let moment = |value: Option<&Value>| value.and_then(Value::as_str).and_then(parse_time);
    let conditions: Vec<Condition> = status
        .get("conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(condition)
        .collect();
    let started = moment(status.get("startTime"));
    let completed = moment(status.get("completionTime"));
    let launcher = status.get("launcherStatus").and_then(Value::as_str);
    if conditions.is_empty() && started.is_none() && launcher.is_none() {
        return Status::default();
    }
    let find = |kind: &str| conditions.iter().find(|it| it.kind == kind && it.holds);
    let ended = |verdict, reason, code| {
        Stage::Ended(End { verdict, reason, by: plan.launch_on, code, cause: None })
    };
    let stage = if find("Succeeded").is_some() || launcher == Some("Succeeded") {
        ended(Verdict::Succeeded, EndReason::Completed, 0)
    } else if find("Failed").is_some() || launcher == Some("Failed") {
        ended(Verdict::Failed, EndReason::RetriesExhausted, 1)
    } else if find("Suspended").is_some() {
        Stage::Suspended
    } else if children.pods.is_empty() {
        // It had only been looked at: we begin where it stopped.
        Stage::Queued
    } else {
        Stage::Running
    };
    let is_over = matches!(stage, Stage::Ended(_));
    let runs = stage == Stage::Running;
    let created = find("Created").map(|it| it.changed).or(started).unwrap_or_default();
    let limit = match plan.job.policies.retry {
        unisono_job::Retry::Backoff { limit } => limit,
        unisono_job::Retry::ByClass(_) => u32::MAX,
    };
    let failed = children.jobs.iter().filter_map(|job| job.status.failed).sum();
    let running_since = conditions.iter().find(|it| it.kind == "Running").map(|it| it.changed);
    Status {
        generation: plan.generation,
        stage,
        created: Some(created),
        started: started.or(Some(created)),
        completed: completed.or_else(|| is_over.then(|| last_change(&conditions)).flatten()),
        released: if runs {
            plan.job.groups.iter().map(|it| it.replicas).collect()
        } else {
            Vec::new()
        },
        running_since: running_since.filter(|_| runs || is_over),
        counted_failures: if runs { limit } else { 0 },
        gang_restarts: if runs { plan.job.policies.gang_restarts } else { 0 },
        failed_launches: failed,
        conditions,
        ..Status::default()
    }
}

fn last_change(conditions: &[Condition]) -> Option<Time> {
    conditions.iter().map(|it| it.changed).max()
}

fn condition(value: &Value) -> Option<Condition> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let changed = parse_time(&text("lastTransitionTime")).unwrap_or_default();
    Some(Condition {
        kind: value.get("type")?.as_str()?.to_owned(),
        holds: text("status") == "True",
        reason: text("reason"),
        message: text("message"),
        updated: parse_time(&text("lastUpdateTime")).unwrap_or(changed),
        changed,
    })
}

fn parse_time(text: &str) -> Option<Time> {
    let parsed: k8s_openapi::jiff::Timestamp = text.parse().ok()?;
    Some(time(&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(parsed)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use unisono_plan::{Observed, Wanted, step};

    use super::*;
    use crate::observe::observe;
    use crate::render::fixtures::{JOBS, plan};
    use crate::slim::{Job, Pod};

    fn changes(old: &Value, new: &Value) -> Value {
        let map = |value: &Value| value.as_object().cloned().unwrap();
        Value::Object(merge_patch(&map(old), &map(new)))
    }

    #[test]
    fn a_patch_holds_what_changed_and_takes_away_what_is_gone() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1], "f": 1});
        let new = json!({"a": 1, "b": {"c": 2}, "e": [1, 2], "g": {}});
        assert_eq!(changes(&old, &new), json!({"b": {"d": null}, "e": [1, 2], "g": {}, "f": null}));
        assert_eq!(changes(&new, &new), json!({}));
    }

    #[test]
    fn what_is_none_is_not_written() {
        assert_eq!(changes(&json!({}), &json!({"a": null, "b": {"c": null}})), json!({"b": {}}));
        assert_eq!(changes(&json!({"a": 1}), &json!({"a": null})), json!({"a": null}));
    }

    fn object(status: &Value) -> JobObject {
        let metadata = json!({"name": "pi", "namespace": "lab", "uid": "1"});
        JobObject::new(json!({"metadata": metadata, "status": status})).unwrap()
    }

    fn condition_json(kind: &str, status: &str) -> Value {
        let at = "2026-01-01T12:00:00Z";
        json!({"type": kind, "status": status, "reason": format!("MPIJob{kind}"), "message": "m",
            "lastUpdateTime": at, "lastTransitionTime": at})
    }

    #[test]
    fn a_status_comes_back_as_it_was_written() {
        let plan = plan(JOBS[3].1);
        let nothing = Observed::default();
        let next = step(&plan, &Status::default(), &nothing, Time(5_000));
        let written = patch(&plan, &object(&Value::Null), &next).unwrap();
        let after = object(&written);
        assert_eq!(prior(&plan, &after, &Children::default()), next.status);
        assert!(!told_why(&after).is_empty());
        assert_eq!(written["unisono"]["workers"], 2);
        assert_eq!(patch(&plan, &after, &next), None, "a second write would change nothing");
    }

    #[test]
    fn a_status_that_nobody_can_read_is_a_new_jobs() {
        let garbled = object(&json!({"unisono": {"stage": 7}}));
        assert_eq!(prior(&plan(JOBS[3].1), &garbled, &Children::default()), Status::default());
        let untouched = object(&Value::Null);
        assert_eq!(prior(&plan(JOBS[3].1), &untouched, &Children::default()), Status::default());
    }

    #[test]
    fn a_job_that_another_operator_runs_goes_on_running() {
        let plan = plan(JOBS[3].1);
        let pod = |name: &str, role: &str| {
            let pod = json!({
                "metadata": {"name": name, "labels": {"training.kubeflow.org/job-role": role}},
                "status": {"phase": "Running", "containerStatuses": [
                    {"name": "main", "state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}}}]},
            });
            Arc::new(serde_json::from_value::<Pod>(pod).unwrap())
        };
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "pi-launcher"}, "status": {"startTime": "2026-01-01T12:00:00Z"},
        }))
        .unwrap();
        let mut children = Children {
            pods: vec![
                pod("pi-launcher-abcde", "launcher"),
                pod("pi-worker-0", "worker"),
                pod("pi-worker-1", "worker"),
            ],
            jobs: vec![Arc::new(job)],
            refused: None,
        };
        let running = object(&json!({
            "startTime": "2026-01-01T12:00:00Z",
            "conditions": [condition_json("Created", "True"), condition_json("Running", "True")],
        }));
        let before = prior(&plan, &running, &children);
        assert_eq!(before.stage, Stage::Running);
        let now = Time(1_767_268_900_000);
        let seen = observe(&plan, &running, &children);
        let next = step(&plan, &before, &seen, now);
        assert_eq!(next.status.stage, Stage::Running);
        assert!(
            next.want.remove.is_empty()
                && !next.want.members.values().any(|it| *it == Wanted::Held)
        );

        // Its launcher ends well, as its own Job says: so does the job, without a second start.
        let mut done = Job::clone(&children.jobs[0]);
        done.status.conditions =
            serde_json::from_value(json!([{"type": "Complete", "status": "True"}])).unwrap();
        children.jobs = vec![Arc::new(done)];
        let next = step(&plan, &next.status, &observe(&plan, &running, &children), now);
        assert_eq!(next.status.end().map(|end| end.verdict), Some(Verdict::Succeeded));
    }

    #[test]
    fn a_job_that_another_operator_ended_stays_ended() {
        let over = object(&json!({
            "startTime": "2026-01-01T12:00:00Z",
            "completionTime": "2026-01-01T12:00:09Z",
            "conditions": [condition_json("Created", "True"), condition_json("Failed", "True")],
        }));
        let status = prior(&plan(JOBS[3].1), &over, &Children::default());
        assert_eq!(status.end().map(|end| end.verdict), Some(Verdict::Failed));
        assert_eq!(status.completed, Some(Time(1_767_268_809_000)));
    }
}
