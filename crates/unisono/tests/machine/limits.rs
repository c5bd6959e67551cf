//! Limits on processors and memory.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use unisono_testbed::mpi::Flavour;

use crate::support::{SOON, User, text};

const JOB: &str = "
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: bounded}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{name: l, image: 'lab/x:1', command: [/bin/sh, -c, COMMAND],
        resources: {limits: {cpu: 500m, memory: 64Mi}}}]}}
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: w, image: 'lab/x:1', resources: {limits: {memory: 64Mi}}}]}}
";

/// Every control group of ours that is there.
fn control_groups() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with("unisono-bounded-");
            found.extend(is_ours.then(|| entry.path()));
            folders.extend(entry.file_type().is_ok_and(|it| it.is_dir()).then(|| entry.path()));
        }
    }
    found
}

#[test]
fn a_host_is_kept_within_its_limits_and_running_out_of_memory_is_told() {
    let user = User::of(Flavour::OpenMpi4);
    let shown = "cat /proc/self/cgroup; tail /dev/zero; echo survived";
    let output = user.run(&JOB.replace("COMMAND", &format!("{shown:?}")), &[]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("unisono-bounded-"), "{out}{err}");
    // The shell goes on after its child was killed: the job ends well, and nothing is told.
    assert_eq!(output.status.code(), Some(0), "{out}{err}");

    let output = user.run(&JOB.replace("COMMAND", "tail /dev/zero"), &[]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(137), "{told}");
    assert!(told.contains("bounded-launcher ran out of memory"), "{told}");
    user.watch.assert_nothing_left(SOON);
    assert_eq!(control_groups(), [""; 0].map(PathBuf::from));
}

#[test]
fn a_killed_run_leaves_no_control_group() {
    let user = User::of(Flavour::OpenMpi4);
    let job = JOB.replace("COMMAND", "'echo up; sleep 600'");
    std::fs::write(user.home.path().join("job.yaml"), job).expect("write the job");
    let mut child = user
        .unisono(&["run", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let mut first = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    output.read_line(&mut first).expect("a line");
    assert!(first.ends_with("up\n"), "{first}");
    assert!(!control_groups().is_empty());
    child.kill().expect("kill it");
    child.wait().expect("it ends");
    // Keepers carry the mark, and are the last to go: when they have, so have their groups.
    user.watch.assert_nothing_left(SOON);
    assert_eq!(control_groups(), [""; 0].map(PathBuf::from));
}

#[test]
fn limits_can_be_left_alone() {
    let user = User::of(Flavour::OpenMpi4);
    let output = user.run(&JOB.replace("COMMAND", "cat /proc/self/cgroup"), &["--no-limits"]);
    assert!(!text(&output.stdout).contains("unisono-bounded-"), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
