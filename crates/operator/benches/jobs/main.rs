//! What the operator costs: many jobs on fake nodes, against a client that only sends the least that they need.
//!
//! Numbers that noise cannot move come first: requests and writes for each job. Wall time is of this machine only.
//! `UNISONO_BENCH=1x64,100x4` chooses the sizes.

#[path = "../../tests/cluster/faults.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod faults;
mod kubelet;
#[path = "../measure/mod.rs"]
mod measure;
mod null;
#[path = "../../tests/cluster/operator.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod operator;
#[path = "../../tests/cluster/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use measure::print;
use operator::{Operator, USER};
use serde_json::{Value, json};
use support::jobs_path;
use unisono_testcluster::{Cluster, FAKE_NODE_TAINT, Options, audit, usage, wait};

/// How many objects of somebody else there are.
const FOREIGN: u32 = 700;

/// How long nothing happens.
const QUIET: Duration = Duration::from_secs(60);

/// How long one size may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// One size and what it cost.
struct Row {
    jobs: u32,
    workers: u32,
    arm: &'static str,
    /// From the first job's creation to the last pod's.
    pods: f64,
    seconds: f64,
    requests: u64,
    revisions: u64,
    processor: Duration,
    peak: u64,
}

fn main() -> ExitCode {
    measure::take(run)
}

fn run() -> anyhow::Result<()> {
    let sizes =
        std::env::var("UNISONO_BENCH").unwrap_or_else(|_| "1x64,1x256,100x4,1000x2".to_owned());
    let cluster = Cluster::start(&Options { nodes: 1, ..Options::default() })?;
    cluster.add_fake_nodes(20, 200)?;
    idle(&cluster)?;
    crowd(&cluster)?;
    print(
        "| jobs x workers | arm | last pod s | makespan s | over null | requests per job | etcd writes per job | CPU ms per job | peak RSS MiB |",
    );
    print("|---|---|---|---|---|---|---|---|---|");
    for size in sizes.split(',') {
        let (jobs, workers) = size.split_once('x').context("a size is JOBSxWORKERS")?;
        let (jobs, workers) = (jobs.parse()?, workers.parse()?);
        let (own, null) =
            (by_operator(&cluster, jobs, workers)?, null::run(&cluster, jobs, workers)?);
        print(&own.line(own.seconds / null.seconds));
        print(&null.line(1.0));
    }
    Ok(())
}

/// What an operator has in memory that has nothing to do, among many objects that are none of its business.
fn idle(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    settle(cluster)?;
    let before = usage::of_process(operator.pid())?.resident;
    let filling = "x".repeat(200_000);
    for number in 0..FOREIGN {
        let map =
            json!({"metadata": {"name": format!("foreign-{number}")}, "data": {"x": filling}});
        cluster.api().create("/api/v1/namespaces/default/configmaps", &map)?;
    }
    settle(cluster)?;
    let after = usage::of_process(operator.pid())?.resident;
    print(&format!(
        "idle: {:.1} MiB; with {FOREIGN} foreign ConfigMaps of 200 KB: {:.1} MiB\n",
        mib(before),
        mib(after)
    ));
    operator.terminate()?;
    // They would only take room in the API server from now on.
    cluster.kubectl(&["delete", "configmaps", "--all", "--namespace=default"]).map(|_| ())
}

/// What an operator has in memory that keeps many jobs which wait to be resumed.
fn crowd(cluster: &Cluster) -> anyhow::Result<()> {
    const JOBS: u32 = 1000;
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    for number in 0..JOBS {
        let mut job = job(number, 4);
        job["spec"]["runPolicy"] = json!({"suspend": true});
        cluster.api().create(&jobs_path("v1"), &job)?;
    }
    settle(cluster)?;
    let used = usage::of_process(operator.pid())?;
    let mark = cluster.audit_mark()?;
    std::thread::sleep(QUIET);
    let asked = cluster.requests_since(mark)?.of_user(USER);
    let writes = asked.count(|it| !matches!(it.verb.as_str(), "get" | "list" | "watch"));
    print(&format!(
        "{JOBS} suspended jobs: {:.1} MiB, at most {:.1}; {:.2} s of processor time; then {writes} writes and {} other requests in a minute\n",
        mib(used.resident),
        mib(used.peak),
        used.processor.as_secs_f64(),
        asked.count(|_| true) - writes
    ));
    operator.terminate()?;
    clear(cluster)
}

/// Removes all jobs at once, and waits until their pods are gone.
fn clear(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.api().delete(&format!("{}?propagationPolicy=Background", jobs_path("v1")))?;
    let pods = "/api/v1/namespaces/default/pods";
    wait::until(PATIENCE, "all jobs to be gone", || {
        for path in [&jobs_path("v1"), pods] {
            let list = cluster.api().get(path)?;
            if list["items"].as_array().is_none_or(|items| !items.is_empty()) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
}

/// Waits until a job that cannot be read was refused: everything before it has been seen then.
fn settle(cluster: &Cluster) -> anyhow::Result<()> {
    let path = jobs_path("v2beta1");
    let job = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "settle"},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"name": "x"}]}}}}},
    });
    cluster.api().create(&path, &job)?;
    wait::until(PATIENCE, "a job to be refused", || {
        let job = cluster.api().get(&format!("{path}/settle"))?;
        Ok(job["status"]["conditions"].is_array().then_some(()))
    })?;
    cluster.api().delete(&format!("{path}/settle")).map(|_| ())
}

fn by_operator(cluster: &Cluster, jobs: u32, workers: u32) -> anyhow::Result<Row> {
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    let (mark, revision) = (cluster.audit_mark()?, cluster.etcd_revision()?);
    let begun = Instant::now();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let ends = scope.spawn(|| kubelet::end_launchers(cluster, jobs));
        for number in 0..jobs {
            cluster.api().create(&jobs_path("v1"), &job(number, workers))?;
        }
        ends.join().map_err(|_| anyhow::anyhow!("the launchers' thread panicked"))?
    })
    .with_context(|| operator.log())?;
    wait::until(PATIENCE, "every job to succeed", || {
        let list = cluster.api().get(&jobs_path("v1"))?;
        let ended = list["items"].as_array().context("no list")?.iter().filter(|it| succeeded(it));
        Ok((ended.count() == usize::try_from(jobs)?).then_some(()))
    })
    .with_context(|| operator.log())?;
    let seconds = begun.elapsed().as_secs_f64();
    // Its last requests remove the workers; they count, too.
    let workers_left = "/api/v1/namespaces/default/pods?labelSelector=mpi-job-role%3Dworker";
    wait::until(PATIENCE, "every worker to be gone", || {
        let list = cluster.api().get(workers_left)?;
        Ok(list["items"].as_array().is_some_and(Vec::is_empty).then_some(()))
    })?;
    let requests = cluster.requests_since(mark)?.of_user(USER).count(|it| it.verb != "watch");
    let revisions = cluster.etcd_revision()? - revision;
    let is_creation = |it: &audit::Request, what: &str| it.verb == "create" && it.resource == what;
    let pods = cluster.span_since(
        mark,
        |it| is_creation(it, "mpijobs.kubeflow.org"),
        |it| it.user == USER && is_creation(it, "pods"),
    )?;
    let used = usage::of_process(operator.pid())?;
    ensure!(used.peak > 0, "no memory was used");
    operator.terminate()?;
    clear(cluster)?;
    let arm = "unisono";
    let (processor, peak) = (used.processor, used.peak);
    Ok(Row { jobs, workers, arm, pods, seconds, requests, revisions, processor, peak })
}

fn succeeded(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == "Succeeded"))
}

/// A job of v1, whose launcher is a bare pod: kwok would end the pod of a Job at once.
fn job(number: u32, workers: u32) -> Value {
    let template = template();
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "cleanPodPolicy": "Running",
            "mpiReplicaSpecs": {
                "Launcher": {"template": template},
                "Worker": {"replicas": workers, "template": template},
            },
        },
    })
}

/// A pod for fake nodes.
fn template() -> Value {
    json!({"spec": {
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": FAKE_NODE_TAINT, "operator": "Exists"}],
        "containers": [{"name": "main", "image": "lab/x:1", "command": ["mpirun", "/x"]}],
    }})
}

impl Row {
    fn line(&self, over_null: f64) -> String {
        let each = |count: u64| count as f64 / f64::from(self.jobs);
        format!(
            "| {} x {} | {} | {:.2} | {:.2} | {over_null:.2} | {:.1} | {:.1} | {:.1} | {:.1} |",
            self.jobs,
            self.workers,
            self.arm,
            self.pods,
            self.seconds,
            each(self.requests),
            each(self.revisions),
            self.processor.as_secs_f64() * 1000.0 / f64::from(self.jobs),
            mib(self.peak),
        )
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
