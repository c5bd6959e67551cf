//! What launchers, MPIs and shells say about a bad end: lines of theirs enter; the rank that failed first, or the program that
//! could not be run, leaves.
//!
//! Only a launcher waits for its ranks, so only it knows how each ended. It tells people, and each tells it in its own words.

/// A rank that ended badly, as far as its launcher tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    /// Its number; MPICH tells only host and process.
    pub rank: Option<u32>,
    /// Its process on its host.
    pub process: Option<i32>,
    /// Its host.
    pub host: Option<String>,
    /// Its exit code, or 128 and its signal.
    pub code: Option<i32>,
}

/// A program that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrunnable {
    /// As it was called.
    pub program: String,
    /// Where, when that is told.
    pub host: Option<String>,
    /// Whether it is there but may not be executed.
    pub is_there: bool,
}

impl Unrunnable {
    /// What these lines tell about it: Open MPI names the program on one line and the host on the next.
    pub fn told_in(&self, lines: &[&str]) -> Vec<String> {
        let told = lines.iter().skip_while(|line| !line.contains(&self.program));
        told.take(2).map(|&line| line.to_owned()).collect()
    }

    /// The exit code that shells give for it.
    pub const fn code(&self) -> i32 {
        if self.is_there { 126 } else { 127 }
    }
}

/// The first rank that these lines of a launcher blame.
pub fn blamed(lines: &[&str]) -> Option<Blame> {
    // Launchers break their lines where they like.
    let said = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let ways = [signalled, aborted_by_rank, called_abort, exited, bad_termination, hydra_abort];
    ways.iter().filter_map(|way| way(&said)).min_by_key(|(at, _)| *at).map(|(_, blame)| blame)
}

/// Where something was found, and what.
type Found = Option<(usize, Blame)>;

/// Open MPI: `process rank 2 with PID 8 on node worker-1 exited on signal 11 (…)`.
fn signalled(said: &str) -> Found {
    let (at, rest) = after(said, "process rank ")?;
    let (rank, rest) = rest.split_once(" with PID ")?;
    let (_, rest) = rest.split_once(" on node ")?;
    let (host, rest) = rest.split_once(" exited on signal ")?;
    let code = Some(128 + leading_number::<i32>(rest)?);
    let host = Some(single_word(host)?);
    Some((at, Blame { rank: Some(rank.parse().ok()?), host, code, process: None }))
}

/// Open MPI 5: `due to process rank 2 with PID 24 on node worker-1 calling "abort"`.
fn aborted_by_rank(said: &str) -> Found {
    let (at, rest) = after(said, "due to process rank ")?;
    let (rank, rest) = rest.split_once(" with PID ")?;
    let (_, rest) = rest.split_once(" on node ")?;
    let host = Some(rest.split(' ').next()?.to_owned());
    Some((at, Blame { rank: Some(rank.parse().ok()?), host, ..Blame::default() }))
}

/// Open MPI: `MPI_ABORT was invoked on rank 2 … with errorcode 42.` or `… Errorcode: 42`.
fn called_abort(said: &str) -> Found {
    let (at, rest) = after(said, "MPI_ABORT was invoked on rank ")?;
    let rank = Some(leading_number(rest)?);
    let told = |mark| after(rest, mark).and_then(|(_, it)| leading_number(it));
    let code = told("with errorcode ").or_else(|| told("Errorcode: "));
    Some((at, Blame { rank, code, ..Blame::default() }))
}

/// Open MPI: `The first process to do so was: Process name: [[52645,1],2] Exit code: 3`.
fn exited(said: &str) -> Found {
    let (at, rest) = after(said, "The first process to do so was: Process name: [")?;
    let (name, rest) = rest.split_once("] Exit code: ")?;
    let rank = Some(name.rsplit(',').next()?.parse().ok()?);
    Some((at, Blame { rank, code: Some(leading_number(rest)?), ..Blame::default() }))
}

/// Hydra: `RANK 2 PID 8 RUNNING AT worker-1 = KILLED BY SIGNAL: 11`, or without rank and with `EXIT CODE:`.
fn bad_termination(said: &str) -> Found {
    let (at, rest) = after(said, "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES = ")?;
    let (who, rest) = rest.split_once(" RUNNING AT ")?;
    let number = |mark: &str| after(who, mark).and_then(|(_, it)| leading_number(it));
    let host = Some(rest.split(' ').next()?.to_owned());
    let signal = after(rest, "KILLED BY SIGNAL: ")
        .or_else(|| after(rest, "EXIT STRING: ").and_then(|(_, it)| after(it, "(signal ")))
        .and_then(|(_, it)| leading_number::<i32>(it));
    let status = ["EXIT STATUS: ", "EXIT CODE: "].iter().find_map(|mark| after(rest, mark));
    let code =
        signal.map(|signal| 128 + signal).or_else(|| status.and_then(|(_, it)| leading_number(it)));
    let process = number("PID ").and_then(|it: u32| i32::try_from(it).ok());
    Some((at, Blame { rank: number("RANK "), process, host, code }))
}

/// MPICH and Intel MPI: `Abort(42) on node 2 (rank 2 in comm 0): …`.
fn hydra_abort(said: &str) -> Found {
    let (at, rest) = after(said, "Abort(")?;
    let (code, rest) = rest.split_once(") on node ")?;
    let rank = Some(leading_number(rest)?);
    Some((at, Blame { rank, code: Some(code.parse().ok()?), ..Blame::default() }))
}

/// The program that could not be run, by what these lines say.
pub fn unrunnable(lines: &[impl AsRef<str>]) -> Option<Unrunnable> {
    unrunnable_by_launcher(lines)
        .or_else(|| lines.iter().find_map(|line| by_a_shell(line.as_ref().trim())))
}

/// The program that a launcher could not start as a rank.
pub fn unrunnable_by_launcher(lines: &[impl AsRef<str>]) -> Option<Unrunnable> {
    lines.iter().enumerate().find_map(|(at, line)| {
        let line = line.as_ref().trim();
        let following = lines.get(at + 1..).unwrap_or_default();
        by_open_mpi(line, following).or_else(|| by_hydra(line))
    })
}

/// `Executable: ./nope`, and on the next line `Node: worker-1`: programs write the first of them themselves. Both versions say the
/// same when it may not be executed.
fn by_open_mpi(line: &str, following: &[impl AsRef<str>]) -> Option<Unrunnable> {
    let program = line.strip_prefix("Executable: ")?.trim().to_owned();
    let host = following.first()?.as_ref().trim().strip_prefix("Node: ")?;
    Some(Unrunnable { program, host: Some(host.to_owned()), is_there: false })
}

/// What Hydra's proxies begin their own lines with. They write them where their ranks write, so that they look like a rank's.
pub const HYDRA_PROXY: &str = "[proxy:";

/// `[proxy:0@worker-1] HYDU_create_process (…): execvp error on file ./nope (No such file or directory)`.
fn by_hydra(line: &str) -> Option<Unrunnable> {
    let line = line.strip_prefix(HYDRA_PROXY)?;
    let (before, rest) = line.split_once("execvp error on file ")?;
    let (program, reason) = rest.rsplit_once(" (")?;
    let host = before.split_once('@').and_then(|(_, it)| it.split_once(']')).map(|(host, _)| host);
    Some(Unrunnable {
        program: program.to_owned(),
        host: host.map(str::to_owned),
        is_there: reason.starts_with("Permission denied"),
    })
}

/// `sh: 1: nope: not found`, `bash: line 1: nope: command not found`, `…: ./x: Permission denied`, and our own `cannot run nope: …`.
fn by_a_shell(line: &str) -> Option<Unrunnable> {
    const ENDINGS: [(&str, bool); 5] = [
        (": command not found", false),
        (": not found", false),
        (": No such file or directory", false),
        (": Permission denied", true),
        (": cannot execute: required file not found", true),
    ];
    let of = |program: &str, is_there| {
        let program = program.trim().to_owned();
        (!program.is_empty()).then_some(Unrunnable { program, host: None, is_there })
    };
    if let Some((program, reason)) =
        line.split_once("cannot run ").and_then(|(_, it)| it.split_once(": "))
    {
        return of(program, reason.starts_with("Permission denied"));
    }
    let (before, is_there) = ENDINGS
        .iter()
        .find_map(|(ending, is_there)| Some((line.split_once(ending)?.0, *is_there)))?;
    let speaker = before.split(':').next()?;
    let is_shell = ["sh", "bash", "dash", "unisono"].iter().any(|it| speaker.ends_with(it));
    if !is_shell {
        return None;
    }
    of(before.rsplit(": ").next()?, is_there)
}

/// What stands behind a mark, and where the mark stands.
fn after<'text>(text: &'text str, mark: &str) -> Option<(usize, &'text str)> {
    let at = text.find(mark)?;
    Some((at, text.get(at + mark.len()..)?))
}

fn leading_number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

fn single_word(text: &str) -> Option<String> {
    (!text.contains(' ')).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blame(rank: Option<u32>, host: Option<&str>, code: Option<i32>) -> Option<Blame> {
        Some(Blame { rank, host: host.map(str::to_owned), code, process: None })
    }

    #[test]
    fn open_mpi_4_is_understood() {
        let exit = [
            "mpirun detected that one or more processes exited with non-zero status, thus causing",
            "the job to be terminated. The first process to do so was:",
            "",
            "  Process name: [[52645,1],2]",
            "  Exit code:    3",
        ];
        assert_eq!(blamed(&exit), blame(Some(2), None, Some(3)));
        let signal = "mpirun noticed that process rank 2 with PID 8 on node w-1 exited on signal 11 (Segmentation fault).";
        assert_eq!(blamed(&[signal]), blame(Some(2), Some("w-1"), Some(139)));
        let abort = [
            "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD",
            "with errorcode 42.",
        ];
        assert_eq!(blamed(&abort), blame(Some(2), None, Some(42)));
    }

    #[test]
    fn open_mpi_5_is_understood_wherever_it_breaks_its_lines() {
        let exit = [
            "The first process to do so was:",
            "",
            "   Process name: [prterun-w-0-5@1,2]",
            "   Exit code:    3",
        ];
        assert_eq!(blamed(&exit), blame(Some(2), None, Some(3)));
        let signal = [
            "prterun noticed that process rank 12 with PID 24 on node w-1 exited on",
            "signal 11 (Segmentation fault).",
        ];
        assert_eq!(blamed(&signal), blame(Some(12), Some("w-1"), Some(139)));
        let abort = [
            "prterun has exited due to process rank 2 with PID 24 on node w-1 calling",
            "\"abort\". This may",
        ];
        assert_eq!(blamed(&abort), blame(Some(2), Some("w-1"), None));
    }

    #[test]
    fn hydra_is_understood_and_the_first_of_several_counts() {
        let intel = [
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   RANK 2 PID 8 RUNNING AT w-1",
            "=   KILLED BY SIGNAL: 11 (Segmentation fault)",
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   RANK 3 PID 9 RUNNING AT w-1",
            "=   KILLED BY SIGNAL: 9 (Killed)",
        ];
        let first = Blame {
            rank: Some(2),
            process: Some(8),
            host: Some("w-1".to_owned()),
            code: Some(139),
        };
        assert_eq!(blamed(&intel), Some(first.clone()));
        let mpich = [
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   PID 8 RUNNING AT w-1",
            "=   EXIT CODE: 11",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
        ];
        assert_eq!(blamed(&mpich), Some(Blame { rank: None, ..first }));
        let abort = "Abort(42) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 42) - process 2";
        assert_eq!(blamed(&[abort]), blame(Some(2), None, Some(42)));
    }

    #[test]
    fn nobody_is_blamed_for_what_a_program_prints() {
        for line in ["", "process rank 3 with PID", "Abort(", "rank 2 done", "BAD TERMINATION"] {
            assert_eq!(blamed(&[line]), None, "{line}");
        }
    }

    fn missing(program: &str, host: Option<&str>, is_there: bool) -> Option<Unrunnable> {
        Some(Unrunnable { program: program.to_owned(), host: host.map(str::to_owned), is_there })
    }

    #[test]
    fn programs_that_cannot_be_run_are_known_by_name_and_host() {
        assert_eq!(
            unrunnable(&["Executable: ./nope", "Node: w-1", ""]),
            missing("./nope", Some("w-1"), false)
        );
        let hydra = "[proxy:0@w-1] HYDU_create_process (launch.c:73): execvp error on file ./notx (Permission denied)";
        assert_eq!(unrunnable(&[hydra]), missing("./notx", Some("w-1"), true));
        for (line, expected) in [
            ("/bin/sh: 1: nope: not found", missing("nope", None, false)),
            ("bash: line 1: python: command not found", missing("python", None, false)),
            ("/bin/bash: ./notx: Permission denied", missing("./notx", None, true)),
            ("unisono-agent: cannot run nope: No such file", missing("nope", None, false)),
            ("unisono: mpirun: command not found: install an MPI", missing("mpirun", None, false)),
        ] {
            assert_eq!(unrunnable(&[line]), expected, "{line}");
        }
    }

    #[test]
    fn files_that_a_program_misses_are_not_programs() {
        for line in [
            "cat: x: No such file or directory",
            "rank 3: not found",
            "ls: a: b",
            "Executable: ./mine",
            "execvp error on file x (No such file or directory)",
        ] {
            assert_eq!(unrunnable(&[line, "Host: w-1"]), None, "{line}");
        }
    }
}
