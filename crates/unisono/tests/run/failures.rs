//! What is told of a failure: which rank, on which host, how, and what to do.

use unisono_testbed::kernel::tells_how_processes_end;
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, text};

/// Four ranks on two hosts; rank 2 is the first of the second host.
fn told(user: &User, command: &str) -> (Option<i32>, String) {
    let prefix = user.mpi.prefix.display().to_string();
    let words = ["run", "--mpi", &prefix, "--hosts", "2", "--slots", "2", "--timeout", TOO_LONG];
    let command = [&words[..], &["--", "/bin/sh", "-c", command]].concat();
    let output = user.unisono(&command).output().expect("run unisono");
    user.watch.assert_nothing_left(SOON);
    (output.status.code(), text(&output.stderr))
}

/// After this many seconds a launcher is taken for one that never ends. Only those that hang are waited for so long.
const TOO_LONG: &str = "20";

/// Launchers that now and then never end after a bad end of that kind (docs/mpi.md). Then, too, is told which rank it was.
const HANGING: [(Flavour, Program); 4] = [
    (Flavour::OpenMpi5, Program::Abort),
    (Flavour::OpenMpi5, Program::ExitCode),
    (Flavour::OpenMpi5, Program::Segfault),
    (Flavour::Mpich, Program::ExitCode),
];

/// Launchers that kill the rank with the others before it can exit, and end now and then before they have passed on its last
/// words: then nobody can know who it was.
const SILENT: [(Flavour, Program); 1] = [(Flavour::Mpich, Program::Abort)];

/// Lets rank 2 of each MPI come to a bad end, and sees that rank 2, and nobody else, is named for it.
fn assert_rank_2_is_told(program: Program, arguments: &str, sentence: &str) {
    for flavour in Flavour::ALL {
        let user = User::of(flavour);
        let command = format!("mpirun -n 4 {} {arguments}", user.program(program));
        let (code, told) = told(&user, &command);
        let may_hang = HANGING.contains(&(flavour, program));
        assert!(
            code != Some(0) && (may_hang || code != Some(124)),
            "{flavour:?}: {code:?}: {told}"
        );
        let of_ranks: Vec<&str> = told.lines().filter(|line| line.starts_with("rank ")).collect();
        let is_told = |line: &str| {
            line.strip_suffix(", but its launcher went on").unwrap_or(line) == sentence
        };
        // A peer may have crashed at the same moment: then both are told, below the launcher's own end.
        let one_of = told.lines().any(|line| line.trim_start() == sentence);
        assert!(of_ranks.iter().all(|line| is_told(line)), "{flavour:?}: {told}");
        let launcher_tells = matches!(flavour, Flavour::OpenMpi4);
        let is_known = launcher_tells || tells_how_processes_end();
        let may_be_unknown = SILENT.contains(&(flavour, program)) || !is_known;
        assert!(may_be_unknown || !of_ranks.is_empty() || one_of, "{flavour:?}: {told}");
    }
}

#[test]
fn a_rank_that_exits_after_its_last_word_to_mpi_is_told() {
    assert_rank_2_is_told(Program::ExitCode, "2 3", "rank 2 on sh-host-1 ended with exit code 3");
}

#[test]
fn a_rank_that_exits_without_a_word_to_mpi_is_told() {
    let sentence = "rank 2 on sh-host-1 ended with exit code 3";
    assert_rank_2_is_told(Program::ExitCode, "2 3 before-finalize", sentence);
}

#[test]
fn a_rank_that_aborts_is_told() {
    assert_rank_2_is_told(Program::Abort, "2 42", "rank 2 on sh-host-1 ended with exit code 42");
}

#[test]
fn a_rank_that_a_signal_ends_is_told_by_its_name_whatever_the_launcher_ends_with() {
    let sentence = "rank 2 on sh-host-1 was ended by signal 11 (SIGSEGV)";
    assert_rank_2_is_told(Program::Segfault, "2", sentence);
}

#[test]
fn a_rank_that_ends_after_its_launcher_is_told() {
    let user = User::of(Flavour::OpenMpi4);
    // A launcher that fails at once when its rank runs; the rank takes its time to notice.
    let rank = "exec 2> /dev/null\ntrap 'sleep 0.5; exit 3' TERM\ntouch runs\nwhile :; do sleep 0.05; done\n";
    std::fs::write(user.home.path().join("rank.sh"), rank).expect("write a script");
    let command = "ssh sh-host-1 PMI_RANK=2 unisono-rank sh rank.sh & \
                   while [ ! -e runs ]; do sleep 0.05; done; exit 9";
    let (code, told) = told(&user, command);
    assert_eq!(code, Some(9), "{told}");
    let sentence = "rank 2 on sh-host-1 ended with exit code 3\n";
    assert!(told.contains(sentence) == tells_how_processes_end(), "{told}");
}

#[test]
fn codes_of_ranks_are_passed_through_where_launchers_do() {
    let user = User::of(Flavour::OpenMpi4);
    for (program, arguments, expected) in
        [(Program::ExitCode, "2 3", 3), (Program::Abort, "2 42", 42), (Program::Segfault, "2", 139)]
    {
        let command = format!("mpirun -n 4 {} {arguments}", user.program(program));
        let (code, told) = told(&user, &command);
        assert_eq!(code, Some(expected), "{told}");
    }
}

#[test]
fn a_launch_that_the_command_went_on_after_is_not_blamed() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::ExitCode);
    let command = format!("mpirun -n 4 {program} 2 3 || mpirun -n 3 {program} 1 7");
    let (code, told) = told(&user, &command);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains("rank 1 on sh-host-0 ended with exit code 7\n"), "{told}");
    assert!(!told.contains("exit code 3\n"), "{told}");
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
    // The program is missing on both hosts, and Open MPI tells of the one that noticed first.
    assert!(told.contains("there is no program `./simulate` on sh-host-"), "{told}");
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
