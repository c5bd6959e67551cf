//! Machines that refuse namespaces: hosts are plain processes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::support::{SOON, TWO_TEMPLATES, User, text};
use crate::{behind, run_with_every_mpi};

/// A user namespace in which no other may be made, and no right is left.
const REFUSING: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all \"$0\" \"$@\"",
];

/// A machine on which no control group can be made.
const WITHOUT_GROUPS: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs -o ro none /sys/fs/cgroup && exec \"$0\" \"$@\"",
];

#[test]
fn every_mpi_runs_without_namespaces_and_it_is_told() {
    for told in run_with_every_mpi(&[], &REFUSING) {
        assert!(told.contains("warning: this machine refuses namespaces"), "{told}");
    }
}

#[test]
fn limits_that_cannot_be_kept_are_told() {
    let user = User::of(Flavour::OpenMpi4);
    let limited = "image: 'lab/x:1', resources: {limits: {memory: 1Gi}}";
    let job = TWO_TEMPLATES.replace("VERSION", "v1").replace("image: 'lab/x:1'", limited);
    std::fs::write(user.home.path().join("job.yaml"), job.replace("COMMAND", "'true'"))
        .expect("write the job");
    let output = behind(&WITHOUT_GROUPS, &user.unisono(&["run", "job.yaml"])).output();
    let output = output.expect("run unisono");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let note = "note: cpu and memory limits of launcher, worker are not kept on this machine";
    assert!(told.contains(note), "{told}");
}

#[test]
fn a_network_that_was_asked_for_and_is_refused_is_an_error() {
    let user = User::of(Flavour::OpenMpi4);
    let called = user.unisono(&["run", "--isolate-network", "--", "true"]);
    let output = behind(&REFUSING, &called).output().expect("run unisono");
    assert_eq!(output.status.code(), Some(125));
    let told = text(&output.stderr);
    assert!(told.contains("cannot give the hosts a network of their own"), "{told}");
}

#[test]
fn each_host_has_a_tmpdir_of_its_own_and_its_keys_go_with_it() {
    let user = User::of(Flavour::OpenMpi4);
    let job = r#"{"jobName": "duo", "image": "lab/x:1", "taskRoles": [
        {"name": "a", "minSucceededTaskCount": 1, "command":
         "touch $TMPDIR/mine; ssh b-0 'ls -A $TMPDIR | wc -l; echo $PAI_CURRENT_TASK_ROLE_NAME'"},
        {"name": "b", "command": "sleep infinity"}]}"#;
    std::fs::write(user.home.path().join("job.json"), job).expect("write the job");
    let called = user.unisono(&["run", "job.json", "--raw"]);
    let output = behind(&REFUSING, &called).output().expect("run unisono");
    assert_eq!(text(&output.stdout), "0\nb\n", "{}", text(&output.stderr));
    let keys = |folder: &std::path::Path| {
        let mut folders = vec![folder.to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("list").flatten() {
                let path = entry.path();
                found.extend(path.extension().is_some_and(|it| it == "key").then(|| path.clone()));
                folders.extend((path.is_dir() && !path.is_symlink()).then_some(path));
            }
        }
        found
    };
    assert_eq!(keys(user.home.path()), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn a_killed_run_of_plain_processes_leaves_nothing() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Wait);
    let words = ["--hosts", "2", "--slots", "1", "--", "mpirun", &program, "600", "ignore-term"];
    let called = user.unisono(&[&["run"], &words[..]].concat());
    let mut child = behind(&REFUSING, &called)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let mut first = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    output.read_line(&mut first).expect("a line");
    assert!(!first.is_empty(), "it never ran");
    // Each program on the way became the next one, so that this is unisono itself.
    child.kill().expect("kill it");
    child.wait().expect("it ends");
    user.watch.assert_nothing_left(SOON);
}
