//! The calls that the README and the page on running show, typed for real.

use std::path::Path;
use std::process::Command;

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, TWO_TEMPLATES, User, text};

#[test]
fn every_run_of_the_page_on_running_ends_well() {
    let user = User::of(Flavour::OpenMpi4);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let block = page.split("```sh\n").nth(1).and_then(|it| it.split("```").next());
    let lines: Vec<&str> = block.expect("it shows calls").lines().collect();
    assert!(lines.len() >= 9, "{lines:?}");

    let home = user.home.path();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unisono"), home.join("unisono")).expect("link");
    std::os::unix::fs::symlink(user.program(Program::Hello), home.join("a.out")).expect("link");
    // Open MPI 5 can hang after commands that are no MPI programs (docs/mpi.md), and a program is for the MPI it was built with.
    let other = User::of(Flavour::OpenMpi5);
    for (user, file) in [(&user, "job.yaml"), (&other, "other.yaml")] {
        let command = format!("mpirun -np 2 {}", user.program(Program::Hello));
        let job = TWO_TEMPLATES.replace("VERSION", "v2beta1").replace("COMMAND", &command);
        std::fs::write(home.join(file), job).expect("write the job");
    }
    let prefix = other.mpi.prefix.display().to_string();
    for line in lines {
        let line = match line.contains("/opt/openmpi-5") {
            true => line.replace("/opt/openmpi-5", &prefix).replace("job.yaml", "other.yaml"),
            false => line.to_owned(),
        };
        let line = line.replacen("unisono run ", "unisono run --timeout 60 ", 1);
        let path = format!("{}:{}", home.display(), std::env::var("PATH").expect("a PATH"));
        let mut command = Command::new("sh");
        let (name, mark) = user.watch.variable();
        command.args(["-c", &line]).env("PATH", path).env("HOME", home).env(name, mark);
        command.current_dir(home);
        let output = command.env_remove("XDG_STATE_HOME").output().expect("a shell starts");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_run_tells_which_hosts_came_up_and_that_root_may_run_open_mpi() {
    for (flavour, is_told) in [(Flavour::OpenMpi4, true), (Flavour::Mpich, false)] {
        let user = User::of(flavour);
        let prefix = user.mpi.prefix.display().to_string();
        let words = ["run", "--mpi", &prefix, "--hosts", "5", "--slots", "1", "--", "true"];
        let output = user.unisono(&words).output().expect("run unisono");
        let told = text(&output.stderr);
        assert!(told.contains(": true-host-0 … true-host-4\n"), "{told}");
        // Tests run as root: hosts need it.
        assert_eq!(told.matches("allowed to run as root").count(), usize::from(is_told), "{told}");
    }
}

#[test]
fn the_run_that_the_readme_shows_is_a_real_one() {
    let user = User::of(Flavour::OpenMpi4);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("there is a README");
    let block = readme.split("```text\n$ unisono ").nth(1).and_then(|it| it.split("```").next());
    let (call, shown) = block.and_then(|it| it.split_once('\n')).expect("it shows a run");

    let mut words: Vec<&str> = call.split(' ').collect();
    let prefix = user.mpi.prefix.display().to_string();
    words.extend(["--mpi", &prefix]);
    let output = user.unisono(&words).current_dir(&root).output().expect("run unisono");
    // The README is for people who are not root as well.
    let told = text(&output.stderr).replace(" (allowed to run as root)", "");
    // Open MPI says so now and then, when it was overtaken by what it started (docs/mpi.md).
    let overtaken = |line: &&str| line.contains("plm:rsh: Warning: setpgid(");
    let told = told.lines().filter(|line| !overtaken(line)).collect::<Vec<_>>().join("\n");
    let (start, end) = told.trim_end().rsplit_once('\n').expect("what it tells has lines");
    assert_eq!(as_always(&[start, &text(&output.stdout), end].join("\n")), as_always(shown));
}

/// Lines without what differs from run to run: the order of ranks, times, versions and the name of the run.
fn as_always(lines: &str) -> Vec<String> {
    let word =
        |word: &str| match word.contains('.') && word.starts_with(|it: char| it.is_ascii_digit()) {
            true => "NUMBER".to_owned(),
            false if word.starts_with("(hello-") => "(RUN)".to_owned(),
            false => word.to_owned(),
        };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<String>>().join(" ");
    let mut lines: Vec<String> = lines.lines().filter(|it| !it.is_empty()).map(line).collect();
    lines.sort();
    lines
}
