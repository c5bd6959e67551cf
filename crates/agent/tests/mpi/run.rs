//! Runs one program under one MPI over one cluster, with a deadline: a hang is a failure that shows who hung.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use unisono_testbed::cluster::{Cluster, Launcher, Shape};
use unisono_testbed::hosts::{Host, Network};
use unisono_testbed::leaks;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};

use crate::agent_transport::Agent;

/// Long enough for a loaded machine of two cores; a healthy run takes a second.
const DEADLINE: Duration = Duration::from_secs(240);

/// Three hosts with two slots each on the machine's network.
pub(crate) const THREE: Shape =
    Shape { hosts: 3, slots: 2, network: Network::Shared, launcher: Launcher::FirstHost };

/// A cluster reached by the agent.
pub(crate) fn cluster(shape: Shape) -> Cluster {
    let program = Path::new(env!("CARGO_BIN_EXE_unisono-agent"));
    Cluster::start(shape, &mut Agent::new(program)).unwrap()
}

/// How a run ended and what it wrote.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Fails the test unless the run succeeded.
    pub(crate) fn expect_success(self) -> Self {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// Ranks per host as told by lines `rank R of N on HOST…`.
    pub(crate) fn ranks_per_host(&self) -> BTreeMap<String, usize> {
        let mut hosts = BTreeMap::new();
        for line in self.stdout.lines().filter(|it| it.starts_with("rank ")) {
            let host = line.split_whitespace().nth(5).unwrap().trim_end_matches(':');
            *hosts.entry(host.to_owned()).or_default() += 1;
        }
        hosts
    }
}

/// So many ranks on each of so many workers.
pub(crate) fn spread(hosts: usize, slots: usize) -> BTreeMap<String, usize> {
    (0..hosts).map(|it| (format!("worker-{it}"), slots)).collect()
}

/// An `mpirun` that was started.
pub(crate) struct Running<'a> {
    cluster: &'a Cluster,
    pub(crate) child: Child,
    name: String,
}

/// Starts `mpirun -np RANKS PROGRAM ARGUMENTS…` in the first host.
pub(crate) fn start<'a>(
    cluster: &'a Cluster,
    flavour: Flavour,
    ranks: usize,
    program: Program,
    arguments: &[&str],
) -> Running<'a> {
    let mut command = mpirun(cluster, flavour, ranks, program, arguments);
    start_command(cluster, command.stdin(Stdio::null()))
}

/// The command that [`start`] starts.
pub(crate) fn mpirun(
    cluster: &Cluster,
    flavour: Flavour,
    ranks: usize,
    program: Program,
    arguments: &[&str],
) -> Command {
    let mpi = mpi::find(flavour).unwrap();
    let program = compile(program, &mpi).unwrap();
    let mut command = cluster.mpirun(&mpi);
    command.arg("-np").arg(ranks.to_string()).arg(program).args(arguments);
    command
}

/// Starts a command with its output in files, so that nobody has to read it while it runs.
pub(crate) fn start_command<'a>(cluster: &'a Cluster, command: &mut Command) -> Running<'a> {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("run-{number}");
    let file = |kind: &str| File::create(cluster.folder().join(format!("{name}.{kind}"))).unwrap();
    let child = command.stdout(file("out")).stderr(file("err")).spawn().unwrap();
    Running { cluster, child, name }
}

impl Running<'_> {
    /// What it has written so far.
    pub(crate) fn stdout(&self) -> String {
        self.read("out")
    }

    fn read(&self, kind: &str) -> String {
        let path = self.cluster.folder().join(format!("{}.{kind}", self.name));
        String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
    }

    /// Waits until it has written so many lines that begin with `word`.
    pub(crate) fn wait_for_lines(&mut self, word: &str, count: usize) {
        let lines = |text: String| text.lines().filter(|it| it.starts_with(word)).count();
        let end = Instant::now() + DEADLINE;
        while lines(self.stdout()) < count {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < end,
                "no {count} lines {word}: {}",
                self.told()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to `mpirun` itself.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    /// Whether it ends by itself within this time.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let end = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let told = self.told();
                self.child.kill().unwrap();
                panic!("it hangs: {told}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Ended { status, stdout: self.stdout(), stderr: self.read("err") }
    }

    fn told(&self) -> String {
        let mut told =
            vec![format!("stdout: {}", self.stdout()), format!("stderr: {}", self.read("err"))];
        for host in &self.cluster.hosts {
            told.push(format!("{}: {}", host.name(), host.log()));
            let lines = leaks::command_lines_in(host.pid());
            told.extend(lines.iter().map(|it| format!("    {it:.200}")));
        }
        told.join("\n")
    }
}

/// Waits until nothing but process 1 runs on these hosts.
pub(crate) fn assert_hosts_are_quiet<'a>(
    hosts: impl IntoIterator<Item = &'a Host>,
    within: Duration,
) {
    let end = Instant::now() + within;
    for host in hosts {
        loop {
            let others: Vec<u32> =
                leaks::processes_in(host.pid()).filter(|it| *it != host.pid()).collect();
            if others.is_empty() {
                break;
            }
            let lines = leaks::command_lines_in(host.pid());
            assert!(Instant::now() < end, "{} still runs {lines:#?}", host.name());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
