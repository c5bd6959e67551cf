//! Runs that fail or are stopped: the right code comes out, and nothing is left on any host.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use unisono_testbed::cluster::Cluster;
use unisono_testbed::leaks;
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::run::{
    Ended, Running, THREE, assert_hosts_are_quiet, cluster, mpirun, start, start_command,
};

crate::for_every_flavour!(
    the_exit_code_of_a_rank_comes_out,
    a_segmentation_fault_ends_the_job,
    an_mpi_abort_ends_the_job_with_its_code,
    an_interrupt_in_the_middle_ends_everything,
    ranks_that_ignore_signals_end_with_their_launcher,
    daemons_that_ranks_leave_behind_end_with_the_job,
    a_killed_mpirun_leaves_nothing_anywhere_under_ready,
);

/// How long somebody waits for a launcher that hangs before they kill it.
const PATIENCE: Duration = Duration::from_secs(10);

/// When everything is gone after the agent's client is: the agent takes less than 5 s, and spinning ranks on two cores may leave it
/// little of that time.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(20);

/// The end of a job in which a rank ended badly. After that Open MPI 5's launcher hangs now and then, whatever reaches its
/// hosts (docs/mpi.md); then it is killed, as somebody who waits for it would do, and what is left to show is that everything goes with it.
fn end_or_kill(mut running: Running<'_>, flavour: Flavour) -> Option<Ended> {
    if flavour != Flavour::OpenMpi5 || running.ends_within(PATIENCE) {
        return Some(running.end());
    }
    running.signal(Signal::KILL);
    assert!(!running.end().status.success(), "a killed job did not succeed");
    None
}

fn the_exit_code_of_a_rank_comes_out(flavour: Flavour) {
    let cluster = cluster(THREE);
    let running = start(&cluster, flavour, 6, Program::ExitCode, &["4", "3"]);
    let Some(ended) = end_or_kill(running, flavour) else {
        return assert_hosts_are_quiet(cluster.hosts.iter().skip(1), GONE_WITHIN);
    };
    // Intel MPI gives -1 about every second time, through ssh too.
    let expected: &[i32] = if flavour == Flavour::IntelMpi { &[3, 255] } else { &[3] };
    let code = ended.status.code().unwrap();
    assert!(expected.contains(&code), "{code}: {}{}", ended.stdout, ended.stderr);
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);
}

fn a_segmentation_fault_ends_the_job(flavour: Flavour) {
    let cluster = cluster(THREE);
    let running = start(&cluster, flavour, 6, Program::Segfault, &["5"]);
    let Some(ended) = end_or_kill(running, flavour) else {
        return assert_hosts_are_quiet(cluster.hosts.iter().skip(1), GONE_WITHIN);
    };
    // What each launcher makes of a dead rank: 128 + 11, its own error class, the bare signal or -1, whichever it learns first.
    let expected: &[i32] = match flavour {
        Flavour::OpenMpi4 => &[139],
        Flavour::OpenMpi5 => &[139, 14],
        Flavour::Mpich => &[255, 11],
        Flavour::IntelMpi => &[255],
    };
    let code = ended.status.code().unwrap();
    assert!(expected.contains(&code), "{code}: {}{}", ended.stdout, ended.stderr);
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);
}

fn an_mpi_abort_ends_the_job_with_its_code(flavour: Flavour) {
    let cluster = cluster(THREE);
    let running = start(&cluster, flavour, 6, Program::Abort, &["3", "42"]);
    let Some(ended) = end_or_kill(running, flavour) else {
        return assert_hosts_are_quiet(cluster.hosts.iter().skip(1), GONE_WITHIN);
    };
    assert_eq!(ended.status.code(), Some(42), "{}{}", ended.stdout, ended.stderr);
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);
}

fn an_interrupt_in_the_middle_ends_everything(flavour: Flavour) {
    let cluster = cluster(THREE);
    let mut running = start(&cluster, flavour, 6, Program::Wait, &["600"]);
    running.wait_for_lines("waiting", 6);
    running.signal(Signal::INT);
    assert!(!running.end().status.success(), "an interrupted job did not succeed");
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);
}

fn ranks_that_ignore_signals_end_with_their_launcher(flavour: Flavour) {
    let cluster = cluster(THREE);
    let mut running = start(&cluster, flavour, 6, Program::Wait, &["600", "ignore-term"]);
    running.wait_for_lines("waiting", 6);
    running.signal(Signal::KILL);
    running.end();
    assert_hosts_are_quiet(cluster.hosts.iter().skip(1), GONE_WITHIN);
}

fn daemons_that_ranks_leave_behind_end_with_the_job(flavour: Flavour) {
    let cluster = cluster(THREE);
    let mut running = start(&cluster, flavour, 6, Program::Daemon, &["600"]);
    running.wait_for_lines("waiting", 6);
    running.signal(Signal::KILL);
    running.end();
    assert_hosts_are_quiet(cluster.hosts.iter().skip(1), GONE_WITHIN);
}

/// On the launcher's own host ranks are children of `mpirun`, whom no connection guards; `ready` guards them.
fn a_killed_mpirun_leaves_nothing_anywhere_under_ready(flavour: Flavour) {
    let cluster = cluster(THREE);
    let mpirun = mpirun(&cluster, flavour, 6, Program::Wait, &["600", "ignore-term"]);
    let mut running = start_command(&cluster, under_ready(&cluster, &mpirun).stdin(Stdio::null()));
    running.wait_for_lines("waiting", 6);
    let launcher = launcher_pid(&cluster, flavour);
    rustix::process::kill_process(launcher, Signal::KILL).unwrap();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(137), "{}{}", ended.stdout, ended.stderr);
    assert_hosts_are_quiet(&cluster.hosts, GONE_WITHIN);
}

/// The same command with `unisono-agent ready --` before it.
fn under_ready(cluster: &Cluster, mpirun: &Command) -> Command {
    let words: Vec<&OsStr> = mpirun.get_args().collect();
    let after_enter = words.iter().position(|it| *it == "--").unwrap() + 1;
    let mut command = cluster.command(&cluster.folder().join("unisono-agent"));
    command.args(["ready", "--"]).args(&words[after_enter..]);
    command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The launcher itself, seen from this machine; its ranks have the same words in their command lines, but not first.
fn launcher_pid(cluster: &Cluster, flavour: Flavour) -> Pid {
    let name = match flavour {
        Flavour::OpenMpi4 => "mpirun.openmpi -np",
        Flavour::OpenMpi5 => "prterun -np",
        Flavour::Mpich | Flavour::IntelMpi => "mpiexec.hydra -np",
    };
    let mut candidates = leaks::processes_in(cluster.hosts[0].pid()).filter(|it| {
        let line = leaks::command_line(*it);
        line.contains(name) && !line.contains(" ready -- ")
    });
    let pid = candidates.next().expect("the launcher runs");
    Pid::from_raw(pid.try_into().unwrap()).unwrap()
}
