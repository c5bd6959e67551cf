//! The floor: a plain-text agent of a page of C, below which no real transport can go.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{PORT, Transport, TransportError};
use crate::hosts::{Seat, Seats};
use crate::program::compile_static;

/// The least a transport can do.
#[derive(Debug, Default)]
pub struct Floor {
    program: PathBuf,
    table: PathBuf,
}

impl Transport for Floor {
    fn prepare(&mut self, seats: &Seats, folder: &Path) -> Result<(), TransportError> {
        self.program = compile_static("floor", include_str!("floor.c"))?;
        self.table = folder.join("floor.hosts");
        let mut table = String::new();
        for Seat { name, address } in seats {
            // Writing to a String cannot fail.
            let _infallible = writeln!(table, "{name} {address} {PORT}");
        }
        Ok(std::fs::write(&self.table, table)?)
    }

    fn process_one(&self, seat: &Seat) -> Vec<OsString> {
        let (address, port) = (seat.address.to_string(), PORT.to_string());
        vec![self.program.clone().into(), "serve".into(), address.into(), port.into()]
    }

    fn rsh_agent(&self) -> PathBuf {
        self.program.clone()
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![("FLOOR_HOSTS".into(), self.table.clone().into())]
    }
}
