//! A place of its own for every call of the program: empty home, empty folder, no variables, no terminal.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A home and a working folder that nobody else uses.
pub(crate) struct Environment {
    folder: TempDir,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Environment {
    /// A new place.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    /// The working folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the working folder.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("make the folder");
        fs::write(path, content).expect("write the file");
        self
    }

    /// The program with these words, ready to be started.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
        command.args(words).env_clear().env("HOME", self.path()).env("USER", "somebody");
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().expect("the program starts"))
    }

    /// Runs the program with something to read.
    pub(crate) fn run_with(&self, words: &[&str], input: &[u8]) -> Ended {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // The program may end without reading all of it, which is no fault of ours.
        let _broken_pipe = child.stdin.take().expect("it is piped").write_all(input);
        Ended::of(child.wait_with_output().expect("the program ends"))
    }

    /// Plans a job and reads the JSON document.
    pub(crate) fn plan(&self, words: &[&str]) -> serde_json::Value {
        let ended = self.run(&[&["plan", "--output", "json"], words].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
        serde_json::from_str(&ended.stdout).expect("it is one JSON document")
    }
}

impl Ended {
    /// How a call ended.
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("it is text"),
            stderr: String::from_utf8(output.stderr).expect("it is text"),
        }
    }
}
