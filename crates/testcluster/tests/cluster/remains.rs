//! Clusters do not disturb one another, and leave nothing, whichever way they end.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
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
    let after = machine()?;
    ensure!(before == after, "before: {before:#?}\nafter: {after:#?}");
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
    /// Every namespace of its processes that is not the machine's.
    namespaces: BTreeSet<PathBuf>,
}

impl Traces {
    fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{}/root/proc", cluster.first_process()));
        let mut namespaces = BTreeSet::new();
        for entry in fs::read_dir(proc)? {
            namespaces.extend(namespaces_of(&entry?.path()));
        }
        for own in namespaces_of(&PathBuf::from("/proc/self")) {
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
            let inside = namespaces_of(&process).iter().any(|it| self.namespaces.contains(it));
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

fn namespaces_of(process: &std::path::Path) -> Vec<PathBuf> {
    ["cgroup", "ipc", "mnt", "net", "pid", "uts"]
        .iter()
        .filter_map(|kind| fs::read_link(process.join("ns").join(kind)).ok())
        .collect()
}

/// What of the machine itself could be changed: mounts, links, temporary files.
fn machine() -> anyhow::Result<Vec<String>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut all: Vec<String> = mounts.lines().map(str::to_owned).collect();
    for folder in ["/sys/class/net", "/run", "/mnt", "/var/lib"] {
        for entry in fs::read_dir(folder)? {
            all.push(entry?.path().display().to_string());
        }
    }
    all.sort();
    Ok(all)
}
