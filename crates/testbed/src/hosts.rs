//! Isolated hosts on this machine: what enters is a list of names and what each host runs as process 1; what leaves is
//! a set of running hosts into which commands can be sent. Dropping the set ends everything in it.
//!
//! A host has its own host name, processes, `/tmp`, `/dev/shm` and `/etc/hosts`, and an address: one of 127.0.0.0/8 on
//! the machine's network, or, with [`Network::Private`], one on a bridge that no other process can see. Root is needed.

mod network;
mod seats;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

pub use seats::{Seat, Seats};

use crate::cache;
use crate::program::{CompileError, compile_static};

/// Which network the hosts are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The machine's own; each host has a loopback address of its own.
    Shared,
    /// One network namespace per host, joined by a bridge in yet another one: nothing of the machine is changed.
    Private,
}

/// How to furnish the hosts.
#[derive(Clone, Debug)]
pub struct Furniture {
    /// Folders under `/tmp` that stay visible although every host has its own `/tmp`.
    pub shared_folders: Vec<PathBuf>,
    /// Added to the environment of process 1 and of every command.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where commands run.
    pub working_folder: PathBuf,
    /// Size of `/dev/shm`.
    pub shm_bytes: u64,
    /// Hosts whose names the other hosts cannot resolve.
    pub unknown_to_others: Vec<String>,
}

impl Default for Furniture {
    fn default() -> Self {
        Self {
            shared_folders: vec![],
            environment: BTreeMap::new(),
            working_folder: PathBuf::from("/"),
            shm_bytes: 256 << 20,
            unknown_to_others: vec![],
        }
    }
}

/// Why hosts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Namespaces and mounts are for root.
    #[error("isolated hosts need root, and this process runs as uid {0}: run the tests as root")]
    NotRoot(u32),
    /// The helper program could not be compiled.
    #[error("compile the program that makes a host")]
    Helper(#[from] CompileError),
    /// No addresses are left.
    #[error("every block of loopback addresses is in use by other tests")]
    NoAddresses,
    /// A host died before it was ready.
    #[error("host {name} did not start: {log}")]
    NotStarted {
        /// Its name.
        name: String,
        /// What it wrote.
        log: String,
    },
    /// The private network could not be made.
    #[error(
        "make the private network (needs the Debian package iproute2 and kernel support for veth and bridge): {0}"
    )]
    Network(String),
    /// Files or processes could not be made.
    #[error("{act}")]
    Io {
        /// What was tried.
        act: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// A set of running hosts.
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Host>,
    _hub: Option<Host>,
    _seats: Seats,
    _files: tempfile::TempDir,
}

impl Hosts {
    /// Starts one host per seat. `process_one` says what each runs as its process 1; nothing means a plain reaper.
    ///
    /// # Errors
    /// When not root, when the machine lacks something, or when a process 1 cannot be started.
    pub fn start(
        seats: Seats,
        furniture: &Furniture,
        process_one: impl Fn(&Seat) -> Vec<OsString>,
    ) -> Result<Self, HostError> {
        let uid = rustix::process::geteuid().as_raw();
        if uid != 0 {
            return Err(HostError::NotRoot(uid));
        }
        let helper = compile_static("host", include_str!("hosts/host.c"))?;
        let files = tempfile::tempdir().map_err(io_error("make a folder for the hosts' files"))?;
        let maker = Maker { helper, furniture, files: files.path(), network: seats.network() };
        let mut hosts = seats
            .iter()
            .map(|seat| {
                maker.make(
                    seat,
                    &seats.hosts_file(seat, &furniture.unknown_to_others),
                    &process_one(seat),
                )
            })
            .collect::<Result<Vec<Host>, HostError>>()?;
        for host in &mut hosts {
            host.wait_made()?;
        }
        let hub = match seats.network() {
            Network::Shared => None,
            Network::Private => Some(network::join(&maker, &hosts)?),
        };
        for host in &mut hosts {
            host.go()?;
        }
        for host in &mut hosts {
            host.wait_ready()?;
        }
        Ok(Self { hosts, _hub: hub, _seats: seats, _files: files })
    }

    /// The hosts in the order of their seats.
    pub fn iter(&self) -> std::slice::Iter<'_, Host> {
        self.hosts.iter()
    }

    /// Ends all hosts and returns the processor time that everything in them took, commands sent in not included.
    #[must_use]
    pub fn end(mut self) -> Duration {
        for host in &mut self.hosts {
            drop(host.lifeline.take());
        }
        self.hosts.iter_mut().map(Host::kill).sum()
    }

    /// One host, mutable: to kill it.
    pub fn host_mut(&mut self, index: usize) -> &mut Host {
        &mut self.hosts[index]
    }
}

impl<'a> IntoIterator for &'a Hosts {
    type Item = &'a Host;
    type IntoIter = std::slice::Iter<'a, Host>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::ops::Index<usize> for Hosts {
    type Output = Host;

    fn index(&self, index: usize) -> &Host {
        &self.hosts[index]
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // All lifelines first, so that the hosts end side by side; each host's own drop then only waits.
        for host in &mut self.hosts {
            drop(host.lifeline.take());
        }
    }
}

/// One running host.
#[derive(Debug)]
pub struct Host {
    seat: Seat,
    pid: u32,
    keeper: Child,
    status: BufReader<ChildStdout>,
    lifeline: Option<ChildStdin>,
    helper: PathBuf,
    working_folder: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    log: PathBuf,
}

impl Host {
    /// Its name, on itself and in `/etc/hosts`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.seat.name
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.seat.address
    }

    /// Process 1, as the machine numbers it.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// What process 1 has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A command that runs inside. Signals HUP, INT, QUIT and TERM sent to the spawned process reach the command, a
    /// SIGKILL kills it too, and it ends with the command's own exit code or signal.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.enter("all", &self.working_folder);
        command.arg(program).envs(&self.environment);
        command
    }

    fn enter(&self, namespaces: &str, folder: &Path) -> Command {
        let mut command = Command::new(&self.helper);
        command.arg("enter").arg(self.pid.to_string()).arg(namespaces).arg(folder).arg("--");
        command
    }

    /// Ends the host and everything in it, as a power cut does, and returns the processor time that it took.
    pub fn kill(&mut self) -> Duration {
        drop(self.lifeline.take());
        let mut last_words = String::new();
        // A keeper that was killed before says nothing; waiting only fails when it was waited for before.
        let _told = self.status.read_to_string(&mut last_words);
        let _ended = self.keeper.wait();
        cpu_time(&last_words).unwrap_or_default()
    }

    fn wait_made(&mut self) -> Result<(), HostError> {
        let mut made = false;
        while !(made && self.pid != 0) {
            match self.status_line()?.split_once(' ') {
                None => made = true,
                Some(("pid", pid)) => self.pid = pid.parse().unwrap_or_default(),
                Some(_) => return Err(self.not_started()),
            }
        }
        Ok(())
    }

    fn go(&mut self) -> Result<(), HostError> {
        match self.lifeline.as_mut().map(|it| it.write_all(b"g")) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.not_started()),
        }
    }

    fn wait_ready(&mut self) -> Result<(), HostError> {
        match self.status_line()?.as_str() {
            "ready" => Ok(()),
            _ => Err(self.not_started()),
        }
    }

    fn status_line(&mut self) -> Result<String, HostError> {
        let mut line = String::new();
        match self.status.read_line(&mut line) {
            Ok(length) if length > 0 => Ok(line.trim().to_owned()),
            Ok(_) | Err(_) => Err(self.not_started()),
        }
    }

    fn not_started(&mut self) -> HostError {
        let _cpu_time = self.kill();
        HostError::NotStarted { name: self.seat.name.clone(), log: self.log().trim().to_owned() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _cpu_time = self.kill();
    }
}

/// Reads "cpu MICROSECONDS", which the helper writes at its end.
pub(crate) fn cpu_time(text: &str) -> Option<Duration> {
    text.lines().find_map(|it| it.strip_prefix("cpu ")?.parse().ok()).map(Duration::from_micros)
}

/// What all hosts of a set have in common while they are made.
struct Maker<'a> {
    helper: PathBuf,
    furniture: &'a Furniture,
    files: &'a Path,
    network: Network,
}

impl Maker<'_> {
    fn make(&self, seat: &Seat, hosts_file: &str, command: &[OsString]) -> Result<Host, HostError> {
        let etc_hosts = self.files.join(format!("{}.hosts", seat.name));
        std::fs::write(&etc_hosts, hosts_file).map_err(io_error("write /etc/hosts of a host"))?;
        let log = self.files.join(format!("{}.log", seat.name));
        let log_file = File::create(&log).map_err(io_error("make the log of a host"))?;
        let mut keeper = Command::new(&self.helper)
            .args(["start", &seat.name])
            .arg(etc_hosts)
            .arg(self.furniture.shm_bytes.to_string())
            .arg(match self.network {
                Network::Shared => "shared",
                Network::Private => "private",
            })
            .args(self.folders_under_tmp())
            .arg("--")
            .args(command)
            .envs(&self.furniture.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(io_error("run the program that makes a host"))?;
        let (Some(status), lifeline) = (keeper.stdout.take(), keeper.stdin.take()) else {
            unreachable!("standard output was asked for as a pipe");
        };
        Ok(Host {
            seat: seat.clone(),
            pid: 0,
            keeper,
            status: BufReader::new(status),
            lifeline,
            helper: self.helper.clone(),
            working_folder: self.furniture.working_folder.clone(),
            environment: self.furniture.environment.clone(),
            log,
        })
    }

    fn folders_under_tmp(&self) -> Vec<PathBuf> {
        let mut folders = self.furniture.shared_folders.clone();
        folders.extend([cache::root(), self.furniture.working_folder.clone()]);
        folders.extend(std::env::current_dir());
        folders.extend(std::env::current_exe().ok().and_then(|it| Some(it.parent()?.to_owned())));
        folders.retain(|it| it.starts_with("/tmp") && it != Path::new("/tmp") && it.exists());
        folders.sort();
        folders.dedup();
        folders
    }
}

fn io_error(act: &str) -> impl FnOnce(io::Error) -> HostError {
    let act = act.to_owned();
    move |source| HostError::Io { act, source }
}

#[cfg(test)]
mod tests;
