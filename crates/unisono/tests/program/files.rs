//! Files that are no job files: each gets a clear answer, and nothing hangs.

use std::process::Stdio;

use crate::environment::Environment;

const JOB: &str = "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {name: ring}\nspec:\n  groups:\n  - {name: all, replicas: 2, run: LaunchOnFirst, command: [mpirun, hostname]}\n";

/// Exit code and standard error of `plan FILE`.
fn refused(environment: &Environment, file: &str) -> (i32, String) {
    let ended = environment.run(&["plan", file]);
    assert_eq!(ended.stdout, "", "nothing is planned");
    (ended.code, ended.stderr)
}

#[test]
fn what_cannot_be_opened_is_told_by_name() {
    let environment = Environment::new();
    environment.file("jobs/a.yaml", JOB);
    let (code, told) = refused(&environment, "missing.yaml");
    assert_eq!(code, 2);
    assert!(told.starts_with("error: cannot read missing.yaml: No such file"), "{told}");
    let (code, told) = refused(&environment, "jobs");
    assert_eq!(code, 2);
    assert!(told.starts_with("error: jobs is a folder, and a job file is needed"), "{told}");
    assert!(told.contains("`unisono check jobs`"), "{told}");
    let (code, told) = refused(&environment, "/dev/zero");
    assert_eq!(code, 2);
    assert!(told.starts_with("error: /dev/zero is a device, not a file"), "{told}");
}

#[test]
fn a_named_pipe_without_a_writer_does_not_hang() {
    let environment = Environment::new();
    let pipe = environment.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("make a pipe");
    let (code, told) = refused(&environment, "pipe");
    assert_eq!(code, 2);
    assert!(told.starts_with("error: pipe is a named pipe, not a file"), "{told}");
}

#[test]
fn what_is_no_text_or_too_much_of_it_is_a_fault() {
    let environment = Environment::new();
    environment.file("binary.yaml", b"\x7fELF\x02\x01\0\0").file("empty.yaml", "");
    environment.file("latin1.yaml", b"name: \xe9t\xe9\n").file("large.yaml", vec![b' '; 17 << 20]);
    for (file, code) in [
        ("binary.yaml", "not-text"),
        ("empty.yaml", "empty-file"),
        ("latin1.yaml", "not-text"),
        ("large.yaml", "file-too-large"),
    ] {
        let (exit, told) = refused(&environment, file);
        assert_eq!(exit, 1, "{told}");
        assert!(told.starts_with(&format!("error[{code}]: ")), "{told}");
    }
}

#[test]
fn standard_input_is_read_to_its_end_and_no_further_than_the_limit() {
    let environment = Environment::new();
    let ended = environment.run_with(&["check", "-"], JOB.as_bytes());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("<stdin>  unisono  ring"), "{}", ended.stdout);
    let ended = environment.run_with(&["check", "-"], &vec![b'x'; 17 << 20]);
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.starts_with("error[file-too-large]"), "{}", ended.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let environment = Environment::new();
    // More than a pipe holds, so that writing must fail.
    environment.file("job.yaml", JOB.replace("replicas: 2", "replicas: 5000"));
    let mut child = environment
        .command(&["plan", "--output", "json", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_folder_is_walked_and_what_is_no_job_is_only_listed() {
    let environment = Environment::new();
    environment.file("jobs/ring.yaml", JOB).file("jobs/deep/values.yml", "replicas: 3\n");
    environment.file("jobs/notes.md", "no").file("jobs/.hidden/x.yaml", "{");
    let ended = environment.run(&["check", "jobs"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("jobs/deep/values.yml  -        (no MPI job)"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.ends_with("2 files: 1 job, 0 errors, 0 warnings, 0 notes\n"));
    let named = environment.run(&["check", "jobs/deep/values.yml"]);
    assert_eq!(named.code, 1, "a file that was named must be a job");
}

#[test]
fn one_unreadable_file_does_not_hide_the_others() {
    let environment = Environment::new();
    environment.file("ring.yaml", JOB);
    let ended = environment.run(&["check", "missing.yaml", "ring.yaml"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stdout.contains("ring.yaml  unisono  ring"), "{}", ended.stdout);
    assert!(ended.stderr.contains("cannot read missing.yaml"), "{}", ended.stderr);
}

#[test]
fn escape_sequences_of_a_file_do_not_reach_the_terminal() {
    let environment = Environment::new();
    environment.file("job.yaml", JOB.replace("name: ring", "name: \"\\x1b[2J\", x\u{1b}]0;y: 1"));
    let ended = environment.run(&["check", "--color", "always", "job.yaml"]);
    let colours_removed = ended.stdout.replace("\u{1b}[0m", "").replace("\u{1b}[1m", "");
    assert!(!colours_removed.contains("\u{1b}[2J") && !colours_removed.contains("\u{1b}]"));
}
