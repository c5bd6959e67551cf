//! Runs on machines that have less, or more, than usual: private networks, no network, no namespaces, limits, GPUs, other MPIs,
//! horovodrun, and files that mean no good.

mod gpus;
mod horovod;
mod hostile;
mod launchers;
mod limits;
mod network;
mod refused;
#[path = "../support/user.rs"]
mod support;

use std::process::{Command, Output};

use support::User;
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

/// The launch line of six ranks that check their sums, over three hosts.
fn six_ranks(user: &User) -> Vec<String> {
    let prefix = user.mpi.prefix.display().to_string();
    let program = user.program(Program::Allreduce);
    let line = ["run", "--hosts", "3", "--slots", "2", "--strict", "--mpi", &prefix];
    let launch = ["--", "mpirun", "-n", "6", &program];
    [&line[..], &launch[..]].concat().into_iter().map(str::to_owned).collect()
}

/// Runs six ranks with every MPI, by a call with these words more, behind that program if any. What each run told comes back.
fn run_with_every_mpi(more: &[&str], wrapper: &[&str]) -> Vec<String> {
    let run = |flavour| {
        let user = User::of(flavour);
        let words = six_ranks(&user);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let called = user.unisono(&[&words[..1], more, &words[1..]].concat());
        let mut called = if wrapper.is_empty() { called } else { behind(wrapper, &called) };
        let output = called.output().expect("run unisono");
        assert_six_ranks(flavour, &output);
        user.watch.assert_nothing_left(support::SOON);
        support::text(&output.stderr)
    };
    Flavour::ALL.into_iter().map(run).collect()
}

/// What unisono is called with, behind another program.
fn behind(wrapper: &[&str], unisono: &Command) -> Command {
    let (program, arguments) = wrapper.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(arguments).arg(unisono.get_program()).args(unisono.get_args());
    for (name, value) in unisono.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = unisono.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Six ranks ran and were right.
fn assert_six_ranks(flavour: Flavour, output: &Output) {
    let (out, err) = (support::text(&output.stdout), support::text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{flavour:?}: {out}{err}");
    let right = out.lines().filter(|line| line.ends_with("sums right")).count();
    assert_eq!(right, 6, "{flavour:?}: {out}{err}");
}
