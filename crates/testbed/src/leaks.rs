//! What a test may leave behind: processes, namespaces, mounts, listening sockets, files. What enters is a moment and a
//! mark that everything started since then carries; what leaves is the list of what is still there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::hosts::Hosts;

/// Something that should be gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leak {
    /// A process that carries the watch's mark, or lives in a namespace of its hosts.
    Process {
        /// Its number.
        pid: u32,
        /// Its command line.
        command: String,
    },
    /// A mount in this process's own mount namespace.
    Mount(PathBuf),
    /// A socket that listens on an address of the hosts.
    Socket(Ipv4Addr, u16),
    /// A file in a watched folder.
    File(PathBuf),
}

impl fmt::Display for Leak {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, command } => write!(out, "process {pid}: {command}"),
            Self::Mount(path) => write!(out, "mount {}", path.display()),
            Self::Socket(address, port) => write!(out, "listening socket {address}:{port}"),
            Self::File(path) => write!(out, "file {}", path.display()),
        }
    }
}

/// The name of the variable that marks a watch's processes.
const VARIABLE: &str = "UNISONO_TESTBED_WATCH";

/// Remembers what was there at a moment, to tell later what came and stayed.
#[derive(Debug)]
pub struct Watch {
    mark: String,
    mounts: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, BTreeSet<OsString>>,
    namespaces: BTreeSet<PathBuf>,
    addresses: BTreeSet<Ipv4Addr>,
}

impl Watch {
    /// Starts watching, the given folders included.
    #[must_use]
    pub fn begin(folders: &[&Path]) -> Self {
        let moment = std::time::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_nanos());
        Self {
            mark: format!("{}-{moment}", std::process::id()),
            mounts: mounts(),
            files: folders.iter().map(|it| ((*it).to_owned(), entries(it))).collect(),
            namespaces: BTreeSet::new(),
            addresses: BTreeSet::new(),
        }
    }

    /// The variable to give to every process that is to be watched; its children inherit it.
    #[must_use]
    pub fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.mark.clone().into())
    }

    /// Watches these hosts' namespaces and addresses too: a process may have dropped its environment.
    pub fn adopt(&mut self, hosts: &Hosts) {
        let own = namespaces(std::process::id());
        for host in hosts {
            self.namespaces.extend(namespaces(host.pid()).difference(&own).cloned());
            self.addresses.insert(host.address());
        }
    }

    /// Everything that came since the beginning and is still there.
    #[must_use]
    pub fn left(&self) -> Vec<Leak> {
        let mut left: Vec<Leak> = processes().filter(|it| self.owns(*it)).map(process).collect();
        left.extend(mounts().difference(&self.mounts).cloned().map(Leak::Mount));
        left.extend(
            listening(std::process::id())
                .filter(|(it, _)| self.addresses.contains(it))
                .map(|(it, port)| Leak::Socket(it, port)),
        );
        for (folder, before) in &self.files {
            left.extend(entries(folder).difference(before).map(|it| Leak::File(folder.join(it))));
        }
        left
    }

    /// Panics with the list of what is left if it is not gone in time.
    ///
    /// # Panics
    /// When something is left.
    pub fn assert_nothing_left(&self, within: Duration) {
        let end = Instant::now() + within;
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            if Instant::now() > end {
                let list: Vec<String> = left.iter().map(ToString::to_string).collect();
                panic!("left behind after {within:?}:\n{}", list.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn owns(&self, pid: u32) -> bool {
        let wanted = format!("{VARIABLE}={}", self.mark);
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it == wanted.as_bytes())
            || !namespaces(pid).is_disjoint(&self.namespaces)
    }
}

/// The command lines of all processes in the PID namespace of `pid`, one blank between arguments.
#[must_use]
pub fn command_lines_in(pid: u32) -> Vec<String> {
    processes_in(pid).map(command_line).collect()
}

/// All processes in the PID namespace of `pid`.
pub fn processes_in(pid: u32) -> impl Iterator<Item = u32> {
    let namespace = std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    processes().filter(move |it| {
        namespace.is_some() && std::fs::read_link(format!("/proc/{it}/ns/pid")).ok() == namespace
    })
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok())
}

fn process(pid: u32) -> Leak {
    Leak::Process { pid, command: command_line(pid) }
}

/// The command line of a process, one blank between arguments; empty when it is gone.
#[must_use]
pub fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ")
}

/// The namespaces of a process, as the kernel names them (`pid:[4026531836]`).
fn namespaces(pid: u32) -> BTreeSet<PathBuf> {
    ["uts", "mnt", "ipc", "pid", "net"]
        .iter()
        .filter_map(|kind| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok())
        .collect()
}

fn mounts() -> BTreeSet<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|point| PathBuf::from(std::ffi::OsStr::from_bytes(point)))
        .collect()
}

fn entries(folder: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|it| it.file_name()).collect()
}

/// All IPv4 sockets that listen in the network namespace of `pid`.
pub(crate) fn listening(pid: u32) -> impl Iterator<Item = (Ipv4Addr, u16)> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let parse = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        let address = Ipv4Addr::from_bits(u32::from_str_radix(address, 16).ok()?.swap_bytes());
        (state == "0A").then_some((address, u16::from_str_radix(port, 16).ok()?))
    };
    table.lines().filter_map(parse).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_marked_process_is_seen_until_it_is_gone() {
        let watch = Watch::begin(&[]);
        let mut child = Command::new("sleep").arg("600").envs([watch.variable()]).spawn().unwrap();
        let expected = Leak::Process { pid: child.id(), command: "sleep 600".to_owned() };
        assert_eq!(watch.left(), [expected]);
        child.kill().unwrap();
        child.wait().unwrap();
        watch.assert_nothing_left(Duration::from_secs(5));
    }

    #[test]
    fn a_new_file_in_a_watched_folder_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old"), "").unwrap();
        let watch = Watch::begin(&[folder.path()]);
        assert_eq!(watch.left(), []);
        std::fs::write(folder.path().join("new"), "").unwrap();
        assert_eq!(watch.left(), [Leak::File(folder.path().join("new"))]);
    }

    #[test]
    fn listening_sockets_are_read_from_the_kernel() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(listening(std::process::id()).any(|it| it == (Ipv4Addr::LOCALHOST, port)));
    }

    #[test]
    #[should_panic(expected = "left behind")]
    fn what_is_left_makes_a_test_fail() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::begin(&[folder.path()]);
        std::fs::write(folder.path().join("new"), "").unwrap();
        watch.assert_nothing_left(Duration::ZERO);
    }
}
