//! Ctrl-C: once stops the job and lets its ranks save what they have, twice kills it, three times leaves. Nothing is left each time.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, first_line, interrupt, json, send, text};

fn spawn(user: &User, words: &[&str]) -> Child {
    let mut command = user.unisono(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run unisono")
}

/// A command that takes its time to save something when it is asked to stop, with its number in this variable.
fn saves(user: &User, variable: &str) {
    let script = format!(
        "trap 'sleep 0.5; touch saved-${variable}; exit 0' TERM\necho waiting\n\
         while :; do sleep 0.05; done\n"
    );
    std::fs::write(user.home.path().join("saves.sh"), script).expect("write a script");
}

fn has_saved(user: &User, number: u32) -> bool {
    user.home.path().join(format!("saved-{number}")).exists()
}

#[test]
fn ranks_that_are_asked_to_stop_can_save_what_they_have() {
    let user = User::of(Flavour::OpenMpi4);
    saves(&user, "OMPI_COMM_WORLD_RANK");
    let words = ["run", "--raw", "--hosts", "2", "--slots", "1", "--", "mpirun", "sh", "saves.sh"];
    let mut run = spawn(&user, &words);
    (0..2).for_each(|_| assert_eq!(first_line(&mut run), "waiting\n"));
    interrupt(&run);
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    assert!((0..2).all(|rank| has_saved(&user, rank)), "{}", text(&output.stderr));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn tasks_that_outlive_the_master_can_save_what_they_have() {
    let user = User::of(Flavour::OpenMpi4);
    saves(&user, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX");
    let job = r#"{"jobName": "duo", "image": "lab/x:1", "taskRoles": [
        {"name": "master", "minSucceededTaskCount": 1, "command": "while [ ! -e go ]; do sleep 0.05; done"},
        {"name": "worker", "taskNumber": 2, "command": "exec sh saves.sh"}]}"#;
    std::fs::write(user.home.path().join("job.json"), job).expect("write the job");
    let mut run = spawn(&user, &["run", "--raw", "job.json"]);
    (0..2).for_each(|_| assert_eq!(first_line(&mut run), "waiting\n"));
    std::fs::write(user.home.path().join("go"), "").expect("let it go");
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!((0..2).all(|task| has_saved(&user, task)), "{}", text(&output.stderr));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_deadline_stops_the_job_as_an_interrupt_does() {
    let user = User::of(Flavour::OpenMpi4);
    saves(&user, "OMPI_COMM_WORLD_RANK");
    let words = ["run", "--hosts", "2", "--slots", "1", "--timeout", "12", "--"];
    let output = user.unisono(&[&words[..], &["mpirun", "sh", "saves.sh"]].concat()).output();
    let output = output.expect("run unisono");
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    assert!((0..2).all(|rank| has_saved(&user, rank)), "{}", text(&output.stderr));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn ranks_that_do_not_listen_are_killed_in_the_end() {
    let user = User::of(Flavour::OpenMpi4);
    let mut run = spawn(
        &user,
        &["run", "--raw", "--", "sh", "-c", "trap '' TERM INT; echo waiting; sleep 600"],
    );
    assert_eq!(first_line(&mut run), "waiting\n");
    interrupt(&run);
    assert_eq!(run.wait().expect("it ends").code(), Some(143));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_second_interrupt_kills_ranks_that_do_not_listen_and_commands_that_are_still_saving() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Wait);
    let words = ["run", "--raw", "--hosts", "2", "--slots", "1", "--"];
    // Less than the first interrupt leaves it, and more than the second one needs.
    let line = format!(
        "trap 'echo saving; sleep 4; touch saved-0' TERM; mpirun {program} 600 ignore-term & \
         while :; do sleep 0.05; done"
    );
    let mut run = spawn(&user, &[&words[..], &["sh", "-c", &line]].concat());
    (0..2).for_each(|_| assert!(first_line(&mut run).starts_with("waiting")));
    interrupt(&run);
    assert_eq!(first_line(&mut run), "saving\n");
    interrupt(&run);
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("sh: was stopped"), "{}", text(&output.stderr));
    let listed = json(&user, &["list", "--output", "json"]);
    assert_eq!(listed["runs"][0]["state"], "stopped", "{listed}");
    assert!(!has_saved(&user, 0), "it was not killed");
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_third_interrupt_leaves_even_where_nobody_reads_what_the_job_writes() {
    let user = User::of(Flavour::OpenMpi4);
    let mut run = spawn(&user, &["run", "--raw", "--", "/bin/sh", "-c", "trap '' TERM INT; yes"]);
    assert_eq!(first_line(&mut run), "y\n");
    // Of two signals that are the same the second may be lost while the first is being taken.
    for signal in ["-INT", "-TERM"] {
        send(signal, &run);
        assert!(run.try_wait().expect("ask").is_none(), "{signal} ended it");
    }
    send("-HUP", &run);
    let signal = run.wait().expect("it ends").signal();
    assert!([Some(1), Some(2), Some(15)].contains(&signal), "it leaves by a signal: {signal:?}");
    user.watch.assert_nothing_left(SOON);
}
