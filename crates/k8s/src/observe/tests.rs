//! One pod in, one state out: every way in which a member comes, runs and ends.

use std::sync::Arc;

use serde_json::{Value, json};
use unisono_plan::{Cause, Ended, Incarnation, Member, SeenState, Time};

use super::observe;
use crate::children::Children;
use crate::object::JobObject;
use crate::render::fixtures::{JOBS, plan};
use crate::slim::{Job, Pod};

const LAUNCHER: Member = Member { group: 0, index: 0 };
const WORKER: Member = Member { group: 1, index: 0 };

/// 12:00:00 on the day of all tests, in milliseconds.
const NOON: u64 = 1_767_268_800_000;

fn object() -> JobObject {
    let metadata = json!({"name": "pi", "namespace": "lab", "uid": "1"});
    JobObject::new(json!({"metadata": metadata})).unwrap()
}

/// What is seen of a pod of this member with this status.
fn seen(member: Member, annotations: &Value, extra: &Value, status: &Value) -> SeenState {
    let mut annotations = annotations.clone();
    annotations["kubectl.kubernetes.io/default-container"] = json!("main");
    let mut pod = json!({
        "metadata": {
            "name": "a",
            "labels": {"unisono.dev/member": member.to_string(), "unisono.dev/epoch": "4"},
            "annotations": annotations,
        },
        "spec": {"nodeName": "node-1"},
        "status": status,
    });
    if let (Some(metadata), Some(extra)) = (pod["metadata"].as_object_mut(), extra.as_object()) {
        metadata.extend(extra.clone());
    }
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let children = Children { pods: vec![Arc::new(pod)], ..Children::default() };
    let observed = observe(&plan(JOBS[3].1), &object(), &children);
    assert_eq!(observed.seen[0].incarnation, Incarnation { member, epoch: 4 });
    observed.seen[0].state.clone()
}

fn main_is(state: &Value) -> Value {
    json!({"phase": "Running", "containerStatuses": [
        {"name": "side", "state": {"running": {}}},
        {"name": "main", "state": state},
    ]})
}

fn terminated(code: i32, reason: &str) -> Value {
    json!({"terminated": {
        "exitCode": code,
        "reason": reason,
        "message": "one\ntwo\n",
        "startedAt": "2026-01-01T12:00:00Z",
        "finishedAt": "2026-01-01T12:00:09Z",
    }})
}

fn ended(state: SeenState) -> Ended {
    match state {
        SeenState::Ended(ended) => ended,
        other => panic!("not ended: {other:?}"),
    }
}

fn cause(state: SeenState) -> Cause {
    ended(state).cause
}

const NOTHING: Value = Value::Null;

fn none() -> Value {
    json!({})
}

#[test]
fn a_container_that_runs_is_up_and_its_command_runs_once_it_was_let_go() {
    let running = main_is(&json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}}));
    assert_eq!(seen(WORKER, &none(), &NOTHING, &running), SeenState::Up);
    assert_eq!(seen(LAUNCHER, &none(), &NOTHING, &running), SeenState::Up);
    let released = json!({"unisono.dev/released": (NOON + 1_500).to_string()});
    let since = Time(NOON + 1_500);
    assert_eq!(seen(LAUNCHER, &released, &NOTHING, &running), SeenState::Running { since });
}

#[test]
fn the_main_containers_end_is_the_end_whatever_runs_beside_it() {
    let over = ended(seen(LAUNCHER, &none(), &NOTHING, &main_is(&terminated(3, "Error"))));
    assert_eq!((over.code, over.cause, over.at), (3, Cause::Exited, Time(NOON + 9_000)));
    assert_eq!(over.last_lines, ["one", "two"]);
    // What ran beside it is stopped by a deadline, which is not how the command ended.
    let stopped = |code| {
        let mut status = main_is(&terminated(code, "Error"));
        status["containerStatuses"][0]["state"] = terminated(137, "Error");
        status["phase"] = json!("Failed");
        status["reason"] = json!("DeadlineExceeded");
        ended(seen(LAUNCHER, &none(), &NOTHING, &status))
    };
    assert!(stopped(0).succeeded());
    assert_eq!((stopped(3).code, stopped(3).cause), (3, Cause::Exited));
}

#[test]
fn a_command_shorter_than_a_second_does_not_end_before_it_began() {
    let late = json!({"unisono.dev/released": (NOON + 9_700).to_string()});
    let over = ended(seen(LAUNCHER, &late, &NOTHING, &main_is(&terminated(0, "Completed"))));
    assert_eq!((over.started, over.at), (Some(Time(NOON + 9_700)), Time(NOON + 9_700)));
    assert!(over.succeeded());
}

#[test]
fn each_cause_is_told_from_the_others() {
    let disrupted = |reason: &str| {
        let mut status = main_is(&terminated(137, "Error"));
        status["conditions"] =
            json!([{"type": "DisruptionTarget", "status": "True", "reason": reason}]);
        cause(seen(WORKER, &none(), &NOTHING, &status))
    };
    assert_eq!(disrupted("PreemptionByScheduler"), Cause::Preempted);
    assert_eq!(disrupted("EvictionByEvictionAPI"), Cause::Evicted);
    assert_eq!(disrupted("TerminationByKubelet"), Cause::Evicted);
    assert_eq!(disrupted("DeletionByTaintManager"), Cause::NodeLost);
    assert_eq!(disrupted("DeletionByPodGC"), Cause::NodeLost);

    let by = |code, reason: &str| {
        cause(seen(WORKER, &none(), &NOTHING, &main_is(&terminated(code, reason))))
    };
    assert_eq!(by(137, "OOMKilled"), Cause::OutOfMemory);
    assert_eq!(by(128, "StartError"), Cause::CannotStart);
    assert_eq!(by(137, "ContainerStatusUnknown"), Cause::NodeLost);
    assert_eq!(by(1, "Error"), Cause::Exited);

    let failed = |reason: &str| {
        let status = json!({"phase": "Failed", "reason": reason, "message": "no room"});
        let over = ended(seen(WORKER, &none(), &NOTHING, &status));
        assert_eq!(over.last_lines, ["no room"]);
        over.cause
    };
    assert_eq!(failed("Evicted"), Cause::Evicted);
    assert_eq!(failed("Preempting"), Cause::Preempted);
    assert_eq!(failed("OutOfcpu"), Cause::Evicted);
    assert_eq!(failed("NodeLost"), Cause::NodeLost);
}

#[test]
fn a_pod_that_somebody_deletes_goes_on_until_its_container_has_ended() {
    let going = json!({"deletionTimestamp": "2026-01-01T12:00:30Z"});
    let running = main_is(&json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}}));
    assert_eq!(seen(WORKER, &none(), &going, &running), SeenState::Up);
    // A host of ranks ends well when it is asked to: that somebody asked is what counts.
    let over = main_is(&terminated(0, "Completed"));
    assert_eq!(cause(seen(WORKER, &none(), &going, &over)), Cause::Deleted);
    assert_eq!(
        cause(seen(LAUNCHER, &none(), &going, &main_is(&terminated(143, "Error")))),
        Cause::Deleted
    );
    // A launch that ended well is a success, also when its pod is cleared away in the same moment.
    assert!(ended(seen(LAUNCHER, &none(), &going, &over)).succeeded());
}

#[test]
fn a_pod_on_a_node_that_does_not_answer_is_lost_although_it_seems_to_run() {
    let mut running = main_is(&json!({"running": {}}));
    running["conditions"] = json!([
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
        {"type": "Ready", "status": "False"},
    ]);
    let going = json!({"deletionTimestamp": "2026-01-01T12:00:30Z"});
    assert_eq!(cause(seen(WORKER, &none(), &going, &running)), Cause::NodeLost);
    assert_eq!(seen(WORKER, &none(), &NOTHING, &running), SeenState::Up);
}

#[test]
fn an_image_that_cannot_be_had_is_waited_for_since_its_container_was_to_start() {
    let waits = |reason: &str, more: &Value| {
        let waiting = json!({"waiting": {"reason": reason, "message": "because"}});
        let mut status = main_is(&waiting);
        status["phase"] = json!("Pending");
        status["startTime"] = json!("2026-01-01T12:00:00Z");
        status["containerStatuses"][1]["image"] = json!("lab/x:1");
        status["initContainerStatuses"] = more.clone();
        match seen(WORKER, &none(), &NOTHING, &status) {
            SeenState::NoImage(waiting) => waiting,
            other => panic!("{reason}: {other:?}"),
        }
    };
    let no_init = json!([]);
    for reason in ["ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"] {
        let waiting = waits(reason, &no_init);
        assert_eq!((waiting.container.as_str(), waiting.image.as_str()), ("main", "lab/x:1"));
        assert_eq!(waiting.said.as_deref(), Some("because"));
        assert_eq!((waiting.since, waiting.is_hopeless), (Time(NOON), false), "{reason}");
    }
    for reason in ["InvalidImageName", "ErrImageNeverPull"] {
        assert!(waits(reason, &no_init).is_hopeless, "{reason}");
    }
    // It took its time before anybody asked for the image.
    let first = json!({"name": "fetch", "state": terminated(0, "Completed")});
    assert_eq!(waits("ErrImagePull", &json!([first])).since, Time(NOON + 9_000));
}

#[test]
fn what_may_still_start_says_why_it_does_not() {
    let waits = |reason: &str| {
        let waiting = json!({"waiting": {"reason": reason, "message": "because"}});
        let mut status = main_is(&waiting);
        status["phase"] = json!("Pending");
        seen(WORKER, &none(), &NOTHING, &status)
    };
    let stuck = |text: &str| SeenState::Stuck(text.to_owned());
    assert_eq!(
        waits("CreateContainerConfigError"),
        stuck("main waits, CreateContainerConfigError: because")
    );
    let condition = json!([{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/2 nodes are available",
    }]);
    let status = json!({"phase": "Pending", "conditions": condition});
    assert_eq!(
        seen(WORKER, &none(), &NOTHING, &status),
        SeenState::NoPlace("it cannot be scheduled: 0/2 nodes are available".to_owned())
    );
}

#[test]
fn a_pod_that_has_its_address_and_only_has_to_start_has_its_place() {
    let mut status = main_is(&json!({"waiting": {"reason": "PodInitializing"}}));
    status["phase"] = json!("Pending");
    let starts = || "its containers are being started".to_owned();
    assert_eq!(seen(WORKER, &none(), &NOTHING, &status), SeenState::Coming(starts()));
    status["podIP"] = json!("10.0.0.9");
    assert_eq!(seen(WORKER, &none(), &NOTHING, &status), SeenState::Placed(starts()));
    let mut unplaced = status.clone();
    unplaced["podIP"] = Value::Null;
    let launcher = seen(LAUNCHER, &none(), &NOTHING, &unplaced);
    assert_eq!(launcher, SeenState::Placed(starts()), "nobody asks for a launcher's address");
    // What is in its way may last: nobody is let go on the strength of it.
    status["startTime"] = json!("2026-01-01T12:00:00Z");
    status["containerStatuses"][1]["state"]["waiting"]["reason"] = json!("ErrImagePull");
    assert!(matches!(seen(WORKER, &none(), &NOTHING, &status), SeenState::NoImage(_)));
}

#[test]
fn an_init_container_that_fails_ends_the_pod_with_its_code_and_words() {
    let failed =
        json!({"name": "fetch", "state": {"terminated": {"exitCode": 9, "message": "no route"}}});
    let status = json!({"phase": "Failed", "initContainerStatuses": [failed]});
    let over = ended(seen(WORKER, &none(), &NOTHING, &status));
    assert_eq!((over.code, over.cause), (9, Cause::CannotStart));
    assert_eq!(over.last_lines, ["no route"]);
}

#[test]
fn a_launcher_that_waits_in_its_init_container_is_up() {
    let waits = json!({"name": "unisono-ready", "state": {"running": {}}});
    let status = json!({"phase": "Pending", "initContainerStatuses": [waits]});
    assert_eq!(seen(LAUNCHER, &none(), &NOTHING, &status), SeenState::Up);
}

#[test]
fn a_job_that_is_in_its_own_way_is_told_so() {
    let pod = |member: Member, node: Option<&str>, status: &Value| {
        let labels = json!({"unisono.dev/member": member.to_string(), "unisono.dev/epoch": "0"});
        let pod = json!({"metadata": {"name": member.to_string(), "labels": labels},
            "spec": {"nodeName": node}, "status": status});
        Arc::new(serde_json::from_value::<Pod>(pod).unwrap())
    };
    let refused = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }]});
    let up = main_is(&json!({"running": {}}));
    let other = Member { group: 1, index: 1 };
    let mut plan = plan(JOBS[3].1);
    let one = unisono_job::Quantity::of(1);
    plan.job.groups[1].resources.requests.insert("cpu".to_owned(), one);
    let node = Some("node-1");
    let pods = vec![pod(LAUNCHER, None, &refused), pod(WORKER, node, &up), pod(other, node, &up)];
    let children = Children { pods, ..Children::default() };
    let told = "it cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu.; \
        pi-worker-0 and 1 more hosts of this job hold 2 CPUs";
    let seen = observe(&plan, &object(), &children).seen;
    assert_eq!(seen[0].state, SeenState::NoPlace(told.to_owned()));
}

/// A pod as another operator makes it: no mark of ours.
fn foreign_pod(name: &str, role: &str, state: &Value) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"name": name, "labels": {"training.kubeflow.org/job-role": role}},
        "status": {"phase": "Running", "podIP": "10.0.0.9",
            "containerStatuses": [{"name": "main", "state": state}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn what_another_operator_made_is_seen_as_the_members_it_is() {
    let running = json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}});
    let job = |status: &Value| -> Arc<Job> {
        let job = json!({"metadata": {"name": "pi-launcher"}, "spec": {}, "status": status});
        Arc::new(serde_json::from_value(job).unwrap())
    };
    let look = |status: &Value| {
        let pods = vec![
            foreign_pod("pi-launcher-x7k2p", "launcher", &running),
            foreign_pod("pi-worker-1", "worker", &running),
        ];
        let children = Children { pods, jobs: vec![job(status)], refused: None };
        observe(&plan(JOBS[3].1), &object(), &children).seen
    };
    let seen = look(&json!({"active": 1, "startTime": "2026-01-01T12:00:00Z"}));
    assert_eq!(seen[0].incarnation, Incarnation { member: LAUNCHER, epoch: 0 });
    assert_eq!(seen[0].state, SeenState::Running { since: Time(NOON) });
    let second = Member { group: 1, index: 1 };
    assert_eq!(seen[1].incarnation, Incarnation { member: second, epoch: 0 });
    assert_eq!(seen[1].state, SeenState::Up);
    let complete = json!({
        "completionTime": "2026-01-01T12:00:05Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    });
    let over = ended(look(&complete)[0].state.clone());
    assert_eq!((over.code, over.at), (0, Time(NOON + 5_000)));
}
