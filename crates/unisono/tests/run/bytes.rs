//! What a program writes arrives as it wrote it: every byte, lines of any length, words that look like a launcher's, progress bars.

use std::io::Read as _;
use std::process::Stdio;

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, text};

/// Nothing, an escape, a colour, a bell, a step back, what terminals delete, and a byte that is no text.
const FORMAT: &str = r"\000\033[31m\007\010\177\377x\n";
const BYTES: &[u8] = b"\0\x1b[31m\x07\x08\x7f\xffx\n";

/// What a rank runs that is to write only what this command writes. Open MPI 5 can hang after commands that are no MPI programs
/// (docs/mpi.md).
fn rank(user: &User, command: &str) -> String {
    format!("{command}; exec {} > /dev/null", user.program(Program::Hello))
}

/// Whether these bytes are somewhere in those.
fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|it| it == part)
}

#[test]
fn bytes_that_are_no_text_pass_in_every_form_that_shows_them() {
    let user = User::of(Flavour::OpenMpi4);
    let script = format!("printf '{FORMAT}'; printf '{FORMAT}' >&2");
    let call = |words: &[&str]| {
        let words = [words, &["--", "/bin/sh", "-c", &script]].concat();
        user.unisono(&words).output().expect("run unisono")
    };
    let raw = call(&["run", "--raw"]);
    assert_eq!(raw.stdout, BYTES, "{}", text(&raw.stderr));
    assert!(holds(&raw.stderr, BYTES), "{:?}", text(&raw.stderr));
    let logged = user.unisono(&["logs"]).output().expect("read the log");
    assert_eq!(logged.stdout, BYTES.repeat(2));
    let shown = call(&["run"]);
    let line = [b"     sh-host-0 | ", BYTES].concat();
    assert_eq!(shown.stdout, line, "{}", text(&shown.stdout));
    assert!(holds(&shown.stderr, &line), "{:?}", text(&shown.stderr));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn bytes_of_ranks_pass_through_every_launcher() {
    for flavour in Flavour::ALL {
        let user = User::of(flavour);
        let prefix = user.mpi.prefix.display().to_string();
        let call = |words: &[&str]| {
            let script = rank(&user, &format!("printf '{FORMAT}'"));
            let launch = ["--mpi", &prefix, "--", "mpirun", "-n", "1", "/bin/sh", "-c", &script];
            user.unisono(&[words, &launch].concat()).output().expect("run unisono")
        };
        assert_eq!(call(&["run", "--raw"]).stdout, BYTES, "{flavour:?}");
        assert!(holds(&call(&["run"]).stdout, &[b"| ", BYTES].concat()), "{flavour:?}");
        let logged = user.unisono(&["logs", "--rank", "0"]).output().expect("read the log");
        assert_eq!(logged.stdout, BYTES, "{flavour:?}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn a_line_of_ten_megabytes_without_an_end_arrives_complete() {
    for flavour in Flavour::ALL {
        // Open MPI 5 loses what does not fit into a pipe before a line ends (docs/mpi.md).
        let length = if flavour == Flavour::OpenMpi5 { 60_000 } else { 10_000_000 };
        let number = "$((OMPI_COMM_WORLD_RANK + PMI_RANK))";
        let user = User::of(flavour);
        let script = rank(&user, &format!("head -c {length} /dev/zero | tr '\\0' {number}"));
        let prefix = user.mpi.prefix.display().to_string();
        let words = ["run", "--mpi", &prefix, "--hosts", "2", "--slots", "1", "--", "mpirun"];
        let launch = ["-n", "2", "/bin/sh", "-c", &script];
        let output = user.unisono(&[&words[..], &launch].concat()).output().expect("run unisono");
        assert_eq!(output.status.code(), Some(0), "{flavour:?}: {}", text(&output.stderr));
        for rank in 0..2_u8 {
            let words = ["logs", "--rank", &rank.to_string()];
            let log = user.unisono(&words).output().expect("read the log").stdout;
            let is_whole = log.len() == length && log.iter().all(|byte| *byte == b'0' + rank);
            assert!(is_whole, "{flavour:?}: {} bytes of rank {rank}", log.len());
            // Shown in pieces, behind rank and host wherever the other one's came between.
            let shown = output.stdout.split(|byte| *byte == b'\n');
            let texts = shown.filter_map(|line| line.splitn(2, |byte| *byte == b'|').nth(1));
            let own = texts.filter(|text| text.get(1) == Some(&(b'0' + rank)));
            assert_eq!(own.map(|text| text.len() - 1).sum::<usize>(), length, "{flavour:?}");
        }
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn words_of_a_rank_that_look_like_a_tag_are_shown() {
    for (flavour, word) in [
        (Flavour::OpenMpi4, "[1,0]<stdout>:x"),
        (Flavour::OpenMpi5, "[1,0][w:5]<stdout>: x"),
        (Flavour::OpenMpi5, "[1,0]<stdout>:x"),
        (Flavour::Mpich, "[3@w] x"),
        (Flavour::IntelMpi, "y [3@w] x"),
    ] {
        let user = User::of(flavour);
        let prefix = user.mpi.prefix.display().to_string();
        let script = rank(&user, &format!("echo '{word}'"));
        let words = ["run", "--mpi", &prefix, "--", "mpirun", "-n", "1", "/bin/sh", "-c", &script];
        let output = user.unisono(&words).output().expect("run unisono");
        let shown = text(&output.stdout);
        assert_eq!(shown, format!("   0 mpirun-host-0 | {word}\n"), "{flavour:?}");
    }
}

#[test]
fn progress_is_seen_before_its_line_ends() {
    let user = User::of(Flavour::OpenMpi4);
    let script = "printf '10%%\\r20%%\\r'; while [ ! -e go ]; do sleep 0.05; done; echo done";
    let mut run = user
        .unisono(&["run", "--raw", "--", "/bin/sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run unisono");
    let mut drawn = [0; 8];
    // The line does not end before this was seen.
    run.stdout.as_mut().expect("its output").read_exact(&mut drawn).expect("progress");
    assert_eq!(&drawn, b"10%\r20%\r");
    std::fs::write(user.home.path().join("go"), "").expect("let it go");
    let output = run.wait_with_output().expect("it ends");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("done\n", Some(0)));
}
