//! Following, stopping, and what can be in the way of a submission.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::desk::{Desk, Ended, PATIENCE};

/// An Azure job whose code travels with it.
const TRAVELS: &str = "\
name: travels
type: MpiJob
launcher: {spec: {command: 'true', code: {path: src}, environment: 'azureml:m:1'}}
worker: {spec: {environment: 'azureml:m:1'}}
compute: {type: AmlCompute, target: local, instance_count: 1}
";

/// An MPIJob whose launcher runs a line of shell, on two workers.
fn job(name: &str, line: &str) -> String {
    let image = Image::OpenMpi4.reference();
    let container = json!({"name": "c", "image": image});
    let mut launcher = container.clone();
    launcher["command"] = json!(["sh", "-c", line]);
    let template = |container: &Value| json!({"template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}});
    let mut worker = template(&container);
    worker["replicas"] = 2.into();
    json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"backoffLimit": 0},
            "mpiReplicaSpecs": {"Launcher": template(&launcher), "Worker": worker},
        },
    })
    .to_string()
}

pub(crate) fn followed(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "followed")?;
    let line = "mpirun --allow-run-as-root -np 2 /programs/openmpi4/hello; exit 3";
    desk.file("three.json", &job("three", line))?;
    let ended = desk.run(&["submit", "three.json", "--follow"])?;
    ensure!(ended.code == 3, "{}: {}", ended.code, ended.err);
    for rank in 0..2 {
        let said =
            format!("   {rank} three-worker-{rank} | rank {rank} of 2 on three-worker-{rank}\n");
        ensure!(ended.out.contains(&said), "no {said:?} in {}", ended.out);
    }
    ensure!(ended.err.contains("MPIJob followed/three created"), "{}", ended.err);
    ensure!(ended.err.contains("three: failed with exit code 3"), "{}", ended.err);
    let log = desk.done(&["logs", "three", "--rank", "1"])?;
    ensure!(log == "rank 1 of 2 on three-worker-1\n", "{log}");

    desk.file("long.json", &job("long", "echo begun; exec sleep 1000"))?;
    let mut follower = desk.unisono(&["submit", "long.json", "--follow"])?;
    let mut follower = Ends(follower.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let mut first = [0; 1];
    follower.0.stdout.as_mut().context("its output is piped")?.read_exact(&mut first)?;
    // Its first line can be here before its pod is told as running.
    desk.runs("long")?;
    // Nobody can be asked: the job goes on.
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &follower.0.id().to_string()]).status()?;
    ensure!(interrupted.success(), "kill: {interrupted}");
    let mut said = String::new();
    follower.0.stderr.take().context("its talk is piped")?.read_to_string(&mut said)?;
    let left = follower.0.wait()?;
    ensure!(left.code() == Some(130) && said.contains("long goes on"), "{said}");
    // Its command can run before the kubelets have told that its workers do.
    wait::until(PATIENCE, "the command to be told as running", || {
        let why = desk.done(&["why", "long"])?;
        Ok(why.contains("the command runs on long-launcher").then_some(()))
    })?;
    desk.done(&["stop", "long"])?;
    ensure!(desk.ends("long")? == "stopped");
    let list = desk.done(&["list", "--engine", "kubernetes"])?;
    for part in ["three", "long", "failed", "stopped", "kubeflow/v2beta1"] {
        ensure!(list.contains(part), "{list}");
    }
    Ok(())
}

/// Every line of a job is shown once, though the API server cuts its log in the middle.
pub(crate) fn cut(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "cut")?;
    let line = "for i in $(seq 80); do echo out $i; echo err $i >&2; sleep 0.1; done; printf last";
    desk.file("long.json", &job("long", line))?;
    let mut follower = desk.unisono(&["submit", "long.json", "--follow", "--raw"])?;
    let mut follower = Ends(follower.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let written = follower.0.stdout.take().context("its output is piped")?;
    let mut lines = Vec::new();
    for line in BufReader::new(written).lines() {
        lines.push(line?);
        if lines.last().is_some_and(|it| it == "out 20") {
            cluster.stop_api_server()?;
            cluster.start_api_server()?;
        }
    }
    let mut said = String::new();
    follower.0.stderr.take().context("its talk is piped")?.read_to_string(&mut said)?;
    ensure!(follower.0.wait()?.code() == Some(0), "{said}");
    ensure!(lines.pop().as_deref() == Some("last"), "{lines:?}: {said}");
    // Which of two streams is written down first is nobody's promise.
    let (out, err): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|it| it.starts_with("out"));
    for (stream, lines) in [("out", out), ("err", err)] {
        let wanted: Vec<String> = (1..=80).map(|at| format!("{stream} {at}")).collect();
        ensure!(lines == wanted, "{lines:?}: {said}");
    }
    Ok(())
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A name that has been run here means the job of the cluster once that one runs.
pub(crate) fn here_and_there(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "both")?;
    let text = job("twice", "exec sleep 1000");
    desk.file("here.json", &text.replace("exec sleep 1000", "true"))?;
    desk.done(&["run", "here.json"])?;
    let here = desk.done(&["status", "twice"])?;
    ensure!(here.contains("succeeded"), "{here}");
    desk.file("there.json", &text)?;
    let said = desk.run(&["submit", "there.json"])?.err;
    ensure!(said.contains("unisono stop twice --engine kubernetes"), "{said}");
    wait::until(PATIENCE, "the command to be told as running", || {
        let why = desk.done(&["why", "twice"])?;
        Ok(why.contains("the command runs on twice-launcher").then_some(()))
    })?;
    desk.done(&["stop", "twice"])?;
    ensure!(desk.ends("twice")? == "stopped");
    // The old end is not followed as if it were new; replaced, the job runs again.
    let again = desk.run(&["submit", "there.json", "--follow"])?;
    ensure!(again.code == 125 && again.err.contains("--replace"), "{}: {}", again.code, again.err);
    desk.file("there.json", &text.replace("exec sleep 1000", "exit 4"))?;
    let replaced = desk.run(&["submit", "there.json", "--replace", "--follow"])?;
    ensure!(replaced.code == 4, "{}: {}", replaced.code, replaced.err);
    Ok(())
}

/// What ksonnet's users typed; a job without GPUs is one that only `mpi-job-custom` can say.
pub(crate) fn ksonnet(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "ksonnet")?;
    desk.done(&["ks", "init", "lab", "--namespace", "ksonnet"])?;
    let ks = |line: &str| anyhow::Ok(desk.ks("lab", line)?.err);
    let image = Image::OpenMpi4.reference();
    ks(&format!(
        "generate mpi-job-custom ring --replicas 2 --gpusPerReplica 0 --image {image} --command mpirun,/programs/openmpi4/hello"
    ))?;
    let said = ks("apply default -c ring")?;
    ensure!(said.contains("MPIJob ksonnet/ring created"), "{said}");
    ensure!(desk.ends("ring")? == "succeeded");
    let log = desk.done(&["logs", "ring", "--engine", "kubernetes"])?;
    for rank in 0..2 {
        ensure!(log.contains(&format!("rank {rank} of 2 on ring-worker-{rank}\n")), "{log}");
    }
    let said = ks("delete default -c ring")?;
    ensure!(said.contains("MPIJob ksonnet/ring removed"), "{said}");
    ensure!(desk.names("mpijobs")?.is_empty());
    wait::until(PATIENCE, "its pods to be gone", || {
        Ok(desk.names("pods")?.is_empty().then_some(()))
    })
}

pub(crate) fn failures(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "failures")?;
    // The quota lets the job in, but not its code.
    let objects = format!("/api/v1/namespaces/{}/resourcequotas", desk.namespace);
    let maps = desk.names("configmaps")?.len();
    cluster.api().create(
        &objects,
        &json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": maps.to_string()}}}),
    )?;
    wait::until(PATIENCE, "the quota to be counted", || {
        let quota = cluster.api().get(&format!("{objects}/few"))?;
        Ok(quota["status"]["used"]["count/configmaps"].is_string().then_some(()))
    })?;
    desk.file("src/a", "x")?;
    let image = Image::OpenMpi4.reference();
    desk.file("travels.yaml", TRAVELS)?;
    let unmapped = desk.run(&["submit", "travels.yaml"])?;
    ensure!(unmapped.code == 1 && unmapped.err.contains("\"azureml:m:1\" ="), "{}", unmapped.err);
    desk.file("unisono.toml", &format!("[environments]\n\"azureml:m:1\" = \"{image}\"\n"))?;
    let refused = desk.run(&["submit", "travels.yaml"])?;
    ensure!(refused.code == 125 && refused.err.contains("exceeded quota"), "{}", refused.err);
    ensure!(desk.names("unisonojobs")?.is_empty(), "the job was left behind");

    // A namespace that is going takes nothing new.
    let finalizer = json!({"metadata": {"name": "going"}});
    cluster.api().create("/api/v1/namespaces", &finalizer)?;
    let held = json!({"metadata": {"name": "held", "finalizers": ["unisono.test/held"]}});
    let maps = "/api/v1/namespaces/going/configmaps";
    cluster.api().create(maps, &held)?;
    cluster.api().delete("/api/v1/namespaces/going")?;
    desk.file(
        "late.json",
        &job("late", "true")
            .replace("\"name\":\"late\"", "\"name\":\"late\",\"namespace\":\"going\""),
    )?;
    let elsewhere = desk.run(&["submit", "late.json"])?;
    ensure!(elsewhere.code == 2, "{}", elsewhere.err);
    let told = "MPIJob late is for namespace going, not failures";
    ensure!(elsewhere.err.contains(told), "{}", elsewhere.err);
    let refused = Ended::of(desk.anywhere(&["submit", "late.json"])?.output()?);
    ensure!(refused.code == 125 && refused.err.contains("being terminated"), "{}", refused.err);
    cluster.api().merge(&format!("{maps}/held"), &json!({"metadata": {"finalizers": null}}))?;
    Ok(())
}

/// Somebody who follows a job is told when its namespace is removed under it; nobody hangs, and afterwards the job is gone.
pub(crate) fn namespace_removed(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "goes")?;
    desk.file("long.json", &job("long", "echo begun; exec sleep 1000"))?;
    let mut follower = desk.unisono(&["submit", "long.json", "--follow"])?;
    let mut follower = Ends(follower.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let mut first = [0; 1];
    follower.0.stdout.as_mut().context("its output is piped")?.read_exact(&mut first)?;
    cluster.api().delete("/api/v1/namespaces/goes")?;
    let mut said = String::new();
    follower.0.stderr.take().context("its talk is piped")?.read_to_string(&mut said)?;
    let left = follower.0.wait()?;
    let told = "long was removed before it ended, with its namespace goes";
    ensure!(left.code() == Some(125) && said.contains(told), "{left}: {said}");
    for verb in ["status", "why", "logs"] {
        let gone = desk.run(&[verb, "long", "--engine", "kubernetes"])?;
        let told = "there is no job `long` in namespace goes, which is gone or being removed";
        ensure!(gone.code == 2 && gone.err.contains(told), "{verb} {}: {}", gone.code, gone.err);
    }
    Ok(())
}

pub(crate) fn no_operator(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::without_operator(cluster, "bare")?;
    for definition in ["mpijobs.kubeflow.org", "unisonojobs.unisono.dev"] {
        cluster.kubectl(&["delete", "crd", definition, "--ignore-not-found", "--wait"])?;
    }
    desk.file("pi.json", &job("pi", "true"))?;
    let refused = desk.run(&["submit", "pi.json"])?;
    ensure!(refused.code == 125, "{}", refused.err);
    for part in ["does not know MPIJob (kubeflow.org/v2beta1)", "unisono operator install"] {
        ensure!(refused.err.contains(part), "{}", refused.err);
    }
    Ok(())
}
