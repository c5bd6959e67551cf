//! What is told of a job in each version, through the steps that bring it there.

use super::*;
use crate::conditions::happenings;
use crate::sample::{LAUNCHER, WORKER, ended, plan as sample, seen};
use crate::{Ended, EngineKind, Observed, SeenState, step};

const NOW: Time = Time(1_000_000);

/// A launcher and two workers, in the words of a version.
fn plan(dialect: Dialect, change: impl FnOnce(&mut unisono_job::Job)) -> Plan {
    sample(EngineKind::Kubernetes, |job| {
        job.dialect = dialect;
        job.policies.retry = unisono_job::Retry::Backoff { limit: 0 };
        job.policies.gang_restarts = 0;
        change(job);
    })
}

fn up() -> Observed {
    seen(&[
        (LAUNCHER, SeenState::Up),
        (WORKER, SeenState::Up),
        (crate::sample::OTHER_WORKER, SeenState::Up),
    ])
}

/// The status of a job whose command runs.
fn running(plan: &Plan) -> Status {
    let begun = step(plan, &Status::default(), &up(), NOW).status;
    assert_eq!(begun.stage, Stage::Running);
    let mut runs = up();
    runs.seen[0].state = SeenState::Running { since: NOW };
    step(plan, &begun, &runs, NOW).status
}

fn told(status: &Status) -> Vec<(&str, bool, &str)> {
    let conditions = status.conditions.iter();
    conditions.map(|it| (it.kind.as_str(), it.holds, it.reason.as_str())).collect()
}

fn condition<'status>(status: &'status Status, kind: &str) -> &'status Condition {
    status.conditions.iter().find(|it| it.kind == kind).expect("it is told")
}

/// The end of a job of that version whose launcher ended so.
fn failed(dialect: Dialect, how: Ended) -> Status {
    let plan = plan(dialect, |_| {});
    let mut over = up();
    over.seen[0].state = SeenState::Ended(how);
    let later = NOW.after_seconds(10);
    let status = step(&plan, &running(&plan), &over, later).status;
    assert!(status.is_terminal(), "{status:?}");
    status
}

#[test]
fn a_job_that_is_suspended_when_it_is_made_does_not_run_and_is_shown_as_suspended() {
    let suspended = |dialect| {
        let plan = plan(dialect, |job| job.policies.suspend = true);
        let status = step(&plan, &Status::default(), &Observed::default(), NOW).status;
        let resumed = self::plan(dialect, |_| {});
        let after = step(&resumed, &status, &Observed::default(), NOW).status;
        (status, after)
    };
    let (status, after) = suspended(Dialect::KubeflowV2beta1);
    assert_eq!(
        told(&status),
        [
            ("Created", true, "MPIJobCreated"),
            ("Running", false, "MPIJobSuspended"),
            ("Suspended", true, "MPIJobSuspended")
        ]
    );
    assert_eq!(condition(&status, "Running").message, "MPIJob default/sample is suspended.");
    assert_eq!(told(&after).last(), Some(&("Created", true, "MPIJobCreated")), "{after:?}");
    assert!(told(&after).contains(&("Suspended", false, "MPIJobResumed")));
    let (status, _) = suspended(Dialect::KubeflowV1);
    assert_eq!(told(&status).len(), 2, "{status:?}");
}

#[test]
fn a_running_job_that_is_suspended_is_shown_as_suspended() {
    let suspended = plan(Dialect::KubeflowV2beta1, |job| job.policies.suspend = true);
    let running = running(&plan(Dialect::KubeflowV2beta1, |_| {}));
    assert_eq!(told(&running).last(), Some(&("Running", true, "MPIJobRunning")));
    let status = step(&suspended, &running, &up(), NOW).status;
    assert_eq!(told(&status).last(), Some(&("Suspended", true, "MPIJobSuspended")));
}

#[test]
fn a_launcher_that_was_taken_away_too_often_is_told_with_its_pods_reason() {
    let lost = |cause| Ended { cause, ..ended(NOW.0, 137) };
    let reason = |dialect, how| condition(&failed(dialect, how), "Failed").reason.clone();
    let v2 = |how| reason(Dialect::KubeflowV2beta1, how);
    assert_eq!(v2(lost(Cause::Evicted)), "BackoffLimitExceeded/Evicted");
    assert_eq!(v2(lost(Cause::NodeLost)), "BackoffLimitExceeded/NodeLost");
    assert_eq!(v2(ended(NOW.0, 3)), "BackoffLimitExceeded");
    let v1 = |how| reason(Dialect::KubeflowV1, how);
    assert_eq!(v1(lost(Cause::Evicted)), "MPIJobEvicted");
    assert_eq!(v1(lost(Cause::Preempted)), "Preempting");
    assert_eq!(v1(ended(NOW.0, 3)), "MPIJobFailed");
    let status = failed(Dialect::KubeflowV2beta1, lost(Cause::Evicted));
    let message = &condition(&status, "Failed").message;
    assert_eq!(message, "Job has reached the specified backoff limit: sample-run-0 was evicted");
}

#[test]
fn a_message_that_is_cut_says_so() {
    assert_eq!(cut("short".to_owned()), "short");
    let whole = "x".repeat(LONGEST_MESSAGE);
    assert_eq!(cut(whole.clone()), whole);
    let long = cut("é".repeat(LONGEST_MESSAGE));
    assert!(long.len() <= LONGEST_MESSAGE && long.ends_with("é..."), "{long}");
}

#[test]
fn a_queue_sees_no_room_before_the_pods_are_gone() {
    let active = |plan: &Plan, status: &Status| {
        let view = replicas(plan, status);
        (view["Run"].active, view["Work"].active)
    };
    let coming = || SeenState::Coming("it starts".to_owned());
    // Suspended: what is not up any more still has its room.
    let suspended = plan(Dialect::KubeflowV2beta1, |job| job.policies.suspend = true);
    let prior = running(&plan(Dialect::KubeflowV2beta1, |_| {}));
    let going = seen(&[(LAUNCHER, coming()), (WORKER, coming())]);
    let status = step(&suspended, &prior, &going, NOW).status;
    assert_eq!(active(&suspended, &status), (Some(1), Some(1)));
    let status = step(&suspended, &status, &Observed::default(), NOW).status;
    assert_eq!(active(&suspended, &status), (None, None));
    // Ended: the same.
    let plan = plan(Dialect::KubeflowV2beta1, |_| {});
    let over = seen(&[(LAUNCHER, SeenState::Ended(ended(NOW.0, 0))), (WORKER, coming())]);
    let status = step(&plan, &prior, &over, NOW).status;
    assert!(status.is_terminal());
    assert_eq!(active(&plan, &status), (None, Some(1)));
    let over = seen(&[(LAUNCHER, SeenState::Ended(ended(NOW.0, 0)))]);
    let status = step(&plan, &status, &over, NOW).status;
    assert_eq!(active(&plan, &status), (None, None));
}

#[test]
fn ranks_that_ran_elsewhere_are_a_condition_that_does_not_hold_and_one_event() {
    let plan = plan(Dialect::KubeflowV2beta1, |_| {});
    let prior = running(&plan);
    let odd = "sample-run-0 ran 2 of 2 ranks but has 0 slots";
    let over = Observed {
        odd_spread: Some(odd.to_owned()),
        ..seen(&[(LAUNCHER, SeenState::Ended(ended(NOW.0, 0)))])
    };
    let status = step(&plan, &prior, &over, NOW).status;
    let spread = condition(&status, "Spread");
    assert_eq!(
        (spread.holds, spread.reason.as_str(), spread.message.as_str()),
        (false, "RanksElsewhere", odd)
    );
    assert_eq!(told(&status).last(), Some(&("Succeeded", true, "MPIJobSucceeded")));
    let elsewhere = |prior: &Status, status: &Status| {
        happenings(&plan, prior, status)
            .into_iter()
            .filter(|it| it.reason == "RanksElsewhere")
            .count()
    };
    assert_eq!(elsewhere(&prior, &status), 1);
    let again = step(&plan, &status, &over, NOW).status;
    assert_eq!((elsewhere(&status, &again), again == status), (0, true));
}

#[test]
fn an_event_about_a_running_job_ends_without_a_stop() {
    let plan = plan(Dialect::KubeflowV2beta1, |_| {});
    let status = running(&plan);
    let news = happenings(&plan, &Status::default(), &status);
    let said =
        |reason: &str| news.iter().find(|it| it.reason == reason).map(|it| it.message.as_str());
    assert_eq!(said("MPIJobCreated"), Some("MPIJob default/sample is created."));
    assert_eq!(said("MPIJobRunning"), Some("MPIJob default/sample is running"));
    assert_eq!(condition(&status, "Running").message, "MPIJob default/sample is running.");
}
