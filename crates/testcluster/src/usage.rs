//! What parts of a cluster have cost: processor time and memory from the kernel, and writes from
//! etcd.

use std::fs;
use std::ops::Add;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::namespaces::Walls;

/// Where etcd answers, in the cluster's network.
pub(crate) const ETCD_URL: &str = "http://127.0.0.1:2379";

/// What one process has used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, in user and system mode, of the threads that the process has.
    pub processor: Duration,
    /// Memory in use, in bytes.
    pub resident: u64,
    /// The most memory that ever was in use, in bytes.
    pub peak: u64,
}

/// What a process has used so far, by its number on the machine.
pub fn of_process(pid: u32) -> anyhow::Result<Usage> {
    read(&Path::new("/proc").join(pid.to_string()))
}

/// The processor time of the calling thread.
pub fn of_this_thread() -> anyhow::Result<Duration> {
    of_thread(Path::new("/proc/thread-self"))
}

/// The kernel counts nanoseconds here; what it tells of whole processes is rounded to hundredths of a second, too coarse for one job.
fn of_thread(thread: &Path) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).context("ask for a thread's time")?;
    let nanoseconds = text.split_whitespace().next().and_then(|digits| digits.parse().ok());
    nanoseconds.map(Duration::from_nanos).context("the kernel says no time")
}

/// What all processes of the cluster that run this program have used so far, added up.
pub(crate) fn of_program(walls: Walls, program: &str) -> anyhow::Result<Usage> {
    // The cluster's own /proc has its processes, those of all nodes and pods among them.
    let processes = fs::read_dir(walls.path("/proc")).context("list a cluster's processes")?;
    processes
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|process| runs(process, program))
        .map(|process| read(&process))
        .reduce(|sum, usage| Ok(sum? + usage?))
        .with_context(|| format!("no process of the cluster runs {program}"))?
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            processor: self.processor + other.processor,
            resident: self.resident + other.resident,
            peak: self.peak + other.peak,
        }
    }
}

/// The number of writes that etcd has seen since it is there.
pub(crate) fn etcd_revision(walls: Walls) -> anyhow::Result<u64> {
    let answer: serde_json::Value = walls.inside(|| {
        let mut response = ureq::post(format!("{ETCD_URL}/v3/maintenance/status"))
            .send("{}")
            .context("ask etcd")?;
        response.body_mut().read_json().context("read etcd's answer")
    })?;
    // 64-bit numbers are strings in its JSON.
    let revision = answer["header"]["revision"].as_str();
    let revision = revision.and_then(|digits| digits.parse().ok());
    revision.context("etcd says no revision")
}

fn runs(process: &Path, program: &str) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    first.rsplit(|byte| *byte == b'/').next() == Some(program.as_bytes())
}

fn read(process: &Path) -> anyhow::Result<Usage> {
    let status = process.join("status");
    let status = fs::read_to_string(&status).with_context(|| format!("read {status:?}"))?;
    let threads = fs::read_dir(process.join("task")).context("list a process's threads")?;
    // One that ends meanwhile has no time to tell.
    let times = threads.filter_map(|thread| of_thread(&thread.ok()?.path()).ok());
    memory(&status, times.sum()).with_context(|| format!("understand {}", process.display()))
}

fn memory(status: &str, processor: Duration) -> anyhow::Result<Usage> {
    let bytes = |label: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(label));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes.map(|it| it * 1024).with_context(|| format!("no {label}"))
    };
    Ok(Usage { processor, resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_and_its_peak_are_told_apart() {
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let usage = memory(status, Duration::ZERO).unwrap();
        assert_eq!((usage.resident, usage.peak), (1024 * 1024, 2048 * 1024));
        assert!(memory("Name:\ta\n", Duration::ZERO).is_err());
    }

    #[test]
    fn this_process_has_used_memory_and_a_processor() {
        let usage = of_process(std::process::id()).unwrap();
        assert!(usage.resident > 0 && usage.processor > Duration::ZERO, "{usage:?}");
    }
}
