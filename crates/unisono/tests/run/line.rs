//! Several runs on one machine: who waits, for what, and what becomes of the room of those who crash.

use std::process::{Child, Stdio};

use unisono_testbed::mpi::Flavour;

use crate::{SOON, User, first_line, json, text, until};

/// A run that takes that many slots until its input ends.
fn holding(user: &User, name: &str, slots: &str, more: &[&str]) -> Child {
    holding_with(user, name, &format!("slots: {slots}"), "", more)
}

/// The same with hosts and rules of its own.
fn holding_with(user: &User, name: &str, hosts: &str, rules: &str, more: &[&str]) -> Child {
    let job = format!(
        "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: {name}}}\n\
         spec: {{policies: {{{rules}}}, \
         groups: [{{name: host, {hosts}, run: LaunchOnFirst, script: 'echo begun; cat'}}]}}\n"
    );
    let file = user.home.path().join(format!("{name}.yaml"));
    std::fs::write(&file, job).expect("write the job");
    let words = ["run", file.to_str().expect("a name"), "--raw", "--machine-slots", "8"];
    user.unisono(&[&words[..], more].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run unisono")
}

fn state(user: &User, job: &str) -> String {
    let listed = json(user, &["list", "--output", "json"]);
    let runs = listed["runs"].as_array().expect("a list").clone();
    let run = runs.into_iter().rfind(|run| run["job"] == job);
    run.map(|run| run["state"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

#[test]
fn a_run_that_does_not_fit_waits_says_so_and_starts_when_there_is_room() {
    let user = User::of(Flavour::OpenMpi4);
    let mut first = holding(&user, "first", "6", &[]);
    assert_eq!(first_line(&mut first), "begun\n");
    let mut small = holding(&user, "small", "2", &[]);
    assert_eq!(first_line(&mut small), "begun\n", "it fits beside the first");
    let mut second = holding(&user, "second", "4", &[]);
    until(|| state(&user, "second") == "queued");
    let why = text(&user.unisono(&["why", "second"]).output().expect("ask").stdout);
    assert!(why.contains("the job waits in line: it needs 4 of this machine's 8 slots"), "{why}");
    assert!(why.contains("first-") && why.contains("(6)"), "{why}");
    let why = json(&user, &["why", "second", "--output", "json"]);
    assert!(why["waits"][0]["queued"]["reason"].is_string(), "{why}");
    drop(first.stdin.take());
    assert_eq!(first_line(&mut second), "begun\n");
    for mut run in [first, small, second] {
        drop(run.stdin.take());
        assert!(run.wait().expect("it ends").success());
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_crashed_run_frees_its_share_and_priority_goes_first() {
    let user = User::of(Flavour::OpenMpi4);
    let mut first = holding(&user, "first", "8", &[]);
    assert_eq!(first_line(&mut first), "begun\n");
    let mut patient = holding(&user, "patient", "8", &[]);
    until(|| state(&user, "patient") == "queued");
    let mut urgent = holding(&user, "urgent", "8", &["--priority", "5"]);
    until(|| state(&user, "urgent") == "queued");
    first.kill().expect("kill it");
    first.wait().expect("it is dead");
    assert_eq!(first_line(&mut urgent), "begun\n");
    assert_eq!(
        (state(&user, "first").as_str(), state(&user, "patient").as_str()),
        ("crashed", "queued")
    );
    let why = text(&user.unisono(&["why", "first"]).output().expect("ask").stdout);
    assert!(why.contains("is gone: it was killed"), "{why}");
    drop(urgent.stdin.take());
    assert_eq!(first_line(&mut patient), "begun\n");
    drop(patient.stdin.take());
    assert!(
        urgent.wait().expect("it ends").success() && patient.wait().expect("it ends").success()
    );
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_run_that_waits_in_line_can_be_stopped_and_a_larger_job_than_the_machine_runs_alone() {
    let user = User::of(Flavour::OpenMpi4);
    let mut large = holding(&user, "large", "640", &[]);
    assert_eq!(first_line(&mut large), "begun\n");
    let mut next = holding(&user, "next", "1", &[]);
    until(|| state(&user, "next") == "queued");
    assert!(user.unisono(&["stop", "next"]).status().expect("stop").success());
    assert_eq!(next.wait().expect("it ends").code(), Some(143));
    assert_eq!(state(&user, "next"), "stopped");
    drop(large.stdin.take());
    assert!(large.wait().expect("it ends").success());
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn another_queue_may_pass_and_the_own_one_may_not() {
    let user = User::of(Flavour::OpenMpi4);
    let mut first = holding(&user, "first", "6", &[]);
    assert_eq!(first_line(&mut first), "begun\n");
    let mut big = holding(&user, "big", "8", &[]);
    until(|| state(&user, "big") == "queued");
    let mut behind = holding(&user, "behind", "1", &[]);
    until(|| state(&user, "behind") == "queued");
    let why = text(&user.unisono(&["why", "behind"]).output().expect("ask").stdout);
    assert!(why.contains("big-") && why.contains("is before it"), "{why}");
    let mut quick = holding(&user, "quick", "1", &["--queue", "quick"]);
    assert_eq!(first_line(&mut quick), "begun\n");
    for run in [&mut first, &mut quick] {
        drop(run.stdin.take());
        assert!(run.wait().expect("it ends").success());
    }
    assert_eq!(first_line(&mut big), "begun\n");
    drop(big.stdin.take());
    assert_eq!(first_line(&mut behind), "begun\n");
    drop(behind.stdin.take());
    assert!(big.wait().expect("it ends").success() && behind.wait().expect("it ends").success());
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_gang_starts_when_as_many_of_its_members_fit_as_it_says_and_nothing_of_it_does_before() {
    let user = User::of(Flavour::OpenMpi4);
    let mut first = holding(&user, "first", "4", &[]);
    assert_eq!(first_line(&mut first), "begun\n");
    // Six slots of which four are free: all of it waits.
    let hosts = "replicas: 3, slots: 2";
    let mut whole = holding_with(&user, "whole", hosts, "", &["--queue", "whole"]);
    until(|| state(&user, "whole") == "queued");
    let runs = user.home.path().join(".local/state/unisono/runs");
    let has_hosts = |job: &str| {
        let runs = std::fs::read_dir(&runs).expect("list").flatten();
        let mut own = runs.filter(|it| it.file_name().to_string_lossy().starts_with(job));
        let hosts = |it: &std::fs::DirEntry| std::fs::read_dir(it.path().join("hosts"));
        own.any(|it| hosts(&it).is_ok_and(|mut hosts| hosts.next().is_some()))
    };
    assert!(has_hosts("first-") && !has_hosts("whole-"));
    // Two of the three are enough for this one.
    let mut two = holding_with(&user, "two", hosts, "gang: {minMembers: 2}", &["--queue", "two"]);
    assert_eq!(first_line(&mut two), "begun\n");
    assert_eq!(state(&user, "whole"), "queued");
    for run in [&mut first, &mut two] {
        drop(run.stdin.take());
        assert!(run.wait().expect("it ends").success());
    }
    assert_eq!(first_line(&mut whole), "begun\n");
    drop(whole.stdin.take());
    assert!(whole.wait().expect("it ends").success());
    user.watch.assert_nothing_left(SOON);
}
