//! What `unisono run` adds: the same ranks by plain `mpirun` on the bare machine, by `mpirun` over isolated hosts that are up already
//! (through an agent of a page of C, below which nothing can go), and by `unisono run`, which makes the hosts, watches and removes them.
//!
//! Needs root and Open MPI 4 (`cargo xtask setup bench`). Prints a table of medians; the arms take turns in every repeat.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use unisono_testbed::cluster::{Cluster, Launcher, Shape};
use unisono_testbed::hosts::Network;
use unisono_testbed::mpi::{self, Flavour, Installation};
use unisono_testbed::transport::Floor;

const HOSTS: [usize; 4] = [1, 4, 16, 64];
const REPEATS: usize = 5;

/// When the first rank spoke and when all was over, since the start.
#[derive(Clone, Copy)]
struct Times {
    first: Duration,
    total: Duration,
}

#[expect(clippy::print_stdout, reason = "the table is what the measurement is for")]
fn main() {
    let mpi = mpi::find(Flavour::OpenMpi4).expect("Open MPI 4");
    println!(
        "| hosts | plain mpirun | hosts ready | unisono run | over plain | over ready | target | over plain, a host | first rank | first rank, a host |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for hosts in HOSTS {
        let mut arms: [Vec<Times>; 3] = Default::default();
        while arms[2].len() < REPEATS {
            arms[0].extend(timed(&mut plain(&mpi, hosts), hosts));
            arms[1].extend(on_ready_hosts(&mpi, hosts));
            arms[2].push(run(&mpi, hosts).expect("unisono runs it"));
        }
        let total = |arm: &[Times]| median(arm.iter().map(|it| it.total).collect());
        let [bare, ready, run] = [&arms[0], &arms[1], &arms[2]].map(|it| total(it));
        let first = median(arms[2].iter().map(|it| it.first).collect());
        let over = [bare, ready].map(|it| run.saturating_sub(it));
        let each = |time: Duration| time / u32::try_from(hosts).unwrap_or(u32::MAX);
        let times =
            [bare, ready, run, over[0], over[1], target(hosts), each(over[0]), first, each(first)];
        let cells = times.map(|it| format!("{} ms", it.as_millis())).join(" | ");
        println!("| {hosts} | {cells} |");
    }
}

/// What a run may take longer than plain `mpirun`: 60 ms, and 15 ms a host.
fn target(hosts: usize) -> Duration {
    Duration::from_millis(60 + 15 * hosts as u64)
}

/// It hangs now and then after commands as short as this (docs/mpi.md); such a run does not count.
fn plain(mpi: &Installation, ranks: usize) -> Command {
    let mut command = Command::new("timeout");
    command.arg("10").arg(&mpi.mpirun);
    command.args(["--allow-run-as-root", "--oversubscribe", "-np", &ranks.to_string(), "hostname"]);
    command
}

fn on_ready_hosts(mpi: &Installation, hosts: usize) -> Option<Times> {
    let shape = Shape { hosts, slots: 1, network: Network::Shared, launcher: Launcher::FirstHost };
    let cluster = Cluster::start(shape, &mut Floor::default()).expect("the hosts start");
    let mut command = cluster.mpirun(mpi);
    command.args(["-np", &hosts.to_string(), "--map-by", "node", "hostname"]);
    timed(&mut command, hosts)
}

fn run(mpi: &Installation, hosts: usize) -> Option<Times> {
    let home = tempfile::tempdir().expect("a home");
    let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
    command
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .args(["run", "--raw", "--slots", "1", "--hosts", &hosts.to_string(), "--mpi"])
        .arg(&mpi.prefix)
        .args(["--", "mpirun", "hostname"]);
    timed(&mut command, hosts)
}

/// None if not every rank spoke and ended well.
fn timed(command: &mut Command, ranks: usize) -> Option<Times> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    let spoke = usize::from(lines.next().is_some());
    let first = start.elapsed();
    let spoke = spoke + lines.count();
    let status = child.wait().expect("it ends");
    let total = start.elapsed();
    (status.success() && spoke == ranks).then_some(Times { first, total })
}

fn median(mut times: Vec<Duration>) -> Duration {
    assert!(!times.is_empty(), "no run of this arm ended well");
    times.sort();
    times[times.len() / 2]
}
