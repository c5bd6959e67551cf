//! What parts of a cluster have cost: processor time and memory from the kernel, and writes from
//! etcd.

use std::fs;
use std::ops::Add;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rustix::param::clock_ticks_per_second;

use crate::namespaces::Walls;

/// Where etcd answers, in the cluster's network.
pub(crate) const ETCD_URL: &str = "http://127.0.0.1:2379";

/// What one process has used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, in user and system mode, of the process and the children it has waited for.
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
    let text =
        fs::read_to_string("/proc/thread-self/schedstat").context("ask for a thread's time")?;
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
    let read = |file: &str| {
        let path = process.join(file);
        fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    };
    parse(&read("stat")?, &read("status")?)
        .with_context(|| format!("understand {}", process.display()))
}

fn parse(stat: &str, status: &str) -> anyhow::Result<Usage> {
    // The second field is the program's name in parentheses, and may itself hold both.
    let (_, fields) = stat.rsplit_once(") ").context("no program name")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: u64 = fields
        .get(11..15)
        .context("too few fields")?
        .iter()
        .map(|field| field.parse().unwrap_or(0_u64))
        .sum();
    let kibibytes = |label: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(label));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.with_context(|| format!("no {label}"))
    };
    Ok(Usage {
        processor: Duration::from_millis(ticks * 1000 / clock_ticks_per_second()),
        resident: kibibytes("VmRSS:")? * 1024,
        peak: kibibytes("VmHWM:")? * 1024,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_a_parenthesis_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 100 50 30 20 20 0 1 0";
        let status = "Name:\ta) b\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let usage = parse(stat, status).unwrap();
        assert_eq!(usage.processor, Duration::from_millis(200 * 1000 / clock_ticks_per_second()));
        assert_eq!((usage.resident, usage.peak), (1024 * 1024, 2048 * 1024));
    }

    #[test]
    fn this_process_has_used_memory() {
        assert!(of_process(std::process::id()).unwrap().resident > 0);
    }
}
