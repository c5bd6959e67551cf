//! Supervises one command and everything it starts: a command goes in, its outcome comes out, and no process stays behind.
//!
//! The supervising process is a *child subreaper*: whatever the command's descendants do (new process groups, new sessions,
//! double forks), those that lose their parent become children of the supervisor, so the whole tree can be found and ended.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::polling::until;
use crate::processes;
use crate::sys;

/// How long a tree that is told to end may take before it is killed. With the killing itself this stays well below 5 s.
const GRACE: Duration = Duration::from_secs(2);

/// How often a tree that is being killed is looked at again: a fork can outrun one pass.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Killed(u8),
}

impl Outcome {
    /// The exit code that tells it, as shells do: 128 and the signal's number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128u8.saturating_add(signal),
        }
    }
}

/// A command and its descendants.
pub(crate) struct Tree {
    main: Pid,
    outcome: Option<Outcome>,
    phase: Phase,
    killed: HashSet<Pid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Everybody does as they like.
    Running,
    /// All were asked to end; at this moment they are killed.
    Ending { kill_at: Instant },
    /// All are killed again and again until none is left.
    Killing { again_at: Instant },
    /// No process is left.
    Gone,
}

impl Tree {
    /// Starts the command as leader of its own session, under this process as subreaper.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Self, Child)> {
        // As process 1 it is one already.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let child = command.spawn()?;
        let main = Pid::from_child(&child);
        Ok((Self { main, outcome: None, phase: Phase::Running, killed: HashSet::new() }, child))
    }

    /// The command's own process.
    pub(crate) fn main(&self) -> Pid {
        self.main
    }

    /// How the command itself ended, once it has; descendants may still run.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Whether no process of it is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// The numbers of processes that were killed because they did not end when they were asked to.
    pub(crate) fn killed(self) -> Vec<u32> {
        let numbers = self.killed.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        numbers.collect()
    }

    /// Whether it was told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Passes a signal to the command's process group, as a terminal would.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.outcome.is_none() {
            processes::signal_group(self.main, signal);
        }
    }

    /// Collects whoever has ended. Call it on every SIGCHLD.
    pub(crate) fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => {
                    let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
                    self.outcome = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Some(Outcome::Exited(byte(code))),
                        (None, Some(signal)) => Some(Outcome::Killed(byte(signal))),
                        (None, None) => None,
                    };
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.phase = Phase::Gone;
                    return;
                }
            }
        }
    }

    /// Asks every process of the tree to end; `advance` kills those that do not.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.phase == Phase::Running {
            self.phase = Phase::Ending { kill_at: now + GRACE };
            for pid in processes::descendants(rustix::process::getpid()) {
                processes::signal(pid, Signal::TERM);
                // A stopped process would not notice.
                processes::signal(pid, Signal::CONT);
            }
        }
    }

    /// Does what is due and says when to be called again.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<Duration> {
        self.reap();
        match self.phase {
            Phase::Running | Phase::Gone => None,
            Phase::Ending { kill_at: due } | Phase::Killing { again_at: due } => {
                if now < due {
                    return Some(until(due, now));
                }
                for pid in processes::descendants(rustix::process::getpid()) {
                    processes::signal(pid, Signal::KILL);
                    self.killed.insert(pid);
                }
                self.phase = Phase::Killing { again_at: now + KILL_AGAIN };
                Some(KILL_AGAIN)
            }
        }
    }
}

/// The signals that a supervisor passes on to its command; the uncatchable and the fault signals are not among them.
pub(crate) const PASSED_ON: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TERM,
    Signal::ALARM,
    Signal::CONT,
    Signal::WINCH,
];

/// Blocks and collects what a supervisor must notice: the signals it passes on, and the ends of children.
pub(crate) fn supervisor_signals() -> io::Result<sys::Signals> {
    let mut all = vec![Signal::CHILD];
    all.extend(PASSED_ON);
    sys::Signals::collect(&all)
}
