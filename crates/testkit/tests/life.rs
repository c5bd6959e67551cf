//! One rule of a job's life at a time, each as a small story told through the real loop.

use std::time::Duration;

use serde_json::{Value, json};
use unisono_engine::What;
use unisono_job::{CleanUp, Dialect, EndRule, Job, Retry, RetryCount};
use unisono_plan::conditions::{happenings, object_status};
use unisono_plan::{
    Cause, EndReason, Ended, EngineKind, Incarnation, Observed, Room, Seen, SeenState, Stage,
    Status, Time, Verdict, Wanted, Why,
};
use unisono_plan::{Facts, Plan, lay_out, step};
use unisono_testkit::jobs::{azure, kube_batch, kubeflow, openpai, role};
use unisono_testkit::scenario::{Disturbance, Scenario};
use unisono_testkit::simulator::{Story, run};
use unisono_testkit::world::Run;

const LINE: &[&str] = &["mpirun", "./a"];

fn runs(code: i32) -> Run {
    Run { lasts: 10_000, code }
}

fn tell(scenario: &Scenario) -> Story {
    run(scenario).unwrap_or_else(|fault| panic!("{fault}"))
}

fn kubeflow_story(script: Vec<Run>, change: impl FnOnce(&mut Job)) -> Scenario {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "job", 2, 1, LINE);
    change(&mut job);
    Scenario::quiet(job, script)
}

fn disturbed(mut scenario: Scenario, at: u64, what: Disturbance) -> Scenario {
    scenario.disturbances.push((at, what));
    scenario
}

/// Hosts stand in the order launcher, workers; the nth thing that lives is struck.
fn strike(nth: u64, cause: Cause) -> Disturbance {
    Disturbance::Strike { nth, cause }
}

fn end(story: &Story) -> (Verdict, EndReason, i32) {
    let end = story.status.end().unwrap();
    (end.verdict, end.reason, end.code)
}

fn conditions(story: &Story) -> Vec<String> {
    let say = |it: &unisono_plan::conditions::Condition| {
        format!("{} {} {}", it.kind, it.holds, it.reason)
    };
    story.status.conditions.iter().map(say).collect()
}

/// The times of a status, which differ from run to run, made plain.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                *inner =
                    if key.ends_with("Time") { json!("TIME") } else { without_times(inner.take()) };
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = without_times(item.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[test]
fn the_status_of_a_v1alpha2_job_that_went_well_is_as_its_users_know_it() {
    let launch: &[&str] = &["/bin/bash", "-c", "mpirun --allow-run-as-root python fashion.py"];
    let mut job = kubeflow(Dialect::KubeflowV1alpha2, "tensorflow-mnist", 1, 2, launch);
    job.policies.clean_up = CleanUp::Running;
    let story = tell(&Scenario::quiet(job, vec![runs(0)]));
    let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
    let condition = |kind: &str, holds: &str, message: &str| {
        json!({
            "type": kind,
            "status": holds,
            "reason": format!("MPIJob{kind}"),
            "message": format!("MPIJob default/tensorflow-mnist {message}"),
            "lastTransitionTime": "TIME",
            "lastUpdateTime": "TIME",
        })
    };
    assert_eq!(
        without_times(status),
        json!({
            "completionTime": "TIME",
            "conditions": [
                condition("Created", "True", "is created."),
                condition("Running", "False", "is running."),
                condition("Succeeded", "True", "successfully completed."),
            ],
            "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {}},
            "startTime": "TIME",
        })
    );
    let running = &story.status.conditions[1];
    assert_eq!(running.updated, running.changed);
    assert!(running.updated < story.status.conditions[2].updated);
}

#[test]
fn versions_differ_in_what_they_say_of_a_retry() {
    let told = |dialect| {
        let job = kubeflow(dialect, "job", 1, 1, LINE);
        let story = tell(&Scenario::quiet(job, vec![runs(1), runs(0)]));
        let restarted =
            story.events.iter().any(|it| matches!(it.what, What::Starting { attempt: 1, .. }));
        assert!(restarted, "{:?}", story.events);
        conditions(&story).join(", ")
    };
    let ended =
        "Created true MPIJobCreated, Running false MPIJobRunning, Succeeded true MPIJobSucceeded";
    assert_eq!(told(Dialect::KubeflowV1alpha2), ended);
    assert_eq!(told(Dialect::KubeflowV2beta1), ended);
    assert_eq!(told(Dialect::Unisono).replace("UnisonoJob", "MPIJob"), ended,);
}

#[test]
fn a_failure_says_why_in_its_versions_words() {
    let failed = |dialect| {
        let mut job = kubeflow(dialect, "job", 1, 1, LINE);
        job.policies.retry = Retry::Backoff { limit: 1 };
        let story = tell(&Scenario::quiet(job, vec![runs(3)]));
        assert_eq!(end(&story), (Verdict::Failed, EndReason::RetriesExhausted, 3));
        assert_eq!((story.status.attempt, story.status.failed_launches), (1, 2));
        let condition = story.status.conditions.last().unwrap().clone();
        (condition.reason, condition.message)
    };
    let plain = ("MPIJobFailed".to_owned(), "MPIJob default/job has failed".to_owned());
    assert_eq!(failed(Dialect::KubeflowV1alpha2), plain);
    assert_eq!(failed(Dialect::KubeflowV1), plain);
    assert_eq!(
        failed(Dialect::KubeflowV2beta1),
        (
            "BackoffLimitExceeded".to_owned(),
            "Job has reached the specified backoff limit: job-launcher ended with exit code 3"
                .to_owned()
        )
    );
}

#[test]
fn a_lost_worker_restarts_the_gang_and_counts_against_no_retry() {
    let quiet =
        kubeflow_story(vec![runs(0)], |job| job.policies.retry = Retry::Backoff { limit: 0 });
    let story = tell(&disturbed(quiet, 5_000, strike(1, Cause::Evicted)));
    assert_eq!(end(&story), (Verdict::Succeeded, EndReason::Completed, 0));
    assert_eq!((story.status.gang_restarts, story.status.counted_failures), (1, 0));
    let failure = story.status.first_failure.unwrap();
    assert_eq!(failure.sentence(), "job-worker-0 was evicted");
}

#[test]
fn a_worker_that_vanishes_is_lost_after_a_while() {
    let quiet = kubeflow_story(vec![runs(0)], |_| {});
    let story = tell(&disturbed(quiet, 5_000, strike(2, Cause::Deleted)));
    assert_eq!((story.status.gang_restarts, end(&story).0), (1, Verdict::Succeeded));
}

#[test]
fn restarts_for_lost_members_are_bounded() {
    let quiet = kubeflow_story(vec![runs(0)], |job| job.policies.gang_restarts = 1);
    let once = disturbed(quiet, 5_000, strike(1, Cause::Evicted));
    let story = tell(&disturbed(once, 12_000, strike(1, Cause::Evicted)));
    assert_eq!(end(&story), (Verdict::Failed, EndReason::LostTooOften, 137));
    let failed = story.status.conditions.last().unwrap();
    assert_eq!(
        (failed.reason.as_str(), failed.message.as_str()),
        ("MPIJobEvicted", "1/2 workers are evicted")
    );
    assert!(story.status.completed.is_some());
}

#[test]
fn a_launcher_that_fails_just_before_its_worker_is_known_to_be_lost_is_not_blamed() {
    let mut scenario = kubeflow_story(vec![Run { lasts: 4_000, code: 1 }, runs(0)], |job| {
        job.policies.retry = Retry::Backoff { limit: 0 };
    });
    let launched = tell(&kubeflow_story(vec![runs(0)], |_| {})).status.running_since.unwrap();
    let failed_at = launched.0 + 4_000 - 1_000_000;
    scenario = disturbed(scenario, failed_at + 1_000, strike(0, Cause::NodeLost));
    let story = tell(&scenario);
    assert_eq!((end(&story).0, story.status.gang_restarts), (Verdict::Succeeded, 1));
}

/// The words are the same in every version: no operator of theirs ended a job so.
#[test]
fn an_image_that_never_comes_ends_a_job_of_every_version() {
    let imageless = |mut scenario: Scenario| {
        scenario.faults.no_image = true;
        scenario.facts.image_patience = Some(Duration::from_secs(60));
        tell(&scenario)
    };
    for version in [
        Dialect::KubeflowV1alpha1,
        Dialect::KubeflowV1alpha2,
        Dialect::KubeflowV1,
        Dialect::KubeflowV2beta1,
    ] {
        let mut job = kubeflow(version, "job", 2, 1, LINE);
        job.policies.clean_up = CleanUp::Running;
        let story = imageless(Scenario::quiet(job, vec![runs(0)]));
        assert_eq!(end(&story), (Verdict::Failed, EndReason::ImageUnavailable, 125));
        assert_eq!(story.status.attempt, 0, "it is not tried again");
        assert!(story.alive.is_empty(), "{:?}", story.alive);
        let failed = story.status.conditions.last().unwrap();
        assert_eq!((failed.kind.as_str(), failed.reason.as_str()), ("Failed", "ImageUnavailable"));
        let told = "check its name and its pull secrets, then submit again: \
            job-worker-0 could not start: image none of pod job-worker-0 is not to be had";
        assert!(failed.message.ends_with(told), "{}", failed.message);
    }
    let story = imageless(Scenario::quiet(kube_batch("b", 3, LINE), vec![runs(0)]));
    assert_eq!(end(&story), (Verdict::Failed, EndReason::ImageUnavailable, 125));
    let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
    let condition = &status["job"]["conditions"][0];
    assert_eq!(condition["type"], "Failed");
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("image none of pod b-"), "{message}");
    assert!(message.ends_with("then submit again"), "{message}");
}

#[test]
fn a_deadline_ends_the_job_and_a_resume_starts_it_again() {
    let late = |job: &mut Job| job.policies.deadline_seconds = Some(8);
    let story = tell(&kubeflow_story(vec![runs(0)], late));
    assert_eq!(end(&story), (Verdict::Failed, EndReason::DeadlineExceeded, 124));
    assert_eq!(story.status.conditions.last().unwrap().reason, "DeadlineExceeded");

    let enough = |job: &mut Job| job.policies.deadline_seconds = Some(14);
    let quiet = kubeflow_story(vec![runs(0)], enough);
    let suspended = disturbed(quiet, 6_000, Disturbance::Suspend);
    let story = tell(&disturbed(suspended, 60_000, Disturbance::Resume));
    assert_eq!(end(&story).0, Verdict::Succeeded);
    assert_eq!(
        conditions(&story),
        [
            "Suspended false MPIJobResumed",
            "Created true MPIJobCreated",
            "Running false MPIJobRunning",
            "Succeeded true MPIJobSucceeded"
        ]
    );
    let (first, created) = (story.status.first_ran.unwrap(), story.status.created.unwrap());
    assert!(first.since(created).as_secs() < 6, "it ran before it was suspended");
    assert!(story.status.running_since > Some(first));
}

#[test]
fn clean_up_is_exact() {
    let left = |clean_up, dialect| {
        let mut job = kubeflow(dialect, "job", 2, 1, LINE);
        job.policies.clean_up = clean_up;
        let story = tell(&Scenario::quiet(job, vec![runs(0)]));
        story.alive.len()
    };
    assert_eq!(left(CleanUp::None, Dialect::KubeflowV2beta1), 2);
    assert_eq!(left(CleanUp::Running, Dialect::KubeflowV2beta1), 0);
    assert_eq!(left(CleanUp::All, Dialect::KubeflowV1alpha2), 0);
}

#[test]
fn an_ended_job_removes_itself_when_its_time_has_come() {
    let story = tell(&kubeflow_story(vec![runs(0)], |job| job.policies.ttl_seconds = Some(3)));
    assert!(story.removed);
    assert!(!tell(&kubeflow_story(vec![runs(0)], |_| {})).removed);
}

#[test]
fn kube_batch_members_end_with_their_executor() {
    let story = tell(&Scenario::quiet(kube_batch("tri", 3, LINE), vec![runs(0)]));
    assert_eq!(story.alive, []);
    let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
    assert_eq!(status["job"]["conditions"][0]["type"], "Complete");
    assert_eq!(status["job"]["active"], 0);
}

#[test]
fn openpai_ends_by_its_rules() {
    let story = |master: EndRule, worker: EndRule, codes: &[i32]| {
        let (mut main, mut node) = (role("main", 1, "x"), role("node", 1, "y"));
        (main.end, node.end) = (master, worker);
        let script = codes.iter().map(|code| runs(*code)).collect();
        let story = tell(&Scenario::quiet(openpai("pai", vec![main, node]), script));
        let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
        (status["jobStatus"]["state"].as_str().unwrap().to_owned(), story.status.attempt)
    };
    let (first, never) = (EndRule::FIRST, EndRule::NEVER);
    // Nothing fires: when all have ended the job succeeded, failures or not.
    assert_eq!(story(never, never, &[1]), ("SUCCEEDED".to_owned(), 0));
    assert_eq!(story(first, never, &[0]), ("SUCCEEDED".to_owned(), 0));
    // An unknown failure stops, a transient one is free.
    assert_eq!(story(first, first, &[1]), ("FAILED".to_owned(), 0));
    assert_eq!(story(first, first, &[143, 0]), ("SUCCEEDED".to_owned(), 1));
    assert_eq!(story(first, first, &[139, 0]), ("FAILED".to_owned(), 0));
}

#[test]
fn openpai_retries_unknown_failures_as_often_as_it_is_told() {
    let mut job = openpai("pai", vec![role("main", 1, "x")]);
    job.policies.retry = Retry::ByClass(RetryCount::Limited(2));
    let story = tell(&Scenario::quiet(job, vec![runs(1)]));
    assert_eq!((story.status.attempt, end(&story).1), (2, EndReason::RetriesExhausted));
}

#[test]
fn a_stopped_job_is_stopped_in_its_systems_words() {
    let quiet = Scenario::quiet(azure("az", 2, 1, "mpirun ./a"), vec![runs(0)]);
    let story = tell(&disturbed(quiet, 5_000, Disturbance::Stop));
    assert_eq!(end(&story), (Verdict::Stopped, EndReason::StopRequested, 143));
    let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
    assert_eq!(status["status"], "Canceled");
    assert_eq!(story.alive, []);
}

#[test]
fn a_job_that_always_starts_again_does_so_even_after_success() {
    let mut job = openpai("pai", vec![role("main", 1, "x")]);
    job.policies.retry = Retry::ByClass(RetryCount::Always);
    let quiet = Scenario::quiet(job, vec![runs(0)]);
    let story = tell(&disturbed(quiet, 40_000, Disturbance::Stop));
    assert!(story.status.attempt >= 2, "{:?}", story.status);
    assert_eq!((story.status.counted_failures, end(&story).0), (0, Verdict::Stopped));
}

#[test]
fn a_job_that_begins_suspended_has_nothing_until_it_is_resumed() {
    let quiet = kubeflow_story(vec![runs(0)], |job| job.policies.suspend = true);
    let story = tell(&disturbed(quiet, 30_000, Disturbance::Resume));
    assert_eq!(
        conditions(&story)[..2],
        ["Suspended false MPIJobResumed", "Created true MPIJobCreated"]
    );
    let started = story.status.started.unwrap();
    assert_eq!(started.since(story.status.created.unwrap()).as_secs(), 30);
    assert!(story.status.first_ran.is_some_and(|it| it >= started));
}

/// The launcher and the only worker of a job, seen so.
fn both(plan: &Plan, of_launcher: SeenState, of_worker: SeenState) -> Observed {
    let seen = plan.hosts.iter().zip([of_launcher, of_worker]).map(|(host, state)| Seen {
        incarnation: Incarnation { member: host.member, epoch: 0 },
        state,
        address: None,
    });
    Observed { seen: seen.collect(), ..Observed::default() }
}

fn ended(code: i32, cause: Cause) -> SeenState {
    SeenState::Ended(Ended {
        started: Some(Time(2)),
        at: Time(3),
        code,
        cause,
        rank: None,
        last_lines: Vec::new(),
    })
}

/// A worker that is told to go ends as it likes, and may be seen so before it is gone. One that ended before counts.
#[test]
fn a_worker_that_the_clean_up_ends_has_not_failed() {
    let mut job = kubeflow(Dialect::KubeflowV1alpha2, "job", 1, 1, LINE);
    job.policies.clean_up = CleanUp::All;
    let plan = lay_out(&job, &Facts::default(), 1);
    let mut status = Status::default();
    let running = SeenState::Running { since: Time(2) };
    for (now, state) in [(1, SeenState::Up), (2, running), (3, ended(0, Cause::Exited))] {
        status = step(&plan, &status, &both(&plan, state, SeenState::Up), Time(now)).status;
    }
    assert!(status.end().is_some_and(|end| end.verdict == Verdict::Succeeded));
    let failed = |of_worker: SeenState| {
        let observed = both(&plan, ended(0, Cause::Exited), of_worker);
        step(&plan, &status, &observed, Time(4)).status.groups[1].failed
    };
    assert_eq!(failed(ended(143, Cause::Deleted)), 0);
    assert_eq!(failed(ended(1, Cause::Exited)), 1);
}

/// One worker's job at the moment its launcher failed for the first time.
#[test]
fn v1alpha2_says_restarting_between_two_tries() {
    let plan =
        lay_out(&kubeflow(Dialect::KubeflowV1alpha2, "job", 1, 1, LINE), &Facts::default(), 1);
    let view = |state: SeenState| both(&plan, state, SeenState::Up);
    let failed = ended(1, Cause::Exited);
    let mut status = Status::default();
    for (now, state) in [(1, SeenState::Up), (2, SeenState::Running { since: Time(2) })] {
        status = step(&plan, &status, &view(state), Time(now)).status;
    }
    assert_eq!(status.conditions.last().unwrap().kind, "Running");
    let next = step(&plan, &status, &view(failed), Time(3));
    let kinds: Vec<&str> = next.status.conditions.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["Created", "Restarting"]);
    assert_eq!((next.status.attempt, next.status.launched_epoch), (1, 1));
    // The worker stays, the launcher's log stays, and a new launcher is made.
    assert_eq!(next.want.remove, []);
    assert_eq!(next.want.members[&plan.hosts[0].member], Wanted::Held);
}

#[test]
fn events_of_a_version_are_told_once() {
    let plan =
        lay_out(&kubeflow(Dialect::KubeflowV2beta1, "job", 1, 1, LINE), &Facts::default(), 1);
    let next = step(&plan, &Status::default(), &Observed::default(), Time(1));
    let told = happenings(&plan, &Status::default(), &next.status);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].reason.as_str(), told[0].is_warning), ("MPIJobCreated", false));
    assert_eq!(happenings(&plan, &next.status, &next.status), []);
}

#[test]
fn a_job_that_was_never_seen_running_is_told_to_have_run() {
    let plan =
        lay_out(&kubeflow(Dialect::KubeflowV2beta1, "job", 1, 1, LINE), &Facts::default(), 1);
    let next = |of_launcher: SeenState, prior: &Status, now: u64| {
        step(&plan, prior, &both(&plan, of_launcher, SeenState::Up), Time(now)).status
    };
    let starting = next(SeenState::Up, &Status::default(), 1);
    let over = next(ended(0, Cause::Exited), &starting, 4);
    let told = happenings(&plan, &starting, &over);
    let reasons: Vec<&str> = told.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["MPIJobRunning", "MPIJobSucceeded"]);
    assert_eq!(happenings(&plan, &over, &over), []);
}

#[test]
fn a_job_waits_in_line_and_says_why() {
    let plan = lay_out(&azure("az", 2, 1, "mpirun ./a"), &Facts::default(), 1);
    let full =
        Observed { room: Room::Waiting("1 of 2 CPUs is free".to_owned()), ..Observed::default() };
    let waiting = step(&plan, &Status::default(), &full, Time(1));
    assert_eq!(waiting.status.stage, Stage::Queued);
    assert_eq!(waiting.why[0].to_string(), "the job waits in line: 1 of 2 CPUs is free");
    assert!(waiting.want.members.is_empty());
    let starting = step(&plan, &waiting.status, &Observed::default(), Time(2));
    assert_eq!((starting.status.stage, starting.want.members.len()), (Stage::Starting, 2));
}

#[test]
fn a_job_that_somebody_else_manages_is_left_alone() {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "job", 1, 1, LINE);
    job.policies.managed_by = Some("kueue.x-k8s.io/multikueue".to_owned());
    let next = step(
        &lay_out(&job, &Facts::default(), 1),
        &Status::default(),
        &Observed::default(),
        Time(1),
    );
    assert_eq!(next.status, Status::default());
    assert!(next.want.members.is_empty());
    assert!(matches!(next.why[..], [Why::ManagedElsewhere { .. }]));
}

#[test]
fn hosts_on_this_machine_are_believed_at_once_and_never_outlive_their_job() {
    let mut scenario = kubeflow_story(vec![runs(0)], |job| job.policies.clean_up = CleanUp::None);
    scenario.facts.engine = EngineKind::Local;
    assert_eq!(tell(&scenario).alive, []);
    let story = tell(&disturbed(scenario, 5_000, strike(1, Cause::Deleted)));
    assert_eq!((story.status.gang_restarts, end(&story).0), (1, Verdict::Succeeded));
}
