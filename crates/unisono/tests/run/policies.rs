//! The rules of a file hold on this machine: retries, deadlines, completion, clean-up, suspension.

use std::process::Stdio;

use unisono_testbed::mpi::Flavour;

use crate::{SOON, User, first_line, json, text, until};

/// A job of one group whose members run a line of shell.
fn job(rules: &str, group: &str, script: &str) -> String {
    let script = serde_json::to_string(script).expect("a line is text");
    format!(
        "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: rules}}\nspec:\n  \
         policies: {{{rules}}}\n  groups: [{{name: task, {group}, script: {script}}}]\n"
    )
}

/// Counts attempts in a file, and fails with these codes one after the other, then never again.
fn failing_with(codes: &str) -> String {
    format!(
        "n=$(cat attempts 2>/dev/null || echo 0); n=$((n+1)); echo $n > attempts; \
         set -- {codes}; [ $n -gt $# ] || {{ shift $((n-1)); exit $1; }}"
    )
}

fn attempts(user: &User) -> u32 {
    let text = std::fs::read_to_string(user.home.path().join("attempts")).expect("it ran");
    text.trim().parse().expect("a number")
}

const ALONE: &str = "run: LaunchOnFirst, slots: 1";

#[test]
fn a_backoff_limit_is_how_many_attempts_may_follow() {
    for (limit, code, tries) in [(2, 0, 3), (1, 7, 2), (0, 7, 1)] {
        let user = User::of(Flavour::OpenMpi4);
        let job = job(&format!("backoffLimit: {limit}"), ALONE, &failing_with("7 7"));
        let output = user.run(&job, &[]);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), attempts(&user)), (Some(code), tries), "{told}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn openpais_classes_decide_which_failures_are_tried_again() {
    // What the platform did is free, what nobody knows counts, what no retry can cure ends the job.
    for (count, codes, code, tries) in
        [(0, "143", 0, 2), (0, "1", 1, 1), (1, "1", 0, 2), (9, "139", 139, 1), (9, "137", 137, 1)]
    {
        let user = User::of(Flavour::OpenMpi4);
        let script = serde_json::to_string(&failing_with(codes)).expect("text");
        let job = format!(
            r#"{{"jobName": "classes", "image": "x:1", "retryCount": {count},
                "taskRoles": [{{"name": "main", "command": {script}}}]}}"#
        );
        let output = user.run(&job, &[]);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), attempts(&user)), (Some(code), tries), "{codes}: {told}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn a_deadline_ends_the_job_with_124_and_why_says_so() {
    for more in [&["--timeout", "1"][..], &[]] {
        let user = User::of(Flavour::OpenMpi4);
        let rules = if more.is_empty() { "deadlineSeconds: 1" } else { "" };
        let output = user.run(&job(rules, ALONE, "trap '' TERM; sleep 600"), more);
        assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
        let why = text(&user.unisono(&["why"]).output().expect("ask").stdout);
        assert!(why.contains("its deadline passed"), "{why}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn completion_rules_count_members() {
    let by_index = "case $(hostname) in *-0) exit 0;; *-1) exit 0;; *) sleep 600;; esac";
    let enough = "run: Command, replicas: 3, slots: 0, completion: {minSucceeded: 2}";
    let user = User::of(Flavour::OpenMpi4);
    let output = user.run(&job("", enough, by_index), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let by_index = "case $(hostname) in *-0) exit 5;; *-1) exit 5;; *) sleep 600;; esac";
    let too_many = "run: Command, replicas: 3, slots: 0, completion: {minFailed: 2}";
    let output = user.run(&job("", too_many, by_index), &[]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn hosts_end_with_their_job_whatever_the_clean_up_policy_says() {
    for policy in ["None", "Running", "All"] {
        let user = User::of(Flavour::OpenMpi4);
        let group = "run: LaunchOnFirst, replicas: 3, slots: 1";
        let output = user.run(&job(&format!("cleanUp: {policy}"), group, "true"), &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn a_suspended_job_waits_until_it_is_run_with_resume() {
    let user = User::of(Flavour::OpenMpi4);
    let suspended = job("suspend: true", ALONE, "echo ran");
    std::fs::write(user.home.path().join("job.yaml"), &suspended).expect("write the job");
    let mut waits = user
        .unisono(&["run", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let state = || json(&user, &["list", "--output", "json"])["runs"][0]["state"].clone();
    until(|| state() == "suspended");
    let why = text(&user.unisono(&["why"]).output().expect("ask").stdout);
    assert!(why.contains("suspended until somebody resumes it"), "{why}");
    assert!(user.unisono(&["stop"]).status().expect("stop").success());
    assert_eq!(first_line(&mut waits), "", "nothing of it may run");
    assert_eq!(waits.wait().expect("it ends").code(), Some(143));
    let output = user.run(&suspended, &["--resume", "--raw"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("ran\n", Some(0)));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_master_that_sleeps_first_is_told_so_and_can_skip_it() {
    let master = |sleep: &str| {
        format!(
            r#"{{"jobName": "horovod-job", "image": "x:1", "taskRoles": [
                {{"name": "master", "minFailedTaskCount": 1, "minSucceededTaskCount": 1,
                  "command": "sleep {sleep} && echo trained"}},
                {{"name": "worker", "minFailedTaskCount": 1, "minSucceededTaskCount": 1,
                  "command": "sleep infinity"}}]}}"#
        )
    };
    let user = User::of(Flavour::OpenMpi4);
    let output = user.run(&master("1000"), &["--skip-sleep", "--raw"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("trained\n", Some(0)));
    let output = user.run(&master("0.1"), &["--raw"]);
    let told = text(&output.stderr);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("trained\n", Some(0)));
    assert!(told.contains("is not needed") && told.contains("--skip-sleep"), "{told}");
    user.watch.assert_nothing_left(SOON);
}
