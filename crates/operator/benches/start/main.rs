//! Where the time of one small job on a real node goes, from its creation to its end, against one pod that does the same
//! work alone. Both arms run in turns; medians of this machine only.
//!
//! The command writes down when it began and ended; everything else is when a client that asks all the time first saw it.

#[path = "../../tests/cluster/faults.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod faults;
#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/cluster/operator.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod operator;
#[path = "../../tests/cluster/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use measure::print;
use operator::Operator;
use serde_json::{Value, json};
use support::jobs_path;
use unisono_k8s::marks::RELEASED;
use unisono_testcluster::{Cluster, Image, Options, wait};

/// How often each arm runs, in turns.
const RUNS: usize = 7;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// What happens on the way, in this order.
const PHASES: [&str; 7] = [
    "every pod exists",
    "every worker has an address",
    "the launcher has its host table",
    "its command begins",
    "its command has ended",
    "the kubelet says so",
    "the job is Succeeded",
];

fn main() -> ExitCode {
    measure::take(run)
}

fn run() -> anyhow::Result<()> {
    let options = Options { nodes: 1, images: vec![Image::OpenMpi4], ..Options::default() };
    let cluster = Cluster::start(&options)?;
    let operator = Operator::start(&cluster)?;
    operator.says("working")?;
    let (mut alone, mut jobs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        alone.push(pod(&cluster)?);
        jobs.push(job(&cluster).with_context(|| operator.log())?);
    }
    operator.terminate()?;
    let [begins, ends, seen] = medians(&alone);
    let of_job = medians(&jobs);
    let floor = [None, None, None, Some(begins), Some(ends), Some(seen), None];
    print("| from its creation, in seconds | a job of two workers | one pod with a local mpirun |");
    print("|---|---|---|");
    for ((phase, job), alone) in PHASES.iter().zip(of_job).zip(floor) {
        let alone = alone.map_or("–".to_owned(), |it| format!("{it:.2}"));
        print(&format!("| {phase} | {job:.2} | {alone} |"));
    }
    print(&format!("\nratio {:.2}", of_job[6] / seen));
    Ok(())
}

/// When each phase was first seen, in seconds since the beginning.
struct Watch<const N: usize> {
    begun: f64,
    seen: [Option<f64>; N],
}

impl<const N: usize> Watch<N> {
    fn new() -> Self {
        Self { begun: now(), seen: [None; N] }
    }

    fn note(&mut self, phase: usize, is_so: bool) {
        if is_so && self.seen[phase].is_none() {
            self.seen[phase] = Some(now() - self.begun);
        }
    }

    /// Fills in the moments that a command has printed itself.
    fn command(&mut self, log: &str, phase: usize) -> anyhow::Result<()> {
        let moments = log.lines().filter_map(|line| line.strip_prefix("at ")?.parse::<f64>().ok());
        for (at, moment) in moments.enumerate() {
            *self.seen.get_mut(phase + at).context("more moments than phases")? =
                Some(moment - self.begun);
        }
        Ok(())
    }

    fn all(self) -> anyhow::Result<[f64; N]> {
        let known: Vec<f64> = self.seen.into_iter().flatten().collect();
        known.try_into().map_err(|known| anyhow::anyhow!("a phase was not seen: {known:?}"))
    }
}

fn pod(cluster: &Cluster) -> anyhow::Result<[f64; 3]> {
    let mut watch = Watch::new();
    let object =
        json!({"metadata": {"name": "floor"}, "spec": template("--oversubscribe")["spec"]});
    cluster.api().create(PODS, &object)?;
    wait::until(Duration::from_secs(120), "the pod to succeed", || {
        let pod = cluster.api().get(&format!("{PODS}/floor"))?;
        watch.note(2, pod["status"]["phase"] == "Succeeded");
        Ok(watch.seen[2].map(drop))
    })?;
    watch.command(&cluster.kubectl(&["logs", "floor"])?, 0)?;
    cluster.kubectl(&["delete", "pod", "floor", "--wait"])?;
    watch.all()
}

fn job(cluster: &Cluster) -> anyhow::Result<[f64; 7]> {
    let mut worker = template("");
    if let Some(container) = worker["spec"]["containers"][0].as_object_mut() {
        container.shift_remove("command");
    }
    let object = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "real"},
        "spec": {"mpiReplicaSpecs": {
            "Launcher": {"template": template("")},
            "Worker": {"replicas": 2, "template": worker},
        }},
    });
    let mut watch = Watch::new();
    cluster.api().create(&jobs_path("v2beta1"), &object)?;
    wait::until(Duration::from_secs(120), "the job to succeed", || {
        let list = cluster.api().get(PODS)?;
        let pods = list["items"].as_array().context("no list")?;
        let (workers, launchers): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
            pod["metadata"]["name"].as_str().is_some_and(|name| name.contains("worker"))
        });
        let placed = |pod: &&Value| pod["status"]["podIP"].is_string();
        watch.note(0, workers.len() == 2 && launchers.len() == 1);
        watch.note(1, workers.len() == 2 && workers.iter().all(placed));
        let told = |pod: &&Value| pod["metadata"]["annotations"][RELEASED].is_string();
        watch.note(2, launchers.iter().any(told));
        watch.note(5, launchers.iter().any(|pod| pod["status"]["phase"] == "Succeeded"));
        let job = cluster.api().get(&format!("{}/real", jobs_path("v2beta1")))?;
        let conditions = job["status"]["conditions"].as_array();
        let ended = |all: &Vec<Value>| all.iter().any(|it| it["type"] == "Succeeded");
        // The pod may have ended between the two questions.
        watch.note(5, conditions.is_some_and(ended));
        watch.note(6, conditions.is_some_and(ended));
        Ok(watch.seen[6].map(drop))
    })?;
    watch.command(&cluster.kubectl(&["logs", "job/real-launcher"])?, 3)?;
    cluster.kubectl(&["delete", "mpijob", "real", "--cascade=foreground"])?;
    watch.all()
}

fn template(option: &str) -> Value {
    let moment = "date '+at %s.%N'";
    let line = format!("{moment}; mpirun --allow-run-as-root {option} -np 2 hostname && {moment}");
    json!({"spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "main",
            "image": Image::OpenMpi4.reference(),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", line],
        }],
    }})
}

fn medians<const N: usize>(runs: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|phase| {
        let mut times: Vec<f64> = runs.iter().map(|run| run[phase]).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
