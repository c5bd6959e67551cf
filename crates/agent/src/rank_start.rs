//! The beginning of a rank, where a launcher can be told to start ranks through a program: its command goes in, a line of the
//! launch proof comes out, and this process becomes the rank. So a rank is known however short it lives, and its end is, too.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use thiserror::Error;

use crate::proof::{Event, Proof};
use crate::ranks;
use crate::settings::{NOT_FOR_RANKS, Settings};
use crate::witness;

/// Why the rank's program does not run.
#[derive(Debug, Error)]
pub(crate) enum RankError {
    #[error("say which program the rank is to run")]
    Nothing,
    #[error("cannot run {program}")]
    Program { program: String, source: io::Error },
}

impl RankError {
    /// The exit code to give, as shells do.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() != io::ErrorKind::NotFound => 126,
            Self::Nothing | Self::Program { .. } => 127,
        }
    }
}

/// Tells which rank begins here, and becomes its program. Returns only when it cannot.
pub(crate) fn begin(settings: &Settings, command: &[OsString]) -> RankError {
    let Some((program, arguments)) = command.split_first() else {
        return RankError::Nothing;
    };
    if let Some(rank) = ranks::own() {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let proof = Proof::new(settings.proof.as_deref(), &host);
        if witness::leave(&proof, &rank) {
            proof.tell(Event::Witnessed(rank.clone()));
        }
        proof.tell(Event::Rank(rank));
    }
    let mut rank = Command::new(program);
    for name in settings.not_for_ranks.iter().map(String::as_str).chain([NOT_FOR_RANKS]) {
        rank.env_remove(name);
    }
    let source = rank.args(arguments).exec();
    RankError::Program { program: program.to_string_lossy().into_owned(), source }
}
