//! Azure's example with the real horovodrun, which asks every host by ssh whether it answers and which networks it has, and then
//! starts ranks with mpirun, or one by one with ssh.

use std::process::Output;

use unisono_testbed::horovod;
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
    let folder = horovod::find().expect("horovodrun");
    std::fs::create_dir_all(user.home.path().join("src")).expect("a folder");
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
        let program = format!("--mpi {}", user.program(Program::Allreduce));
        let output = run(&user, &program, &["--strict"]);
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
        .map(|rank| {
            let host = format!("sample-mpi-job-node-{}", rank / 2);
            format!("[{rank}]<stdout>:rank {rank} of 4 on {host} in src")
        })
        .collect();
    assert_eq!(lines, expected, "{err}");
    user.watch.assert_nothing_left(SOON);
}
