//! What a program writes arrives as it wrote it: every byte, lines of any length, words that look like a launcher's, progress bars.

use unisono_testbed::mpi::Flavour;

use crate::{SOON, User, text};

/// Nothing, an escape, a colour, a bell, a step back, what terminals delete, and a byte that is no text.
const FORMAT: &str = r"\000\033[31m\007\010\177\377x\n";
const BYTES: &[u8] = b"\0\x1b[31m\x07\x08\x7f\xffx\n";

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
            let launch = ["--mpi", &prefix, "--", "mpirun", "-n", "1", "/usr/bin/printf", FORMAT];
            user.unisono(&[words, &launch].concat()).output().expect("run unisono")
        };
        assert_eq!(call(&["run", "--raw"]).stdout, BYTES, "{flavour:?}");
        assert!(holds(&call(&["run"]).stdout, &[b"| ", BYTES].concat()), "{flavour:?}");
        let logged = user.unisono(&["logs", "--rank", "0"]).output().expect("read the log");
        assert_eq!(logged.stdout, BYTES, "{flavour:?}");
        user.watch.assert_nothing_left(SOON);
    }
}
