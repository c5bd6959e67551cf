//! Limits on processors and memory.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use unisono_testbed::mpi::Flavour;

use crate::behind;
use crate::support::{SOON, User, text};

const JOB: &str = "
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: NAME}
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

fn job(name: &str, command: &str) -> String {
    let quoted = serde_json::to_string(command).expect("a line is text");
    JOB.replace("NAME", name).replace("COMMAND", &quoted)
}

/// Every control group of a job of ours that is there. Tests run side by side, so each has a name of its own.
fn control_groups(job: &str) -> Vec<PathBuf> {
    let prefix = format!("unisono-{job}-");
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with(&prefix);
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
    let output = user.run(&job("bounded", shown), &[]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("unisono-bounded-"), "{out}{err}");
    // The shell goes on after its child was killed: the job ends well, and nothing is told.
    assert_eq!(output.status.code(), Some(0), "{out}{err}");

    let output = user.run(&job("bounded", "tail /dev/zero"), &[]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(137), "{told}");
    assert!(told.contains("bounded-launcher ran out of memory"), "{told}");
    user.watch.assert_nothing_left(SOON);
    assert_eq!(control_groups("bounded"), [""; 0].map(PathBuf::from));
}

#[test]
fn a_worker_that_runs_out_of_memory_is_told_with_its_rank_or_else_as_a_host() {
    let told = |flavour, command: &str| {
        let user = User::of(flavour);
        let output = user.run(&job("hungry", command), &[]);
        user.watch.assert_nothing_left(SOON);
        (output.status.code(), text(&output.stderr))
    };
    for flavour in [Flavour::OpenMpi4, Flavour::Mpich] {
        let (code, told) = told(flavour, "mpirun -n 1 tail /dev/zero");
        assert_ne!(code, Some(0), "{flavour:?}: {told}");
        let sentence = "rank 0 on hungry-worker-0 ran out of memory\n";
        assert!(told.contains(sentence), "{flavour:?}: {told}");
    }
    // The rank itself was not killed, but somebody on its host was.
    let (code, told) = told(Flavour::OpenMpi4, "mpirun -n 1 sh -c 'tail /dev/zero; exit 9'");
    assert_eq!(code, Some(9), "{told}");
    let lines =
        "rank 0 on hungry-worker-0 ended with exit code 9\n    hungry-worker-0 ran out of memory\n";
    assert!(told.contains(lines), "{told}");
}

#[test]
fn a_killed_run_leaves_no_control_group() {
    let user = User::of(Flavour::OpenMpi4);
    std::fs::write(user.home.path().join("job.yaml"), job("shot", "echo up; sleep 600"))
        .expect("write the job");
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
    assert!(!control_groups("shot").is_empty());
    child.kill().expect("kill it");
    child.wait().expect("it ends");
    // Keepers carry the mark, and are the last to go: when they have, so have their groups.
    user.watch.assert_nothing_left(SOON);
    assert_eq!(control_groups("shot"), [""; 0].map(PathBuf::from));
}

#[test]
fn limits_can_be_left_alone() {
    let user = User::of(Flavour::OpenMpi4);
    let output = user.run(&job("free", "cat /proc/self/cgroup"), &["--no-limits"]);
    assert!(!text(&output.stdout).contains("unisono-free-"), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn more_hosts_than_files_may_be_open_run_and_commands_keep_the_users_limit() {
    let user = User::of(Flavour::OpenMpi4);
    let line = "ulimit -S -n; ulimit -H -n; ssh sh-host-69 ulimit -S -n";
    let words = ["run", "--raw", "--hosts", "70", "--machine-slots", "70", "--", "sh", "-c", line];
    let limited = ["sh", "-c", "ulimit -S -n 256; ulimit -H -n >&2; exec \"$@\"", "sh"];
    let output = behind(&limited, &user.unisono(&words)).output().expect("run unisono");
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
    let most = told.lines().next().expect("the hard limit");
    assert_eq!(said, format!("256\n{most}\n256\n"), "{told}");
    user.watch.assert_nothing_left(SOON);
}
