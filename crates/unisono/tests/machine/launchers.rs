//! Questions of MPI: launch lines as people copied them, an MPI that is another or is missing, servers that are not needed.

use std::process::Output;

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::support::{AZURE, SOON, TWO_TEMPLATES, User, text};

/// For one MPI in particular, with workers that serve ssh.
fn stated(implementation: &str, command: &str) -> String {
    let quoted = serde_json::to_string(command).expect("a line is text");
    let stated = format!("slotsPerWorker: 2\n  mpiImplementation: {implementation}");
    TWO_TEMPLATES
        .replace("VERSION", "v2beta1")
        .replace("slotsPerWorker: 2", &stated)
        .replace(
            "{name: w, image: 'lab/x:1'}",
            "{name: w, image: 'lab/x:1', command: [/usr/sbin/sshd, -De]}",
        )
        .replace("COMMAND", &quoted)
}

/// Launch lines as they stand in the documents of Azure ML and Kubeflow, with four ranks of another program.
const LINES: [&str; 4] = [
    "mpirun -np 4 --hostfile AZUREML_MPI_HOSTFILE -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH \
     -mca pml ob1 -mca btl ^openib PROGRAM",
    "mpirun -np 4 --allow-run-as-root -bind-to none -map-by slot -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib PROGRAM",
    "mpirun --allow-run-as-root PROGRAM",
    // Open MPI 5 would put every rank on the first host.
    "mpirun -np 4 --oversubscribe PROGRAM",
];

fn assert_four_ranks(what: &str, output: &Output) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{what}: {out}{err}");
    let right = out.lines().filter(|line| line.ends_with("sums right")).count();
    assert_eq!(right, 4, "{what}: {out}{err}");
}

#[test]
fn launch_lines_as_people_copied_them_run_on_both_open_mpis() {
    for flavour in [Flavour::OpenMpi4, Flavour::OpenMpi5] {
        let user = User::of(flavour);
        for line in LINES {
            let line = line.replace("PROGRAM", &user.program(Program::Allreduce));
            let quoted = serde_json::to_string(&line).expect("a line is text");
            let job = AZURE.replace("COMMAND", &quoted);
            let output = user.run(&job, &["--strict", "--slots", "2"]);
            assert_four_ranks(&format!("{flavour:?}: {line}"), &output);
        }
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn hosts_named_in_the_line_get_as_many_ranks_as_planned() {
    for flavour in Flavour::ALL {
        let user = User::of(flavour);
        let option = match flavour {
            Flavour::OpenMpi4 | Flavour::OpenMpi5 => "-H",
            Flavour::Mpich | Flavour::IntelMpi => "-hosts",
        };
        let program = user.program(Program::Hello);
        let line = format!("mpirun {option} mpirun-host-0,mpirun-host-1 {program}");
        let prefix = user.mpi.prefix.display().to_string();
        let words = ["run", "--hosts", "2", "--slots", "1", "--mpi", &prefix, "--"];
        let words: Vec<&str> = words.into_iter().chain(line.split(' ')).collect();
        let output = user.unisono(&words).output().expect("run unisono");
        let told = text(&output.stderr);
        assert!(told.contains("mpirun: 2 hosts, 2 ranks"), "{flavour:?}: {told}");
        let said = text(&output.stdout);
        assert_eq!(said.lines().count(), 2, "{flavour:?}: {said}{told}");
    }
}

#[test]
fn a_stated_mpi_that_is_not_here_is_a_warning_and_with_strict_an_error() {
    let user = User::of(Flavour::OpenMpi4);
    let job = stated("Intel", &format!("mpirun -n 4 {}", user.program(Program::Allreduce)));
    let output = user.run(&job, &[]);
    assert_four_ranks("another MPI", &output);
    let told = text(&output.stderr);
    assert!(
        told.contains("the job is for Intel MPI, as the file says, but Open MPI is here"),
        "{told}"
    );
    assert!(told.contains("impi-rt"), "{told}");
    let output = user.run(&job, &["--strict"]);
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("error: the job is for Intel MPI"));
}

#[test]
fn a_stated_mpi_is_found_behind_another_on_the_path() {
    let user = User::of(Flavour::Mpich);
    let job = stated("MPICH", &format!("mpirun -n 4 {}", user.program(Program::Allreduce)));
    std::fs::write(user.home.path().join("job.yaml"), job).expect("write the job");
    let path = format!("/usr/bin:/bin:{}", user.mpi.bin.display());
    let mut unisono = user.unisono(&["run", "job.yaml", "--strict"]);
    assert_four_ranks("MPICH", &unisono.env("PATH", path).output().expect("run unisono"));
}

#[test]
fn a_missing_mpi_is_an_error_that_says_what_to_install() {
    let user = User::of(Flavour::OpenMpi4);
    for (implementation, package) in [("OpenMPI", "openmpi-bin"), ("MPICH", "apt install mpich")] {
        let job = stated(implementation, "mpirun");
        std::fs::write(user.home.path().join("job.yaml"), job).expect("write the job");
        let mut unisono = user.unisono(&["run", "job.yaml"]);
        let output = unisono.env("PATH", "/no/such/folder").output().expect("run unisono");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{told}");
        assert!(told.contains("no MPI was found") && told.contains(package), "{told}");
    }
}
