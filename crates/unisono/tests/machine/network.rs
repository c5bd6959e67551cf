//! A network of the job's own: asked for, or because the machine has none.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::support::{SOON, User, text};
use crate::{assert_six_ranks, run_with_every_mpi};

/// Nobody, who has no rights of any kind.
const NOBODY: u32 = 65534;

#[test]
fn every_mpi_runs_on_a_private_network() {
    run_with_every_mpi(&["--isolate-network"], &[]);
}

#[test]
fn every_mpi_runs_on_a_machine_without_a_network() {
    let offline = ["unshare", "--net", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"];
    for told in run_with_every_mpi(&[], &offline) {
        assert!(told.contains("note: this machine has no network beside lo"), "{told}");
    }
}

#[test]
fn hosts_on_a_private_network_see_each_other_and_nothing_else() {
    let user = User::of(Flavour::OpenMpi4);
    let look = "cut -d: -f1 -s /proc/net/dev | tr -d ' '; tail -n +2 /proc/net/route | cut -f1,2; \
                ssh sh-host-1 getent hosts sh-host-0";
    let words = ["run", "--raw", "--isolate-network", "--hosts", "2", "--", "sh", "-c", look];
    let output = user.unisono(&words).output().expect("run unisono");
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines[..2].sort();
    // One route, to 10.77.0.0, as the kernel writes it: the bytes of 10.77 the wrong way round.
    let seen: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    assert_eq!(seen[..3], ["eth0", "lo", "eth0\t00004D0A"], "{}", text(&output.stderr));
    assert_eq!(seen[3].split_whitespace().collect::<Vec<_>>(), ["10.77.0.1", "sh-host-0"]);
}

#[test]
fn a_killed_run_leaves_no_network() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Wait);
    let words =
        ["run", "--isolate-network", "--hosts", "2", "--", "mpirun", "-n", "2", &program, "600"];
    let mut child = user
        .unisono(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let mut first = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    output.read_line(&mut first).expect("a line");
    assert!(!first.is_empty(), "it never ran");
    child.kill().expect("kill it");
    child.wait().expect("it ends");
    user.watch.assert_nothing_left(SOON);
}

/// The call of a user who is nobody. Programs may lie where nobody can read: copies in the home can be run by anybody.
fn as_nobody(user: &User, program: Program, words: &[&str]) -> Command {
    let (unisono, copy) = (user.home.path().join("unisono"), user.home.path().join("program"));
    std::fs::copy(env!("CARGO_BIN_EXE_unisono"), &unisono).expect("copy it");
    std::fs::copy(user.program(program), &copy).expect("copy it");
    chown(user.home.path(), Some(NOBODY), Some(NOBODY)).expect("give the home away");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(unisono);
    command.args(words).stdin(Stdio::null());
    user.be(&mut command);
    command
}

#[test]
fn an_ordinary_user_has_hosts_and_a_private_network() {
    let user = User::of(Flavour::OpenMpi4);
    for more in [&[][..], &["--isolate-network"]] {
        let words = ["run", "--hosts", "2", "--slots", "3", "--strict"];
        let launch = ["--", "mpirun", "-n", "6", "./program"];
        let words = [&words[..], more, &launch[..]].concat();
        let output = as_nobody(&user, Program::Allreduce, &words).output().expect("run unisono");
        assert_six_ranks(Flavour::OpenMpi4, &output);
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn an_ordinary_user_leaves_nothing_however_the_run_ends() {
    for signal in ["-INT", "-KILL"] {
        for more in [&[][..], &["--isolate-network"]] {
            let user = User::of(Flavour::OpenMpi4);
            let launch = ["--hosts", "2", "--", "mpirun", "-n", "2", "./program", "600"];
            let words = [&["run", "--raw"], more, &launch[..]].concat();
            let mut called = as_nobody(&user, Program::Wait, &words);
            let mut run = called.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("run");
            let mut first = String::new();
            let mut output = BufReader::new(run.stdout.take().expect("its output"));
            output.read_line(&mut first).expect("a line");
            assert!(first.starts_with("waiting"), "it never ran: {first:?}");
            // setpriv became unisono, so that this is unisono itself.
            let sent = Command::new("kill").args([signal, &run.id().to_string()]).status();
            assert!(sent.expect("send a signal").success());
            assert!(!run.wait().expect("it ends").success());
            user.watch.assert_nothing_left(SOON);
        }
    }
}
