//! What the operator costs: many jobs on fake nodes, against a client that only sends the least that they need and, where
//! `REF_OPERATOR_BIN` names the program of another operator, against that.
//!
//! Numbers that noise cannot move come first: requests and writes for each job. Wall time is of this machine only. The arms take
//! turns, and medians are shown. `UNISONO_BENCH=1x64,100x4` chooses the sizes, `UNISONO_BENCH_REPEATS=7` how often; `memory` among the
//! sizes is what operators have in memory.

mod arms;
#[path = "../../tests/cluster/faults.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod faults;
mod inside;
mod kubelet;
#[path = "../measure/mod.rs"]
mod measure;
mod memory;
mod null;
#[path = "../../tests/cluster/operator.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod operator;
mod reference;
#[path = "../../tests/cluster/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use measure::print;
use unisono_testcluster::{Cluster, Options, wait};

/// As the program has it: this one plays the operator.
#[global_allocator]
static ALLOCATOR: unisono_operator::Allocator = unisono_operator::Allocator;

/// How often each arm runs, in turns.
const REPEATS: usize = 5;

/// How many jobs are created, or launchers ended, at once.
const AT_ONCE: usize = 16;

/// How long one size may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many leases 20 fake nodes, a real one and the cluster's own programs renew in a second, at most.
const MOST_LEASES: u64 = 40;

/// So many jobs of so many workers.
#[derive(Clone, Copy)]
struct Size {
    jobs: u32,
    workers: u32,
}

/// What one run of one arm cost.
struct Cost {
    /// From the first job's creation to the last pod's.
    pods: f64,
    seconds: f64,
    requests: u64,
    revisions: u64,
    processor: Duration,
    /// The most memory that it had; the null operator is part of this program.
    peak: Option<u64>,
}

/// One way to run jobs.
struct Arm {
    name: &'static str,
    take: fn(&Cluster, Size) -> anyhow::Result<Cost>,
}

fn main() -> ExitCode {
    measure::take(run)
}

fn run() -> anyhow::Result<()> {
    let sizes = setting("UNISONO_BENCH").unwrap_or("memory,1x64,1x256,100x4,1000x2".to_owned());
    let repeats = setting("UNISONO_BENCH_REPEATS").map_or(Ok(REPEATS), |it| it.parse())?;
    ensure!(repeats > 0, "UNISONO_BENCH_REPEATS is at least 1");
    let cluster = Cluster::start(&Options { nodes: 1, ..Options::default() })?;
    cluster.add_fake_nodes(20, 200)?;
    let mut arms = vec![
        Arm { name: "unisono", take: arms::own },
        Arm { name: "unisono, v2beta1", take: arms::own_v2beta1 },
        Arm { name: "null, same pods", take: null::with_same_pods },
        Arm { name: "null", take: null::with_bare_pods },
    ];
    if reference::program().is_some() {
        arms.insert(2, Arm { name: "reference, v2beta1", take: arms::reference });
    }
    let mut has_header = false;
    for size in sizes.split(',') {
        if size == "memory" {
            memory::print_all(&cluster)?;
            continue;
        }
        if !std::mem::replace(&mut has_header, true) {
            header();
        }
        table(&cluster, size, &arms, repeats)?;
    }
    Ok(())
}

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn header() {
    print(
        "| jobs x workers | arm | last pod s | makespan s | over null | requests per job | etcd writes per job | CPU ms per job | peak RSS MiB |",
    );
    print("|---|---|---|---|---|---|---|---|---|");
}

/// Runs all arms of one size in turns, and prints a line for each.
fn table(cluster: &Cluster, size: &str, arms: &[Arm], repeats: usize) -> anyhow::Result<()> {
    let (jobs, workers) = size.split_once('x').context("a size is JOBSxWORKERS")?;
    let size = Size { jobs: jobs.parse()?, workers: workers.parse()? };
    let mut costs: Vec<Vec<Cost>> = arms.iter().map(|_| Vec::new()).collect();
    // A young API server has room for few events: it cuts watches that do not keep up with a burst, and makes room as it sees more.
    arms::own(cluster, size).context("warm up")?;
    for _ in 0..repeats {
        for (arm, costs) in arms.iter().zip(&mut costs) {
            settle(cluster)?;
            costs.push((arm.take)(cluster, size).context(arm.name)?);
        }
    }
    let null = costs.last().map_or(f64::NAN, |it| median(it, |cost| cost.seconds));
    for (arm, costs) in arms.iter().zip(&costs) {
        print(&line(size, arm.name, costs, null));
    }
    Ok(())
}

/// Waits until the cluster has done with what an earlier run left: only leases are renewed.
fn settle(cluster: &Cluster) -> anyhow::Result<()> {
    let look = Duration::from_secs(1);
    wait::until(PATIENCE, "the cluster to be quiet", || {
        let before = cluster.etcd_revision()?;
        std::thread::sleep(look);
        Ok((cluster.etcd_revision()? < before + MOST_LEASES).then_some(()))
    })
}

fn line(size: Size, arm: &str, costs: &[Cost], null: f64) -> String {
    let Size { jobs, workers } = size;
    let each = |value: fn(&Cost) -> f64| median(costs, value) / f64::from(jobs);
    let seconds = median(costs, |it| it.seconds);
    let processor = each(|it| it.processor.as_secs_f64() * 1000.0);
    let peak = match costs.iter().all(|it| it.peak.is_some()) {
        true => format!("{:.1}", median(costs, |it| it.peak.map_or(0.0, mib))),
        false => "–".to_owned(),
    };
    format!(
        "| {jobs} x {workers} | {arm} | {:.2} | {seconds:.2} | {:.2} | {:.1} | {:.1} | {processor:.1} | {peak} |",
        median(costs, |it| it.pods),
        seconds / null,
        each(|it| it.requests as f64),
        each(|it| it.revisions as f64),
    )
}

fn median(costs: &[Cost], value: impl Fn(&Cost) -> f64) -> f64 {
    let mut values: Vec<f64> = costs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
