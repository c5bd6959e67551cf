//! Isolated hosts joined by a transport, ready for `mpirun`: what enters is a shape and a transport, what leaves is a
//! command that launches over the hosts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::hosts::{Furniture, Host, HostError, Hosts, Network, Seats, cpu_time};
use crate::leaks::{self, Watch};
use crate::mpi::{HostSlots, Installation, hydra_hostfile, open_mpi_hostfile, settings};
use crate::transport::{PORT, Transport, TransportError};

/// Who runs `mpirun`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// The first of the hosts that also run ranks.
    FirstHost,
    /// A host of its own, without ranks, whose name the others cannot resolve.
    UnknownToWorkers,
}

/// How many hosts, and how they are joined.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Hosts that run ranks.
    pub hosts: usize,
    /// Ranks that each takes.
    pub slots: usize,
    /// Which network they are on.
    pub network: Network,
    /// Where `mpirun` runs.
    pub launcher: Launcher,
}

/// The name of a launcher that is a host of its own.
const LAUNCHER: &str = "launcher";

const OPEN_MPI_HOSTFILE: &str = "hostfile.openmpi";
const HYDRA_HOSTFILE: &str = "hostfile.hydra";

/// Why a cluster could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The hosts could not be made.
    #[error(transparent)]
    Hosts(#[from] HostError),
    /// The transport could not be made.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Files could not be written.
    #[error("write the hostfiles")]
    Files(#[from] std::io::Error),
    /// A host's transport does not listen.
    #[error("{host} does not listen on port {PORT}: {log}")]
    Silent {
        /// The host.
        host: String,
        /// What its process 1 wrote.
        log: String,
    },
}

/// Hosts over which `mpirun` can launch.
#[derive(Debug)]
pub struct Cluster {
    /// The hosts; `mpirun` runs in the first.
    pub hosts: Hosts,
    /// Sees everything that runs in the hosts.
    pub watch: Watch,
    /// How many ranks each host takes.
    slots: usize,
    environment: BTreeMap<OsString, OsString>,
    rsh_agent: PathBuf,
    files: tempfile::TempDir,
}

impl Cluster {
    /// Starts the hosts and waits until each can be reached.
    ///
    /// # Errors
    /// When the machine lacks something, or a host's process 1 does not come up.
    pub fn start(shape: Shape, transport: &mut dyn Transport) -> Result<Self, ClusterError> {
        let mut names: Vec<String> = (0..shape.hosts).map(|it| format!("worker-{it}")).collect();
        let ranked = names.clone();
        let mut unknown_to_others = vec![];
        if shape.launcher == Launcher::UnknownToWorkers {
            names.insert(0, LAUNCHER.to_owned());
            unknown_to_others.push(LAUNCHER.to_owned());
        }
        let seats = Seats::reserve(names, shape.network)?;
        let files = tempfile::tempdir()?;
        transport.prepare(&seats, files.path())?;
        let mut watch = Watch::begin(&[]);
        let furniture = Furniture {
            shared_folders: vec![files.path().to_owned()],
            environment: [watch.variable()].into(),
            unknown_to_others,
            ..Furniture::default()
        };
        let hosts = Hosts::start(seats, &furniture, |seat| transport.process_one(seat))?;
        watch.adopt(&hosts);
        wait_until_listening(&hosts)?;
        let environment = environment(shape.slots, transport, files.path());
        let rsh_agent = transport.rsh_agent();
        let cluster = Self { hosts, watch, slots: shape.slots, environment, rsh_agent, files };
        cluster.write_hostfiles(ranked.into_iter())?;
        Ok(cluster)
    }

    /// Lists the hosts by address from now on, not by name.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn list_by_address(&self) -> std::io::Result<()> {
        let ranked = self.hosts.iter().filter(|it| it.name() != LAUNCHER);
        self.write_hostfiles(ranked.map(|it| it.address().to_string()))
    }

    fn write_hostfiles(&self, names: impl Iterator<Item = String>) -> std::io::Result<()> {
        let hosts: Vec<HostSlots> =
            names.map(|name| HostSlots { name, slots: self.slots }).collect();
        std::fs::write(self.folder().join(OPEN_MPI_HOSTFILE), open_mpi_hostfile(&hosts))?;
        std::fs::write(self.folder().join(HYDRA_HOSTFILE), hydra_hostfile(&hosts))
    }

    /// `mpirun` in the first host, with every flavour's variables set.
    #[must_use]
    pub fn mpirun(&self, mpi: &Installation) -> Command {
        let mut command = self.command(&mpi.mpirun);
        command.envs(mpi.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A command in the first host with the same variables.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = self.hosts[0].command(program);
        command.envs(&self.environment);
        command
    }

    /// Runs a command of this cluster to its end and returns what was piped of its output, with the processor time of
    /// its processes.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn measured(&self, command: &mut Command) -> std::io::Result<(Output, Duration)> {
        let file = self.folder().join("cpu");
        let child = command.env("UNISONO_TESTBED_CPU_FILE", &file).spawn()?;
        let output = child.wait_with_output()?;
        let told = std::fs::read_to_string(&file)?;
        Ok((output, cpu_time(&told).unwrap_or_default()))
    }

    /// Ends the hosts once nothing but process 1 lives on any of them, and returns the processor time of everything that
    /// ran there: the kernel forgets the time of processes that end together with their host.
    #[must_use]
    pub fn end_when_quiet(self) -> Duration {
        let end = Instant::now() + Duration::from_secs(30);
        let busy = |host: &Host| {
            leaks::processes_in(host.pid())
                // A process that has ended, and was not waited for, has no command line.
                .any(|it| it != host.pid() && !leaks::command_line(it).is_empty())
        };
        while self.hosts.iter().any(busy) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.hosts.end()
    }

    /// What `mpirun` calls to reach a host.
    #[must_use]
    pub fn rsh_agent(&self) -> PathBuf {
        self.rsh_agent.clone()
    }

    /// A folder that all hosts and this process see.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.files.path().to_owned()
    }

    /// Sets a variable of every later command.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.into(), value.into());
    }
}

fn environment(
    slots: usize,
    transport: &dyn Transport,
    folder: &Path,
) -> BTreeMap<OsString, OsString> {
    let (open_mpi, hydra) = (folder.join(OPEN_MPI_HOSTFILE), folder.join(HYDRA_HOSTFILE));
    settings(&transport.rsh_agent(), &open_mpi, &hydra, slots)
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .chain(transport.environment())
        .collect()
}

/// Process 1 runs before it listens; launching earlier would test the launcher's patience.
fn wait_until_listening(hosts: &Hosts) -> Result<(), ClusterError> {
    let end = Instant::now() + Duration::from_secs(30);
    for host in hosts {
        while !leaks::listening(host.pid()).any(|it| it == (host.address(), PORT)) {
            if Instant::now() > end || !Path::new(&format!("/proc/{}", host.pid())).exists() {
                let (host, log) = (host.name().to_owned(), host.log());
                return Err(ClusterError::Silent { host, log });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}
