//! Ways for `mpirun` to reach other hosts, one interface for all: the agent under test implements it in its own tests,
//! OpenSSH and the floor (the least that can be done) are here to compare with.

mod floor;
mod ssh;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use floor::Floor;
pub use ssh::{KeyExchange, Ssh};

use crate::hosts::{Seat, Seats};
use crate::program::CompileError;

/// The port that every transport serves on; each host has an address of its own.
pub const PORT: u16 = 7422;

/// One way to reach other hosts.
pub trait Transport {
    /// Writes keys, tables and whatever else it needs into `folder`, which every host sees.
    ///
    /// # Errors
    /// When a file cannot be written or a program it needs is missing.
    fn prepare(&mut self, seats: &Seats, folder: &Path) -> Result<(), TransportError>;

    /// What a host runs as process 1 to be reached.
    fn process_one(&self, seat: &Seat) -> Vec<OsString>;

    /// What `mpirun` calls with a host and a command.
    fn rsh_agent(&self) -> PathBuf;

    /// What the rsh agent needs in its environment.
    fn environment(&self) -> Vec<(OsString, OsString)>;
}

/// Why a transport could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Its program could not be compiled.
    #[error("compile the transport's program")]
    Compile(#[from] CompileError),
    /// A file could not be written.
    #[error("write the transport's files")]
    Files(#[from] std::io::Error),
    /// A program that it needs failed.
    #[error("{0}")]
    Program(String),
}
