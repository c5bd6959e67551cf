//! Every exit code of the program, in one place.
//!
//! | code | of | meaning |
//! |---|---|---|
//! | 0 | all | fine |
//! | 1 | `check`, `plan`, `convert`, … | the job file has faults, or (`--strict`) a conversion would lose something |
//! | 2 | all | the command line or a setting is wrong, or a file cannot be opened |
//! | 0–255 | running a job | the job's own code |
//! | 124 | running a job | its deadline passed |
//! | 125 | running a job | Unisono could not run it; an image could not be had |
//! | 126, 127 | running a job | its command cannot be executed, is not found |
//! | 128 + n | running a job | it ended by signal n |
//!
//! The codes of running a job are reserved for it: no other command uses them.

use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything is fine; also when the reader of our output went away.
    Fine,
    /// A job file has faults.
    Faults,
    /// The command line, a setting or a file name is wrong.
    Usage,
    /// A job was run, or could not be: its code.
    Job(u8),
}

impl Exit {
    /// Unisono could not run the job.
    pub(crate) const COULD_NOT_RUN: Self = Self::Job(125);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Faults => 1,
            Exit::Usage => 2,
            Exit::Job(code) => code,
        })
    }
}
