//! What is told of a failure: which rank, on which host, how, and what to do.

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, text};

/// Open MPI 5's launcher now and then never ends after the bad end of a rank (docs/mpi.md); what it says is tested where it is read.
const THAT_END: [Flavour; 3] = [Flavour::OpenMpi4, Flavour::Mpich, Flavour::IntelMpi];

/// Four ranks on two hosts; rank 2 is the first of the second host.
fn told(user: &User, command: &str) -> (Option<i32>, String) {
    let prefix = user.mpi.prefix.display().to_string();
    let words = ["run", "--mpi", &prefix, "--hosts", "2", "--slots", "2", "--", "/bin/sh", "-c"];
    let output = user.unisono(&[&words[..], &[command]].concat()).output().expect("run unisono");
    user.watch.assert_nothing_left(SOON);
    (output.status.code(), text(&output.stderr))
}

fn assert_told(told: &str, sentence: &str) {
    assert!(told.lines().any(|line| line == sentence), "no line says {sentence:?}:\n{told}");
}

#[test]
fn an_exit_code_is_told_with_its_rank_and_host() {
    let user = User::of(Flavour::OpenMpi4);
    let command = format!("mpirun -n 4 {} 2 3", user.program(Program::ExitCode));
    let (code, told) = told(&user, &command);
    assert_eq!(code, Some(3), "{told}");
    assert_told(&told, "rank 2 on sh-host-1 ended with exit code 3");
}

#[test]
fn an_abort_is_told_with_its_rank_and_host() {
    for flavour in THAT_END {
        let user = User::of(flavour);
        let command = format!("mpirun -n 4 {} 2 42", user.program(Program::Abort));
        let (code, told) = told(&user, &command);
        assert_eq!(code, Some(42), "{flavour:?}: {told}");
        assert_told(&told, "rank 2 on sh-host-1 ended with exit code 42");
    }
}

#[test]
fn a_signal_is_told_by_its_name_whatever_the_launcher_ends_with() {
    // MPICH does not always tell the signal.
    for flavour in [Flavour::OpenMpi4, Flavour::IntelMpi] {
        let user = User::of(flavour);
        let command = format!("mpirun -n 4 {} 2", user.program(Program::Segfault));
        let (code, told) = told(&user, &command);
        assert_ne!(code, Some(0), "{flavour:?}: {told}");
        assert_told(&told, "rank 2 on sh-host-1 was ended by signal 11 (SIGSEGV)");
    }
}

#[test]
fn a_failed_rank_is_remembered_by_its_last_words_on_standard_error() {
    let user = User::of(Flavour::OpenMpi4);
    // Of ranks that are no MPI programs Open MPI 4 does not always say which one failed.
    let program = user.program(Program::ExitCode);
    let script = format!(
        "mpirun -n 4 sh -c 'echo fine; echo step $OMPI_COMM_WORLD_RANK >&2; \
         echo no such mesh >&2; exec {program} 3 9'"
    );
    let (code, told) = told(&user, &script);
    assert_eq!(code, Some(9), "{told}");
    let after = "rank 3 on sh-host-1 ended with exit code 9\n    step 3\n    no such mesh\n";
    assert!(told.contains(after), "{told}");
    let why = text(&user.unisono(&["why"]).output().expect("ask why").stdout);
    assert!(why.contains("rank 3 on sh-host-1 ended with exit code 9\n    step 3\n"), "{why}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_its_host_and_what_to_install() {
    let user = User::of(Flavour::OpenMpi4);
    let (code, told) = told(&user, "horovodrun -np 4 python train.py");
    assert_eq!(code, Some(127), "{told}");
    assert!(told.contains("there is no program `horovodrun` on sh-host-0"), "{told}");
    assert!(told.contains("pip install horovod"), "{told}");
}

#[test]
fn a_program_that_no_rank_can_run_is_named() {
    // The launchers of MPICH and Intel MPI write over each other's words, or say nothing at all.
    let user = User::of(Flavour::OpenMpi4);
    let (code, told) = told(&user, "mpirun -n 4 ./simulate");
    assert_eq!(code, Some(127), "{told}");
    assert!(told.contains("there is no program `./simulate` on sh-host-0"), "{told}");
}

#[test]
fn a_file_that_may_not_be_executed_ends_with_126_and_advice() {
    let user = User::of(Flavour::OpenMpi4);
    std::fs::write(user.home.path().join("train.sh"), "echo x\n").expect("write a script");
    let (code, told) = told(&user, "./train.sh");
    assert_eq!(code, Some(126), "{told}");
    assert!(told.contains("`./train.sh` cannot be executed on sh-host-0"), "{told}");
    assert!(told.contains("chmod +x ./train.sh"), "{told}");
}

#[test]
fn even_the_shortest_rank_has_its_host_in_front_of_its_line() {
    for flavour in Flavour::ALL {
        let user = User::of(flavour);
        let prefix = user.mpi.prefix.display().to_string();
        // Open MPI 5 can hang after commands that are no MPI programs.
        let program = user.program(Program::Hello);
        let words = ["run", "--mpi", &prefix, "--hosts", "2", "--slots", "2", "--", "mpirun", "-n"];
        let command = [&words[..], &["4", &program]].concat();
        let output = user.unisono(&command).output().expect("run unisono");
        let out = text(&output.stdout);
        for rank in 0..4 {
            let line = format!("{rank:>4} mpirun-host-{0} | rank {rank} of 4 on", rank / 2);
            assert!(out.lines().any(|it| it.starts_with(&line)), "{flavour:?}: {line:?}: {out}");
        }
    }
}
