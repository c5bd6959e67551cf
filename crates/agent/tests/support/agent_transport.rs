//! The agent under test as a transport of the testbed's clusters, called as an engine calls it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use unisono_agent::keys::JobKeys;
use unisono_agent::table::{Host, HostTable};
use unisono_testbed::hosts::{Seat, Seats};
use unisono_testbed::transport::{PORT, Transport, TransportError};

/// The agent with keys made for one cluster.
#[derive(Debug)]
pub(crate) struct Agent {
    program: PathBuf,
    folder: PathBuf,
}

impl Agent {
    /// This build of the agent.
    pub(crate) fn new(program: &Path) -> Self {
        Self { program: program.to_owned(), folder: PathBuf::new() }
    }

    fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    fn table(&self) -> PathBuf {
        self.folder.join("table")
    }
}

impl Transport for Agent {
    fn prepare(&mut self, seats: &Seats, folder: &Path) -> Result<(), TransportError> {
        self.folder = folder.to_owned();
        let names: Vec<&str> = seats.iter().map(|it| it.name.as_str()).collect();
        let keys = JobKeys::mint(["launcher"], names.iter().copied()).map_err(told)?;
        keys.write(&self.keys()).map_err(told)?;
        let hosts = seats.iter().map(|Seat { name, address }| Host {
            name: name.clone(),
            address: (*address).into(),
            slots: 1,
            key: keys.hosts[name].public().into(),
            port: Some(PORT),
            aliases: vec![],
        });
        let table = HostTable::new("test".to_owned(), 1, 1, hosts.collect()).map_err(told)?;
        std::fs::write(self.table(), table.to_string())?;
        let installed = Command::new(&self.program).arg("install").arg(folder).status()?;
        if !installed.success() {
            return Err(TransportError::Program(format!("install ended with {installed}")));
        }
        Ok(())
    }

    fn process_one(&self, seat: &Seat) -> Vec<OsString> {
        let key = self.keys().join("host").join(format!("{}.key", seat.name));
        vec![
            self.folder.join("unisono-agent").into(),
            "serve".into(),
            "--listen".into(),
            format!("{}:{PORT}", seat.address).into(),
            "--key".into(),
            key.into(),
            "--launchers".into(),
            self.keys().join("launchers").into(),
        ]
    }

    fn rsh_agent(&self) -> PathBuf {
        self.folder.join("unisono-rsh")
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let key = self.keys().join("launcher").join("launcher.key");
        vec![
            ("UNISONO_AGENT_LAUNCHER_KEY".into(), key.into()),
            ("UNISONO_AGENT_TABLE".into(), self.table().into()),
            ("UNISONO_AGENT_PROOF".into(), self.folder.join("proof").into()),
        ]
    }
}

fn told(error: impl std::fmt::Display) -> TransportError {
    TransportError::Program(error.to_string())
}
