//! Runs a command in our place, with our own standard streams, under supervision: a command goes in, its outcome and what it said last
//! come out, no process stays behind.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::echo::{Echo, Echoing};
use crate::polling::PollSet;
use crate::processes;
use crate::proof::{Event, Proof};
use crate::ranks::{Changes, Watch};
use crate::sys;
use crate::tree::{self, Outcome, Tree};

/// How a command ended.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    /// The processes that had to be killed because they did not end with it.
    pub(crate) killed: Vec<u32>,
    /// What it said last, where somebody listened.
    pub(crate) last_lines: Vec<String>,
}

/// Runs the command and waits for its whole tree to be gone. When `parent` is given and ends, the command is ended. What it
/// writes to an echo is passed on.
pub(crate) fn run(
    command: &mut Command,
    parent: Option<OwnedFd>,
    proof: &Proof,
    echo: Option<Echo>,
) -> io::Result<Ran> {
    let signals = tree::supervisor_signals()?;
    // A group of its own: what a terminal sends to ours must reach the command once, through us, and not twice.
    command.process_group(0);
    sys::unblock_signals(command);
    let (mut tree, _child) = Tree::start(command)?;
    // Our copies of what the command writes to are closed with this, so that its end is seen.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let echoing = echo.map(Echo::begin);
    give_terminal(tree.main());
    let mut told_to_end = false;
    let mut parent = parent;
    let mut watch = Watch::new(Instant::now());
    loop {
        let now = Instant::now();
        let mut due = tree.advance(now);
        if let Some(outcome) = tree.outcome() {
            // What the command leaves behind ends with it, as it would with its container.
            tree.end(now);
            due = tree.advance(now);
            if tree.is_gone() {
                tell(proof, watch.look());
                let last_lines = echoing.map(Echoing::last_lines).unwrap_or_default();
                return Ok(Ran { outcome, killed: tree.killed(), last_lines });
            }
        } else if let Some(changes) = watch.advance(now) {
            tell(proof, changes);
        }
        let limit = limit(due, watch.due_in(now), tree.is_ending());
        let mut set = PollSet::default();
        let signalled = set.readable(signals.as_fd());
        let orphaned = parent.as_ref().map(|parent| set.readable(parent.as_fd()));
        let ready = set.wait(limit)?;
        if ready.any(orphaned) {
            parent = None;
            tree.end(Instant::now());
        }
        while ready.any(Some(signalled))
            && let Some(signal) = signals.next()
        {
            match signal {
                Signal::CHILD => tree.reap(),
                Signal::TERM | Signal::INT if told_to_end => tree.end(Instant::now()),
                passed_on => {
                    told_to_end |= matches!(passed_on, Signal::TERM | Signal::INT);
                    tree.signal(passed_on);
                }
            }
        }
    }
}

/// A descriptor that becomes readable when this process ends.
pub(crate) fn watch_process(pid: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

fn limit(due: Option<Duration>, look: Duration, ending: bool) -> Option<Duration> {
    if ending { due } else { Some(due.map_or(look, |due| due.min(look))) }
}

fn tell(proof: &Proof, changes: Changes) {
    changes.appeared.into_iter().for_each(|rank| proof.tell(Event::Rank(rank)));
    changes.gone.into_iter().for_each(|rank| proof.tell(Event::RankGone(rank)));
}

/// On a terminal the command's group becomes the one that may read it.
fn give_terminal(group: Pid) {
    let stdin = rustix::stdio::stdin();
    if rustix::termios::isatty(stdin) && rustix::termios::tcsetpgrp(stdin, group).is_ok() {
        processes::signal_group(group, Signal::CONT);
    }
}
