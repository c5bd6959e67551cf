//! What a terminal sees that a file does not: a live line, and colours.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{User, text};

/// A terminal: what a program writes to the second can be read from the first.
fn terminal() -> (File, File) {
    let ours: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it may be used");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let path = name.to_str().expect("its name is text");
    let theirs = File::options().read(true).write(true).open(path).expect("open it");
    (ours.into(), theirs)
}

/// Everything that a run writes to its terminal.
fn seen(user: &User, words: &[&str]) -> String {
    let (mut ours, theirs) = terminal();
    let mut run = user
        .unisono(words)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdout(theirs.try_clone().expect("a second handle"))
        .stderr(theirs)
        .spawn()
        .expect("run unisono");
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    // A terminal whose last user has left ends with an error.
    while let Ok(length @ 1..) = ours.read(&mut piece) {
        all.extend_from_slice(&piece[..length]);
    }
    assert!(run.wait().expect("it ends").success());
    text(&all)
}

#[test]
fn a_terminal_shows_what_is_waited_for_and_colours_ranks() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Hello);
    let words = ["run", "--hosts", "2", "--slots", "1", "--", "mpirun", "-n", "2", &program];
    let seen = seen(&user, &words);
    assert!(seen.contains("mpirun: the command runs on mpirun-host-0"), "{seen:?}");
    // Taken away before the next line is written.
    let after = seen.rsplit("the command runs on").next().unwrap_or_default();
    assert!(after.contains("\u{1b}[2K") && after.contains("succeeded"), "{seen:?}");
    let colours: Vec<&str> =
        ["\u{1b}[36m   0 mpirun-host-0 |", "\u{1b}[32m   1 mpirun-host-1 |"].into();
    assert!(colours.iter().all(|it| seen.contains(it)), "{seen:?}");
}

#[test]
fn a_terminal_shows_progress_in_place_behind_rank_and_host() {
    let user = User::of(Flavour::OpenMpi4);
    let script = "printf '10%%\\r20%%\\r'; echo done; printf 'no end'";
    let seen = seen(&user, &["run", "--color", "never", "--", "/bin/sh", "-c", script]);
    let before = "     sh-host-0 | ";
    let drawn = format!("{before}10%\r{before}20%\r{before}done\r\n{before}no end\r\nsh: ");
    assert!(seen.contains(&drawn), "{seen:?}");
}

#[test]
fn a_file_sees_neither_live_line_nor_colours() {
    let user = User::of(Flavour::OpenMpi4);
    let output = user.unisono(&["run", "--", "mpirun", "-n", "1", "hostname"]).output();
    let output = output.expect("run unisono");
    let seen = text(&[output.stdout, output.stderr].concat());
    assert!(!seen.contains('\u{1b}') && !seen.contains("the command runs on"), "{seen:?}");
}
