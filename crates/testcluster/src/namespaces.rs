//! The walls of a cluster: its first process, and the ways in.
//!
//! A cluster is one process tree below a `sh` that is process 1 of its own PID, network, mount, IPC
//! and UTS namespaces (`scripts/init.sh`). Nothing on the machine's disk says that it exists: it is
//! found by the mark on that process' command line, and its files are read through
//! `/proc/PID/root`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{cache, cgroups, network, wait};

const KEEPER: &str = include_str!("../scripts/keeper.sh");
const INIT: &str = include_str!("../scripts/init.sh");

/// The word by which a cluster's first process is known; its name follows.
const CLUSTER_MARK: &str = "unisono-cluster";

/// The word by which the process that cleans up after a cluster is known; its name follows.
const KEEPER_MARK: &str = "unisono-cluster-keeper";

/// Where a cluster keeps its files, as its own processes see it: memory, gone with them.
pub(crate) const HOME: &str = "/mnt";

/// Where the machine's cache is, as a cluster's processes see it.
pub(crate) const CACHE: &str = "/mnt/cache";

/// One living cluster's first process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walls {
    init: Pid,
}

/// What keeps a cluster alive: as long as it is held, the cluster lives; when it goes, also by
/// the death of the process that holds it, the cluster ends.
#[derive(Debug)]
pub(crate) struct Lease {
    keeper: Child,
    pipe: Option<ChildStdin>,
}

impl Lease {
    /// Starts an empty cluster.
    pub(crate) fn start(name: &str) -> anyhow::Result<(Self, Walls)> {
        ensure!(Walls::find(name)?.is_none(), "a cluster called {name} is already running");
        cgroups::sweep()?;
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, KEEPER_MARK, name])
            .env("INIT", INIT)
            .env("CACHE", cache::cluster_root()?)
            .env("ROUTER", network::ROUTER)
            .env("SERVICES", [network::API_SERVICE, network::DNS_SERVICE].join(" "))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not the caller's own: whoever reads that to its end would wait for the cluster's.
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("start the first process of a cluster")?;
        let pipe = keeper.stdin.take();
        let mut said = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut said)
                .context("listen to the first process of a cluster")?;
        }
        let mut lease = Self { keeper, pipe };
        if said != "ready\n" {
            bail!("the namespaces of a cluster could not be set up: {}", lease.last_words()?);
        }
        let walls = Walls::find(name)?.context("the first process of a cluster has gone")?;
        Ok((lease, walls))
    }

    /// Ends what could not start and returns what it said.
    fn last_words(&mut self) -> anyhow::Result<String> {
        drop(self.pipe.take());
        let mut said = String::new();
        if let Some(mut stderr) = self.keeper.stderr.take() {
            stderr.read_to_string(&mut said).context("listen to what could not start")?;
        }
        self.keeper.wait().context("wait for what could not start")?;
        Ok(said)
    }

    /// Lets the cluster live on without an owner.
    pub(crate) fn release(mut self) -> anyhow::Result<()> {
        let mut pipe = self.pipe.take().context("a lease is released once")?;
        pipe.write_all(b"stay\n").context("release a cluster")
    }

    /// Ends the cluster and returns when nothing of it is left.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        drop(self.pipe.take());
        self.keeper.wait().context("wait for a cluster to end")?;
        Ok(())
    }
}

impl Walls {
    /// The running cluster of this name, if there is one.
    pub(crate) fn find(name: &str) -> anyhow::Result<Option<Self>> {
        Ok(process_one(&[CLUSTER_MARK, name])?.map(|init| Self { init }))
    }

    /// A file of the cluster, as seen from the machine.
    pub(crate) fn path(self, inside: impl AsRef<Path>) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.init));
        let inside = inside.as_ref();
        root.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// A command that will run as a process of the cluster, seeing its files and its network.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--mount", "--net", "--pid", "--ipc", "--uts", "--target"])
            .arg(self.init.to_string())
            .arg("--")
            .arg(program)
            .env("TMPDIR", "/mnt/tmp")
            .process_group(0);
        command
    }

    /// A command that will run on the machine, but in the cluster's network.
    pub(crate) fn network_command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.network_path().display())).arg("--").arg(program);
        command
    }

    /// Moves the calling thread into the cluster's network; threads and processes that it starts
    /// from now on are there, too.
    pub(crate) fn enter_network(self) -> anyhow::Result<()> {
        let network = File::open(self.network_path()).context("find the cluster's network")?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .context("enter the cluster's network")
    }

    /// Runs `work` in the cluster's network, and the caller stays where it is.
    pub(crate) fn inside<T: Send>(
        self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    self.enter_network()?;
                    work()
                })
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Kills the cluster's first process, and with it the cluster; returns when its keeper is done.
    pub(crate) fn kill(self, name: &str) -> anyhow::Result<()> {
        kill(self.init)?;
        wait::until(Duration::from_secs(30), "the cluster to end", || {
            let keepers = marked(&[KEEPER_MARK, name])?;
            Ok((Self::find(name)?.is_none() && keepers.is_empty()).then_some(()))
        })
    }

    /// Kills every process of the cluster that runs this program, but not those that run inside nodes.
    pub(crate) fn kill_program(self, program: &str) -> anyhow::Result<()> {
        let space = |process: Pid| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let own = space(self.init);
        let runs = |words: &[String]| {
            words.first().is_some_and(|it| it.rsplit('/').next() == Some(program))
        };
        let running: Vec<Pid> = command_lines()?
            .filter(|(process, words)| runs(words) && space(*process) == own)
            .map(|(process, _)| process)
            .collect();
        ensure!(!running.is_empty(), "no process of the cluster runs {program}");
        running.into_iter().try_for_each(kill)
    }

    pub(crate) fn pid(self) -> Pid {
        self.init
    }

    fn network_path(self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.init))
    }
}

/// The names of all clusters that run, those that are just ending among them.
pub(crate) fn names() -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = command_lines()?
        .filter_map(|(_, words)| match words.as_slice() {
            [shell, _, _, mark, name]
                if shell == "sh" && [KEEPER_MARK, CLUSTER_MARK].contains(&mark.as_str()) =>
            {
                Some(name.clone())
            }
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The shell that was given exactly these words and is process 1 of its namespace, as the machine
/// counts processes. The jobs that a shell starts in the background have its command line, too.
pub(crate) fn process_one(mark: &[&str]) -> anyhow::Result<Option<Pid>> {
    Ok(marked(mark)?.into_iter().find(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|line| line.split_whitespace().last()) == Some("1")
    }))
}

/// All shells whose script was given exactly these words.
fn marked(mark: &[&str]) -> anyhow::Result<Vec<Pid>> {
    let is_marked = |words: &[String]| {
        words.len() == 3 + mark.len() && words[0] == "sh" && words[3..].iter().eq(mark)
    };
    Ok(command_lines()?.filter(|(_, words)| is_marked(words)).map(|(pid, _)| pid).collect())
}

/// Kills a process; one that is gone already is no fault.
pub(crate) fn kill(process: Pid) -> anyhow::Result<()> {
    match kill_process(process, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(fault) => bail!("kill process {process}: {fault}"),
    }
}

/// Every process of the machine with its command line. A process that ends meanwhile has none.
fn command_lines() -> anyhow::Result<impl Iterator<Item = (Pid, Vec<String>)>> {
    let processes = fs::read_dir("/proc").context("list processes")?;
    Ok(processes.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words = line.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
        Some((pid, words.collect()))
    }))
}
