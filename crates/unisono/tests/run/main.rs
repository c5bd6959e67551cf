//! Real runs on this machine: every dialect, with every MPI, on isolated hosts, through the program as users call it.

mod bytes;
mod documents;
mod endurance;
mod failures;
mod interrupts;
mod kept;
mod line;
mod policies;
mod promises;
#[path = "../support/user.rs"]
mod support;
mod terminal;
mod truth;
mod watching;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{AZURE, SOON, TWO_TEMPLATES, User, text};
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

/// The document that a call prints.
fn json(user: &User, words: &[&str]) -> serde_json::Value {
    let output = user.unisono(words).output().expect("run unisono");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// The next line that a run writes, with its end; empty when it has ended.
fn first_line(run: &mut Child) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    let output = run.stdout.as_mut().expect("its output is piped");
    while output.read(&mut byte).expect("read") == 1 {
        line.push(byte[0]);
        if byte[0] == b'\n' {
            break;
        }
    }
    text(&line)
}

/// Ctrl-C.
fn interrupt(run: &Child) {
    send("-INT", run);
}

fn send(signal: &str, run: &Child) {
    let sent = Command::new("kill").args([signal, &run.id().to_string()]).status();
    assert!(sent.expect("send a signal").success());
}

/// Waits until something is so, for as long as nobody would doubt that it never will be.
fn until(is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "it never came to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const OPENPAI: &str = r#"{"jobName": "quad", "image": "lab/x:1", "taskRoles": [
    {"name": "main", "minSucceededTaskCount": 1, "command": COMMAND},
    {"name": "node", "command": "sleep infinity"}]}"#;

const V1ALPHA1: &str = "
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: quad}
spec:
  replicas: 2
  slotsPerWorker: 2
  template: {spec: {containers: [{name: c, image: 'lab/x:1', command: [/bin/sh, -c, COMMAND]}]}}
";

const KUBE_BATCH: &str = "
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: quad}
spec:
  job:
    completions: 4
    parallelism: 4
    template: {spec: {containers: [{name: m, image: 'lab/x:1', command: [/bin/sh, -c, COMMAND]}]}}
";

const KUBE_BATCH_WITH_A_JOB: &str = "
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: quad}
spec:
  job:
    apiVersion: batch/v1
    kind: Job
    spec:
      completions: 4
      parallelism: 4
      template: {spec: {containers: [{name: m, image: 'lab/x:1', command: [/bin/sh, -c, COMMAND]}]}}
  podGroup: {spec: {minMember: 4}}
";

const AZURE_ON_KUBERNETES: &str = "
name: quad
type: MpiJob
launcher: {spec: {command: COMMAND, environment: 'azureml:x:1'}}
worker: {spec: {environment: 'azureml:x:1', resource_limits: {gpu: 2}}}
compute: {type: AksCompute, target: c}
";

const AZURE_FLAT: &str = "
name: quad
command: COMMAND
environment: azureml:x:1
distributed: {mpi: {}}
compute: {target: 'azureml:c', instance_count: 2}
";

/// Azure's own launch line runs the program.
const AZURE_V2: &str = "
name: quad
type: command
command: PROGRAM
environment: azureml:x:1
compute: azureml:c
distribution: {type: mpi, process_count_per_instance: 2}
resources: {instance_count: 2}
";

const OPENPAI_V2: &str = "
protocolVersion: 2
name: quad
type: job
prerequisites: [{name: i, type: dockerimage, uri: 'lab/x:1'}]
taskRoles:
  main: {dockerImage: i, completion: {minSucceededInstances: 1}, commands: [COMMAND],
    resourcePerInstance: {cpu: 1, memoryMB: 4096, gpu: 0}}
  node: {dockerImage: i, commands: [sleep infinity], resourcePerInstance: {cpu: 1, memoryMB: 4096, gpu: 0}}
";

const UNISONO: &str = "
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: quad}
spec:
  groups:
  - {name: launcher, run: Launch, command: [/bin/sh, -c, COMMAND]}
  - {name: wide, slots: 3}
  - {name: narrow, slots: 1}
";

/// The same four ranks in every dialect. `COMMAND` is the launch line, `PROGRAM` what ranks run.
fn jobs() -> Vec<(&'static str, String)> {
    let two = |version: &str| TWO_TEMPLATES.replace("VERSION", version);
    vec![
        ("azureml/mpijob", AZURE.to_owned()),
        ("azureml/mpijob", AZURE_ON_KUBERNETES.to_owned()),
        ("azureml/flat", AZURE_FLAT.to_owned()),
        ("azureml/v2", AZURE_V2.to_owned()),
        ("openpai/v1", OPENPAI.to_owned()),
        ("openpai/v2", OPENPAI_V2.to_owned()),
        ("kubeflow/v1alpha1", V1ALPHA1.to_owned()),
        ("kubeflow/v1alpha2", two("v1alpha2")),
        ("kubeflow/v1", two("v1")),
        ("kubeflow/v2beta1", two("v2beta1")),
        ("kube-batch", KUBE_BATCH.to_owned()),
        ("kube-batch", KUBE_BATCH_WITH_A_JOB.to_owned()),
        ("unisono", UNISONO.to_owned()),
    ]
}

/// The host that `plan` promises to each rank of a job file, and the dialect that it takes it for.
fn planned(user: &User, file: &str) -> (Vec<String>, String) {
    let plan = json(user, &["plan", file, "--output", "json"]);
    let hosts = plan["hosts"].as_array().expect("hosts are a list");
    let seats = hosts.iter().flat_map(|host| {
        let name = host["name"].as_str().expect("a name").to_owned();
        let slots = host["slots"].as_u64().expect("a number");
        std::iter::repeat_n(name, usize::try_from(slots).expect("it is small"))
    });
    let dialect = plan["job"]["dialect"].as_str().expect("a dialect").to_owned();
    (seats.collect(), dialect)
}

fn every_dialect_runs_with(flavour: Flavour) {
    let user = User::of(flavour);
    let program = user.program(Program::Allreduce);
    let line = format!("mpirun -n 4 {program}");
    let quoted = serde_json::to_string(&line).expect("a line is text");
    for (dialect, job) in jobs() {
        let job = job.replace("COMMAND", &quoted).replace("PROGRAM", &program);
        // Uneven slots need a machine file with Intel MPI, which a note says.
        if flavour == Flavour::IntelMpi && dialect == "unisono" {
            continue;
        }
        let output = user.run(&job, &["--strict"]);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{dialect}: {out}{err}");
        let file = if job.starts_with('{') { "job.json" } else { "job.yaml" };
        let (seats, taken_for) = planned(&user, file);
        assert_eq!((taken_for.as_str(), seats.len()), (dialect, 4), "{seats:?}");
        for (rank, host) in seats.iter().enumerate() {
            let right = format!("{rank} {host} | rank {rank} of 4 on {host}: sums right");
            let said = |line: &str| line.split_whitespace().eq(right.split_whitespace());
            assert!(out.lines().any(said), "{dialect}: no line `{right}`: {out}{err}");
        }
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn every_dialect_runs_with_open_mpi_4() {
    every_dialect_runs_with(Flavour::OpenMpi4);
}

#[test]
fn every_dialect_runs_with_open_mpi_5() {
    every_dialect_runs_with(Flavour::OpenMpi5);
}

#[test]
fn every_dialect_runs_with_mpich() {
    every_dialect_runs_with(Flavour::Mpich);
}

#[test]
fn every_dialect_runs_with_intel_mpi() {
    every_dialect_runs_with(Flavour::IntelMpi);
}

#[test]
fn exit_codes_pass_and_a_failure_names_its_host() {
    let user = User::of(Flavour::OpenMpi4);
    let command = format!("mpirun -n 4 {} 2 3", user.program(Program::ExitCode));
    let words = ["run", "--hosts", "2", "--slots", "2", "--", "/bin/sh", "-c", &command];
    let output = user.unisono(&words).output().expect("run unisono");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("rank 2 on sh-host-1 ended with exit code 3"), "{told}");
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_program_that_is_not_there_ends_with_127() {
    let user = User::of(Flavour::OpenMpi4);
    let words = ["run", "--", "/bin/sh", "-c", "no-such-program"];
    let output = user.unisono(&words).output().expect("run unisono");
    assert_eq!(output.status.code(), Some(127), "{}", text(&output.stderr));
}

#[test]
fn openpai_tasks_reach_each_other_by_ssh_and_end_with_the_master() {
    let user = User::of(Flavour::OpenMpi4);
    let job = r#"{"jobName": "duo", "image": "lab/x:1", "taskRoles": [
        {"name": "master", "minSucceededTaskCount": 1, "command":
         "ssh worker-0 'hostname; echo $PAI_CURRENT_TASK_ROLE_NAME; ssh master-0 hostname'"},
        {"name": "worker", "command": "sleep infinity"}]}"#;
    let output = user.run(job, &["--raw"]);
    let told = text(&output.stderr);
    assert_eq!(text(&output.stdout), "worker-0\nworker\nmaster-0\n", "{told}");
    assert_eq!(output.status.code(), Some(0));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn an_interrupt_stops_the_job_and_a_kill_leaves_nothing() {
    for signal in ["-INT", "-KILL"] {
        let user = User::of(Flavour::OpenMpi4);
        let program = user.program(Program::Wait);
        let words =
            ["--hosts", "2", "--slots", "1", "--", "mpirun", &program, "600", "ignore-term"];
        let mut child = user
            .unisono(&[&["run"], &words[..]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("run unisono");
        let mut first = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        output.read_line(&mut first).expect("a line");
        send(signal, &child);
        assert!(!child.wait().expect("it ends").success(), "{signal} was reported as success");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn another_terminal_sees_and_stops_a_run() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Wait);
    let mut child = user
        .unisono(&["run", "--hosts", "2", "--slots", "1", "--", "mpirun", &program, "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let first = lines.next().expect("a line").expect("it is text");
    let said = |words: &[&str]| text(&user.unisono(words).output().expect("run unisono").stdout);
    assert!(said(&["list"]).contains("running"));
    let log = said(&["logs", "mpirun"]);
    assert!(log.lines().any(|line| first.ends_with(line)), "{first:?} is not in {log:?}");
    let stopped = user.unisono(&["stop"]).output().expect("stop");
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    assert!(!child.wait().expect("it ends").success());
    let listed = said(&["list", "--output", "json"]);
    assert!(listed.contains("\"state\": \"stopped\""), "{listed}");
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn the_examples_run() {
    let user = User::of(Flavour::OpenMpi4);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/small");
    let entries = std::fs::read_dir(folder).expect("examples");
    let mut files: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let words = ["run", &file.display().to_string()];
        let output = user.unisono(&words).output().expect("run unisono");
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{}: {told}", file.display());
    }
    user.watch.assert_nothing_left(SOON);
}
