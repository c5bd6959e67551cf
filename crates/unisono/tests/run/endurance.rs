//! Much output, many runs, every exit code, impatient users, stubborn ranks: nothing is lost, nothing is mixed up, nothing is left.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, first_line, interrupt, json, text};

fn spawn(user: &User, words: &[&str]) -> Child {
    user.unisono(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("run unisono")
}

#[test]
fn a_hundred_megabytes_of_every_rank_arrive_complete_and_in_order() {
    const LINES: u64 = 1_000_000;
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Print);
    let words = ["run", "--hosts", "2", "--slots", "1", "--", "mpirun"];
    let ranks = ["-n", "1", &program, "0", "100", ":", "-n", "1", &program, "1", "100"];
    let mut run = spawn(&user, &[&words[..], &ranks].concat());
    let id = run.id();
    let mut output = BufReader::with_capacity(1 << 20, run.stdout.take().expect("its output"));
    let (mut next, mut line, mut most) = ([0_u64; 2], Vec::new(), 0);
    while output.read_until(b'\n', &mut line).expect("read") > 0 {
        let told = std::str::from_utf8(&line).expect("text");
        let (who, number) = told.split_once(" | ").expect("a rank wrote it");
        let rank: usize =
            who.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a rank");
        assert_eq!(number.trim_end().parse(), Ok(next[rank]), "rank {rank}");
        next[rank] += 1;
        if next[rank] % (LINES / 4) == 0 {
            most = most.max(memory(id));
        }
        line.clear();
    }
    assert_eq!(next, [LINES; 2]);
    assert!(run.wait().expect("it ends").success());
    assert!(most < 64 << 20, "it took {most} bytes of memory");
    let kept = |rank: u32| user.unisono(&["logs", "--rank", &rank.to_string()]).output();
    for rank in 0..2 {
        assert_eq!(kept(rank).expect("read").stdout.len(), 100_000_000, "rank {rank}");
    }
    user.watch.assert_nothing_left(SOON);
}

/// The most memory that a process had so far.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|it| it.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// A run that says its number and ends with it.
fn ending_with(user: &User, code: u32) -> Child {
    let script = format!("echo I am {code}; exit {code}");
    spawn(user, &["run", "--raw", "--machine-slots", "64", "--", "/bin/sh", "-c", &script])
}

fn assert_ends_with(mut run: Child, code: u32) {
    assert_eq!(first_line(&mut run), format!("I am {code}\n"));
    assert_eq!(run.wait().expect("it ends").code(), i32::try_from(code).ok());
}

/// The most memory that a run takes until its command runs, all that is kept of others read.
fn memory_of_a_run(user: &User) -> u64 {
    let script = "echo here; while [ ! -e go ]; do sleep 0.05; done";
    let mut run = spawn(user, &["run", "--raw", "--", "/bin/sh", "-c", script]);
    assert_eq!(first_line(&mut run), "here\n");
    let most = memory(run.id());
    let go = user.home.path().join("go");
    std::fs::write(&go, "").expect("let it go");
    assert!(run.wait().expect("it ends").success());
    std::fs::remove_file(go).expect("take it back");
    most
}

#[test]
fn every_exit_code_passes_in_a_hundred_runs_in_a_row_and_in_twenty_at_once() {
    let user = User::of(Flavour::OpenMpi4);
    let at_first = memory_of_a_run(&user);
    (0..100).for_each(|code| assert_ends_with(ending_with(&user, code), code));
    let at_last = memory_of_a_run(&user);
    assert!(at_first > 0 && at_last < at_first + (8 << 20), "{at_first} bytes, then {at_last}");
    let rest: Vec<u32> = (100..256).collect();
    for codes in rest.chunks(20) {
        let runs: Vec<Child> = codes.iter().map(|code| ending_with(&user, *code)).collect();
        runs.into_iter().zip(codes).for_each(|(run, code)| assert_ends_with(run, *code));
    }
    let listed = json(&user, &["list", "--output", "json"]);
    let runs = listed["runs"].as_array().expect("a list");
    assert!(runs.len() <= 101, "{} directories stay", runs.len());
    assert!(runs.iter().all(|run| run["exit"].is_u64() && run["state"] != "running"));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn twenty_jobs_of_mpi_at_once_are_not_mixed_up() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Hello);
    let command = |at: usize| {
        let words = ["run", "--hosts", "2", "--slots", "1", "--machine-slots", "16", "--strict"];
        let env = format!("NUMBER={at}");
        let line = format!("mpirun -n 2 sh -c 'echo job $NUMBER; exec {program}'");
        spawn(&user, &[&words[..], &["--env", &env, "--", "/bin/sh", "-c", &line]].concat())
    };
    let runs: Vec<Child> = (0..20).map(command).collect();
    for (at, run) in runs.into_iter().enumerate() {
        let output = run.wait_with_output().expect("it ends");
        let out = text(&output.stdout);
        assert!(output.status.success(), "{out}");
        assert_eq!(out.matches(&format!("| job {at}\n")).count(), 2, "{out}");
        assert_eq!(out.matches("| job ").count(), 2, "{out}");
        assert!(
            (0..2).all(|rank| out.contains(&format!("rank {rank} of 2 on sh-host-{rank}"))),
            "{out}"
        );
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn signals_that_end_a_command_are_128_and_their_number() {
    let user = User::of(Flavour::OpenMpi4);
    for (signal, code) in [("HUP", 129), ("ABRT", 134), ("KILL", 137), ("SEGV", 139), ("TERM", 143)]
    {
        let script = format!("kill -{signal} $$");
        let status = user.unisono(&["run", "--", "/bin/sh", "-c", &script]).output();
        assert_eq!(status.expect("run unisono").status.code(), Some(code), "{signal}");
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn what_ranks_leave_running_ends_with_the_job() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Daemon);
    let mut run = spawn(
        &user,
        &["run", "--raw", "--hosts", "2", "--slots", "1", "--", "mpirun", &program, "600"],
    );
    assert!(first_line(&mut run).starts_with("waiting"));
    interrupt(&run);
    assert!(!run.wait().expect("it ends").success());
    user.watch.assert_nothing_left(SOON);
    let script = "setsid sh -c 'trap \"\" TERM HUP; sleep 600' > /dev/null 2>&1 & exit 0";
    let status = user.unisono(&["run", "--", "/bin/sh", "-c", script]).output();
    assert!(status.expect("run unisono").status.success());
    user.watch.assert_nothing_left(SOON);
}
