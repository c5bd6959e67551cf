//! What is there and what is wanted go in, acts come out.

use std::sync::Arc;

use serde_json::{Value, json};
use unisono_plan::{
    End, EndReason, Incarnation, Member, Plan, Stage, Status, Time, Verdict, Want, Wanted,
};

use super::{Acts, Known, acts, release};
use crate::children::Children;
use crate::object::JobObject;
use crate::observe::observe;
use crate::render::fixtures::{JOBS, plan};
use crate::slim::{Job, Pod};
use crate::writes::Haste;

const LAUNCHER: Member = Member { group: 0, index: 0 };
const WORKER: Member = Member { group: 1, index: 0 };

fn pod(member: Member, epoch: u32, change: impl FnOnce(&mut Value)) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {
            "name": format!("{member}-{epoch}"),
            "uid": format!("{member}-{epoch}"),
            "labels": {"unisono.dev/member": member.to_string(), "unisono.dev/epoch": epoch.to_string()},
        },
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]},
    });
    change(&mut pod);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn over(pod: &mut Value) {
    pod["status"] = json!({"phase": "Failed", "containerStatuses": [
        {"name": "main", "state": {"terminated": {"exitCode": 1}}}]});
}

fn going(pod: &mut Value) {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
}

/// On a node that does not answer.
fn lost(pod: &mut Value) {
    going(pod);
    pod["status"]["conditions"] = json!([
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
        {"type": "Ready", "status": "False"},
    ]);
}

fn to_do(plan: &Plan, pods: Vec<Arc<Pod>>, status: &Status, want: &Want) -> Acts {
    let children = Children { pods, ..Children::default() };
    let metadata = json!({"name": "pi", "namespace": "lab", "uid": "1"});
    let object = JobObject::new(json!({"metadata": metadata})).unwrap();
    let seen = observe(plan, &object, &children).seen;
    let known = Known { prior: status, status, children: &children, seen: &seen, is_settled: true };
    acts(plan, want, &known)
}

fn want(epoch: u32, members: &[(Member, Wanted)]) -> Want {
    Want { epoch, members: members.iter().copied().collect(), ..Want::default() }
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.name()).collect()
}

#[test]
fn what_is_missing_is_made_after_what_it_shares() {
    let held = want(0, &[(LAUNCHER, Wanted::Held), (WORKER, Wanted::Held)]);
    let acts = to_do(&plan(JOBS[3].1), Vec::new(), &Status::default(), &held);
    assert_eq!(
        (acts.create.as_slice(), acts.share, acts.refresh),
        (&[LAUNCHER, WORKER][..], true, false)
    );
    let acts = to_do(&plan(JOBS[3].1), vec![pod(WORKER, 0, |_| {})], &Status::default(), &held);
    assert_eq!((acts.create.as_slice(), acts.share, acts.refresh), (&[LAUNCHER][..], false, true));
}

#[test]
fn a_launch_that_has_ended_is_kept_and_holds_no_place() {
    let old = vec![pod(LAUNCHER, 0, over)];
    let again = want(1, &[(LAUNCHER, Wanted::Held)]);
    let acts = to_do(&plan(JOBS[3].1), old.clone(), &Status::default(), &again);
    // Nothing of the job is alive: what is shared may have gone, too.
    assert_eq!((acts.create.as_slice(), acts.delete.len(), acts.share), (&[LAUNCHER][..], 0, true));
    let same = want(0, &[(LAUNCHER, Wanted::Held)]);
    assert!(to_do(&plan(JOBS[3].1), old.clone(), &Status::default(), &same).create.is_empty());
    let absent = want(1, &[(LAUNCHER, Wanted::Absent)]);
    assert!(to_do(&plan(JOBS[3].1), old, &Status::default(), &absent).delete.is_empty());
}

#[test]
fn a_pod_is_deleted_once_and_by_force_only_where_nobody_answers() {
    let stale = Want { remove: vec![Incarnation { member: WORKER, epoch: 0 }], ..want(1, &[]) };
    let deletions = |change: fn(&mut Value)| {
        to_do(&plan(JOBS[3].1), vec![pod(WORKER, 0, change)], &Status::default(), &stale).delete
    };
    assert!(matches!(deletions(|_| {}).as_slice(), [(_, Haste::Usual)]));
    assert!(deletions(going).is_empty());
    assert!(matches!(deletions(lost).as_slice(), [(_, Haste::AtOnce)]));
    // Even a launch that has ended: its log cannot be read any more.
    let launch = vec![pod(LAUNCHER, 0, lost)];
    let acts = to_do(&plan(JOBS[3].1), launch, &Status::default(), &want(1, &[]));
    assert!(matches!(acts.delete.as_slice(), [(_, Haste::AtOnce)]));
}

#[test]
fn a_command_that_must_stop_keeps_its_pod_unless_no_node_has_it() {
    let stopping = want(0, &[(LAUNCHER, Wanted::Stopping { until: Time(9) })]);
    let acts = |change: fn(&mut Value)| {
        to_do(&plan(JOBS[3].1), vec![pod(LAUNCHER, 0, change)], &Status::default(), &stopping)
    };
    assert_eq!(names(&acts(|_| {}).stop), ["0.0-0"]);
    let asked = acts(|pod| pod["spec"]["activeDeadlineSeconds"] = json!(1));
    assert!(asked.stop.is_empty() && asked.delete.is_empty());
    let nowhere = acts(|pod| {
        pod["spec"] = json!({});
        pod["status"] = json!({"phase": "Pending"});
    });
    assert!(nowhere.stop.is_empty() && nowhere.delete.len() == 1);
}

#[test]
fn a_pod_that_only_hosts_ranks_is_told_once_how_the_job_ended() {
    let member = Member { group: 0, index: 1 };
    let stopping = want(0, &[(member, Wanted::Stopping { until: Time(9) })]);
    let acts = |change: fn(&mut Value)| {
        to_do(&plan(JOBS[10].1), vec![pod(member, 0, change)], &Status::default(), &stopping)
    };
    let first = acts(|_| {});
    assert_eq!((names(&first.end), first.stop.len()), (vec!["0.1-0"], 0));
    let told = acts(|pod| pod["metadata"]["annotations"] = json!({"unisono.dev/end": "0"}));
    assert!(told.end.is_empty() && told.stop.is_empty() && told.delete.is_empty());
}

#[test]
fn a_pod_that_waits_for_its_image_is_stopped_when_its_job_has_ended() {
    let stopped = |stage| {
        let waits = pod(WORKER, 0, |pod| {
            pod["status"] = json!({"phase": "Pending", "startTime": "2026-01-01T12:00:00Z",
                "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]});
        });
        let status = Status { stage, ..Status::default() };
        let acts = to_do(&plan(JOBS[3].1), vec![waits], &status, &want(0, &[]));
        names(&acts.stop).join(" ")
    };
    let (verdict, reason) = (Verdict::Failed, EndReason::ImageUnavailable);
    let end = End { verdict, reason, by: None, code: 125, cause: None };
    assert_eq!(stopped(Stage::Ended(end)), "1.0-0");
    assert_eq!(stopped(Stage::Starting), "", "it may still come");
}

#[test]
fn what_runs_on_beside_a_main_container_that_has_ended_is_stopped_once() {
    let stopped = |change: fn(&mut Value)| {
        let pod = pod(LAUNCHER, 0, |pod| {
            pod["metadata"]["annotations"] =
                json!({"kubectl.kubernetes.io/default-container": "main"});
            pod["status"]["containerStatuses"] = json!([
                {"name": "proxy", "state": {"running": {}}},
                {"name": "main", "state": {"terminated": {"exitCode": 0}}},
            ]);
            change(pod);
        });
        let acts = to_do(&plan(JOBS[3].1), vec![pod], &Status::default(), &want(0, &[]));
        assert!(acts.delete.is_empty(), "its log stays");
        !acts.stop.is_empty()
    };
    assert!(stopped(|_| {}));
    assert!(!stopped(|pod| pod["spec"]["activeDeadlineSeconds"] = json!(1)), "it was asked");
    assert!(!stopped(going));
    assert!(!stopped(|pod| pod["status"]["phase"] = json!("Failed")));
    // The phase of an ordinary pod follows its container by itself, a moment later.
    assert!(!stopped(|pod| {
        pod["status"]["containerStatuses"] =
            json!([{"name": "main", "state": {"terminated": {"exitCode": 0}}}]);
    }));
    assert!(!stopped(|pod| {
        pod["status"]["containerStatuses"][1]["state"] = json!({"running": {}});
    }));
    // Whoever made it would start it again.
    assert!(!stopped(|pod| {
        pod["metadata"]["labels"] = json!({"training.kubeflow.org/job-role": "launcher"});
    }));
}

#[test]
fn a_launch_is_let_go_once_and_told_again_when_hosts_change() {
    let fresh = pod(LAUNCHER, 0, |_| {});
    let first = release(&fresh, "table", "d1", false, 7).unwrap();
    assert_eq!(first["metadata"]["annotations"]["unisono.dev/released"], "7");
    let told = pod(LAUNCHER, 0, |pod| {
        pod["metadata"]["annotations"] = first["metadata"]["annotations"].clone();
    });
    assert_eq!(release(&told, "table", "d1", false, 8), None);
    let again = release(&told, "longer table", "d2", false, 9).unwrap();
    assert_eq!(again["metadata"]["annotations"]["unisono.dev/released"], "7", "it began once");
    let large = release(&fresh, "table", "d1", true, 7).unwrap();
    assert_eq!(large["metadata"]["annotations"]["unisono.dev/table"], Value::Null);
}

#[test]
fn a_launcher_job_goes_while_the_job_is_suspended_and_tells_its_end() {
    let plan = plan(JOBS[3].1);
    let job: Job = serde_json::from_value(json!({
        "metadata": {"name": "pi-launcher", "uid": "7"},
        "spec": {"managedBy": "unisono.dev/operator"},
    }))
    .unwrap();
    let children = Children { jobs: vec![Arc::new(job)], ..Children::default() };
    let about = |stage| {
        let status = Status { stage, started: Some(Time(5_000)), ..Status::default() };
        let (prior, status) = (&status, &status);
        let known = Known { prior, status, children: &children, seen: &[], is_settled: true };
        acts(&plan, &want(0, &[]), &known)
    };
    let suspended = about(Stage::Suspended);
    assert_eq!(suspended.drop_job, Some(("pi-launcher".to_owned(), Some("7".to_owned()))));
    let (_, changes) = about(Stage::Running).job_status.unwrap();
    assert_eq!(changes, json!({"startTime": "1970-01-01T00:00:05Z"}));
}
