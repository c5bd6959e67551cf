//! Reads the process tree: a process id goes in, its children or all its descendants come out. And adds to it.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

pub use crate::sys::{Fork, exit_now, fork};

/// Process ids never reach this on Linux (`PID_MAX_LIMIT`).
const PROCESS_IDS: i32 = 4 << 20;

/// All processes below this one, parents before children. It is a snapshot: callers that kill ask again until none is left.
pub fn descendants(root: Pid) -> Vec<Pid> {
    if !shows_our_namespace("/proc/self") {
        return if root == rustix::process::getpid() { children_by_asking() } else { Vec::new() };
    }
    let mut found = children(root);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The direct children of this very process.
pub(crate) fn own_children() -> Vec<Pid> {
    if shows_our_namespace("/proc/self") {
        children(rustix::process::getpid())
    } else {
        children_by_asking()
    }
}

/// What a file of `/proc` holds, up to a limit. Such a file does not tell its size, and the kernel gathers its text anew for each
/// small piece that is asked for.
pub(crate) fn contents(path: &str, limit: u64) -> io::Result<Vec<u8>> {
    const USUAL: usize = 8 << 10;
    let mut bytes = Vec::with_capacity(USUAL);
    fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a process has begun to end: the kernel marks it before it closes what the process had open.
pub(crate) fn is_exiting(pid: Pid) -> bool {
    /// `PF_EXITING` among the flags that `/proc/PID/stat` shows.
    const EXITING: u64 = 4;
    /// The flags' place behind the command's name.
    const FLAGS: usize = 6;
    if !shows_our_namespace("/proc/self") {
        return false;
    }
    let Ok(stat) = text(&format!("/proc/{}/stat", pid.as_raw_nonzero())) else {
        return true;
    };
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_ascii_whitespace());
    let flags = fields.and_then(|mut fields| fields.nth(FLAGS)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
}

/// Signals a process. One that has just ended needs no signal any more, and one we may not signal is not ours to end.
pub fn signal(pid: Pid, signal: Signal) {
    let _ = rustix::process::kill_process(pid, signal);
}

/// Signals a process group, with the same indifference.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
}

fn children(parent: Pid) -> Vec<Pid> {
    children_by_task(parent).unwrap_or_else(|| children_by_stat(parent))
}

fn text(path: &str) -> io::Result<String> {
    const LONGEST: u64 = 1 << 20;
    Ok(String::from_utf8_lossy(&contents(path, LONGEST)?).into_owned())
}

/// Whether `/proc` is there and counts processes as we do: one of another PID namespace would name strangers.
fn shows_our_namespace(itself: &str) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    fs::read_link(itself).is_ok_and(|name| name.as_os_str() == own.as_str())
}

/// The quick way, where the kernel was built with it.
fn children_by_task(parent: Pid) -> Option<Vec<Pid>> {
    let parent = parent.as_raw_nonzero();
    /// Links of a folder with one folder in it.
    const ONE_THREAD: u64 = 3;
    let mut children = text(&format!("/proc/{parent}/task/{parent}/children")).ok()?;
    // Only a threaded parent (mpirun, say) has children elsewhere than under its main thread.
    let threads = format!("/proc/{parent}/task");
    if fs::metadata(&threads).ok()?.nlink() != ONE_THREAD {
        for thread in fs::read_dir(threads).ok()?.flatten() {
            if thread.file_name().to_str() != Some(&parent.to_string()) {
                let of_thread = thread.path().join("children");
                children += &of_thread.to_str().and_then(|it| text(it).ok()).unwrap_or_default();
            }
        }
    }
    Some(children.split_ascii_whitespace().filter_map(parse_pid).collect())
}

/// The slow way: every process says who its parent is.
fn children_by_stat(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| parse_pid(entry.file_name().to_str()?))
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

/// Without a `/proc` of ours (an empty root folder) only the kernel's wait can tell which ids are our own children: ask about each.
fn children_by_asking() -> Vec<Pid> {
    let only_look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    (1..PROCESS_IDS)
        .filter_map(Pid::from_raw)
        .filter(|pid| rustix::process::waitid(WaitId::Pid(*pid), only_look).is_ok())
        .collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = text(&format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The second field is the program's name in brackets, and may itself hold blanks and brackets.
    let (_, after_name) = stat.rsplit_once(')')?;
    parse_pid(after_name.split_ascii_whitespace().nth(1)?)
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_foreign_proc_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("self");
        std::os::unix::fs::symlink("1", &foreign).unwrap();
        assert!(!shows_our_namespace(foreign.to_str().unwrap()));
        assert!(!shows_our_namespace("/no/such/folder"));
        assert!(shows_our_namespace("/proc/self"));
    }

    #[test]
    fn all_ways_find_a_child() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let me = rustix::process::getpid();
        assert!(children_by_stat(me).contains(&pid));
        assert!(children_by_asking().contains(&pid));
        // One read can miss a process while another test's child ends beside it.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while children_by_task(me).is_some_and(|children| !children.contains(&pid)) {
            assert!(std::time::Instant::now() < end, "it was never seen");
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_exiting_from_its_end_on() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(!is_exiting(pid));
        drop(child.stdin.take());
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            .unwrap();
        assert!(is_exiting(pid), "a zombie has ended");
        child.wait().unwrap();
        assert!(is_exiting(pid), "it is gone");
    }
}
