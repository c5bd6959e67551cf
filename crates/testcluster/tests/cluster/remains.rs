//! Clusters do not disturb one another, and leave nothing, whichever way they end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use unisono_testcluster::{Cluster, Options, cgroups_on_machine, wait};

use crate::pods;

/// Tells this program to be the owner of a cluster and nothing else.
const OWNER: &str = "UNISONO_TEST_OWNER";

pub(crate) fn second_cluster(first: &Cluster) -> anyhow::Result<()> {
    let second = Cluster::start(&small())?;
    for (cluster, word) in [(first, "first"), (&second, "second")] {
        pods::create(cluster, &pods::pod("same", "node-1", &format!("echo {word}")))?;
    }
    for (cluster, word) in [(first, "first"), (&second, "second")] {
        pods::wait_for(cluster, "same", "Succeeded")?;
        ensure!(cluster.kubectl(&["logs", "same"])?.trim() == word);
    }
    let traces = Traces::of(&second)?;
    second.down()?;
    traces.must_be_gone()?;
    ensure!(first.is_ready("node-1")?, "the first went with the second");
    pods::delete(first, "same")
}

pub(crate) fn ten_times() -> anyhow::Result<()> {
    let before = machine()?;
    for _ in 0..10 {
        let cluster = Cluster::start(&small())?;
        let traces = Traces::of(&cluster)?;
        cluster.down()?;
        traces.must_be_gone()?;
    }
    let left: Vec<_> = machine()?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "left on the machine: {left:#?}");
    Ok(())
}

pub(crate) fn first_process_killed() -> anyhow::Result<()> {
    let cluster = Cluster::start(&small())?;
    pods::create(&cluster, &pods::pod("alive", "node-1", "sleep 600"))?;
    pods::wait_for(&cluster, "alive", "Running")?;
    let traces = Traces::of(&cluster)?;
    let killed =
        Command::new("kill").arg("-KILL").arg(cluster.first_process().to_string()).status()?;
    ensure!(killed.success());
    traces.wait_until_gone()
}

pub(crate) fn owner_killed() -> anyhow::Result<()> {
    let mut owner = Command::new(std::env::current_exe()?)
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .context("start an owner")?;
    let mut name = String::new();
    BufReader::new(owner.stdout.take().context("no pipe")?).read_line(&mut name)?;
    let cluster = Cluster::attach(name.trim())?;
    ensure!(cluster.is_ready("node-1")?);
    // A node that is frozen must not keep the cluster from ending.
    cluster.nodes()[0].freeze()?;
    let traces = Traces::of(&cluster)?;
    owner.kill()?;
    owner.wait()?;
    traces.wait_until_gone()
}

pub(crate) fn keeper_killed() -> anyhow::Result<()> {
    let cluster = Cluster::start(&small())?;
    let traces = Traces::of(&cluster)?;
    // The keeper is the parent of the parent of the cluster's first process.
    let keeper = parent(&parent(&cluster.first_process().to_string())?)?;
    ensure!(Command::new("kill").args(["-KILL", &keeper]).status()?.success());
    wait::until(Duration::from_secs(30), "all processes to be gone", || {
        let left = traces.left()?;
        Ok(left.iter().all(|it| it.starts_with("/sys")).then_some(()))
    })?;
    drop(cluster);
    // What nobody was left to remove is removed by the next.
    Cluster::start(&small())?.down()?;
    traces.must_be_gone()
}

fn parent(process: &str) -> anyhow::Result<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
    Ok(line.context("no parent")?.to_owned())
}

/// Whether this process was started to be an owner that gets killed.
pub(crate) fn is_owner() -> bool {
    std::env::var_os(OWNER).is_some()
}

/// Starts a cluster, says its name, and waits to be killed.
pub(crate) fn own_until_killed() -> ExitCode {
    let cluster = Cluster::start(&small()).unwrap();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", cluster.name()).unwrap();
    stdout.flush().unwrap();
    loop {
        std::thread::park();
    }
}

fn small() -> Options {
    Options { nodes: 1, ..Options::default() }
}

/// By what a cluster can be known after it has ended.
struct Traces {
    name: String,
    /// Every namespace of its processes that is not the machine's. They are held open, so that the
    /// kernel gives their numbers to nobody else.
    namespaces: BTreeMap<PathBuf, File>,
}

impl Traces {
    fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{}/root/proc", cluster.first_process()));
        let mut namespaces = BTreeMap::new();
        for entry in fs::read_dir(proc)? {
            namespaces.extend(namespaces_of(&entry?.path()));
        }
        for (own, _) in namespaces_of(Path::new("/proc/self")) {
            namespaces.remove(&own);
        }
        // The cluster's own five, and six of a node.
        ensure!(namespaces.len() >= 11, "{namespaces:?}");
        Ok(Self { name: cluster.name().to_owned(), namespaces })
    }

    fn must_be_gone(&self) -> anyhow::Result<()> {
        let left = self.left()?;
        ensure!(left.is_empty(), "left behind: {left:?}");
        Ok(())
    }

    fn wait_until_gone(&self) -> anyhow::Result<()> {
        wait::until(Duration::from_secs(30), "a cluster to be gone", || {
            Ok(self.left()?.is_empty().then_some(()))
        })
    }

    /// Processes in its namespaces, processes that name it, and cgroups.
    fn left(&self) -> anyhow::Result<Vec<String>> {
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let process = entry?.path();
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let inside =
                namespaces_of(&process).iter().any(|(it, _)| self.namespaces.contains_key(it));
            let named = line.split('\0').any(|word| word.split('/').next() == Some(&self.name));
            if inside || named {
                left.push(format!("{}: {line}", process.display()));
            }
        }
        let cgroups = cgroups_on_machine()?.into_iter().map(|path| path.display().to_string());
        left.extend(cgroups.filter(|path| path.ends_with(&format!("unisono-{}", self.name))));
        Ok(left)
    }
}

/// The namespaces of a process, by their numbers.
fn namespaces_of(process: &Path) -> Vec<(PathBuf, File)> {
    ["cgroup", "ipc", "mnt", "net", "pid", "uts"]
        .iter()
        .filter_map(|kind| {
            let path = process.join("ns").join(kind);
            let file = File::open(&path).ok()?;
            Some((fs::read_link(path).ok()?, file))
        })
        .collect()
}

/// What of the machine a cluster could have changed: mounts, files and links where it has its own.
fn machine() -> anyhow::Result<BTreeSet<String>> {
    const FOLDERS: [&str; 5] = ["/mnt", "/run", "/sys", "/var/lib", "/var/log"];
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let ours = |line: &&str| {
        let place = line.split(' ').nth(1).unwrap_or_default();
        FOLDERS.iter().any(|folder| place.starts_with(folder))
    };
    let mut all: BTreeSet<String> = mounts.lines().filter(ours).map(str::to_owned).collect();
    for folder in ["/sys/class/net", "/mnt", "/run", "/var/lib", "/var/log"] {
        for entry in fs::read_dir(folder)? {
            all.insert(entry?.path().display().to_string());
        }
    }
    Ok(all)
}
