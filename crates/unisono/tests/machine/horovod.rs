//! Azure's example with horovodrun. The real one needs a deep-learning framework to be built; a stand-in that does the same
//! to the hosts takes its place.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::support::{SOON, User, text};

/// The example of that system's documents, with another program and fewer ranks.
const JOB: &str = "
name: sample-mpi-job
type: MpiJob
experiment_name: pytorch-mnist-horovod
launcher:
  spec:
    command: >-
      horovodrun -np 16 --hostfile AZUREML_MPI_HOSTFILE PROGRAM
    code:
      path: ./src
    environment: azureml:pytorch-1.7:1
worker:
  spec:
    environment: azureml:pytorch-1.7:1
compute:
  type: AmlCompute
  target: gpu-cluster
  instance_count: 4
";

fn run(user: &User, program: &str, more: &[&str]) -> Output {
    let folder = user.home.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::create_dir_all(user.home.path().join("src")).expect("a folder");
    let stand_in = folder.join("horovodrun");
    std::fs::write(&stand_in, include_str!("horovodrun.py")).expect("write it");
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).expect("allow it");
    std::fs::write(user.home.path().join("job.yaml"), JOB.replace("PROGRAM", program))
        .expect("write the job");
    let path = format!("{}:{}:/usr/bin:/bin", folder.display(), user.mpi.bin.display());
    let words = ["run", "job.yaml", "--hosts", "2", "--slots", "2", "--np", "4"];
    let mut unisono = user.unisono(&[&words[..], more].concat());
    unisono.env("PATH", path).output().expect("run unisono")
}

#[test]
fn horovodrun_starts_ranks_with_mpirun() {
    for flavour in [Flavour::OpenMpi4, Flavour::OpenMpi5] {
        let user = User::of(flavour);
        let output = run(&user, &user.program(Program::Allreduce), &[]);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{flavour:?}: {out}{err}");
        let right = out.lines().filter(|line| line.ends_with("sums right")).count();
        assert_eq!(right, 4, "{flavour:?}: {out}{err}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn horovodrun_starts_ranks_with_one_ssh_each() {
    let user = User::of(Flavour::OpenMpi4);
    let program = "--gloo sh -c 'echo rank $HOROVOD_RANK of $HOROVOD_SIZE on $(hostname) in $(basename $PWD)'";
    let output = run(&user, program, &["--raw"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = (0..4)
        .map(|rank| format!("rank {rank} of 4 on sample-mpi-job-node-{} in src", rank / 2))
        .collect();
    assert_eq!(lines, expected, "{err}");
    user.watch.assert_nothing_left(SOON);
}
