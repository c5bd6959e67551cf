//! The door of this machine: runs that do not fit side by side wait at it. What is written in the runs' directories enters,
//! whether this run has room leaves.
//!
//! Nobody keeps the door. Each run decides for itself, by the same rule, while it holds one lock. What a run holds ends with its
//! process: its own lock is free then, whatever it left behind.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags};
use serde::{Deserialize, Serialize};
use unisono_plan::line::{Waiter, room};
use unisono_plan::{Room, Time};

use crate::{Happening, RunDirectory, RunRecord};

/// Ranks per processor that run here side by side. Runs on one machine are for trying things out: idle ranks yield.
const RANKS_PER_PROCESSOR: usize = 4;

/// Everyday jobs run side by side even on the smallest machine.
const FEWEST_SLOTS: usize = 16;

/// How long to wait before looking again even when nobody has left: their process numbers may be of another container.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The file in a run's directory that tells that it stands in the line.
const PLACE: &str = "place.json";

/// Where a run stands.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    is_in: bool,
}

/// One run's way in.
#[derive(Debug)]
pub struct Door {
    runs: PathBuf,
    id: String,
    slots: u32,
    is_in: bool,
    is_watched: Arc<AtomicBool>,
}

/// Ranks that this machine runs side by side when no setting says it.
pub fn usual_slots() -> u32 {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    u32::try_from((processors * RANKS_PER_PROCESSOR).max(FEWEST_SLOTS)).unwrap_or(u32::MAX)
}

impl Door {
    /// The door for the run of that id, on a machine that holds so many slots.
    pub fn new(runs: PathBuf, id: String, slots: u32) -> Self {
        Self { runs, id, slots, is_in: false, is_watched: Arc::default() }
    }

    /// Asks for room. Who has to wait is told when it is worth to ask again.
    pub(crate) fn ask(&mut self, happenings: &SyncSender<Happening>) -> Room {
        if self.is_in {
            return Room::Given;
        }
        // A machine whose disk is full, or whose file system knows no locks, must still run jobs.
        let (room, others) = self.decide().unwrap_or((Room::Given, Vec::new()));
        self.is_in = room == Room::Given;
        if !self.is_in && !self.is_watched.swap(true, Ordering::SeqCst) {
            watch(others, self.is_watched.clone(), happenings.clone());
        }
        room
    }

    fn decide(&self) -> io::Result<(Room, Vec<u32>)> {
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.runs.join(".door"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let own = RunDirectory::at(self.runs.join(&self.id));
        own.replace(PLACE, &Place { is_in: false })?;
        let mut line = Vec::new();
        let mut processes = Vec::new();
        for entry in fs::read_dir(&self.runs)?.flatten() {
            let Some((waiter, process)) = waiter(&RunDirectory::at(entry.path())) else {
                continue;
            };
            if waiter.id != self.id {
                processes.push(process);
            }
            line.push(waiter);
        }
        let room = room(self.slots, &line, &self.id);
        if room == Room::Given {
            own.replace(PLACE, &Place { is_in: true })?;
        }
        Ok((room, processes))
    }
}

/// What a directory tells about a run that is alive and stands in the line.
fn waiter(directory: &RunDirectory) -> Option<(Waiter, u32)> {
    let place: Place = directory.is_running().then(|| directory.read(PLACE))??;
    let record: RunRecord = directory.read("run.json")?;
    let waiter = Waiter {
        id: record.id,
        since: Time(record.began),
        ticket: record.ticket?,
        is_in: place.is_in,
    };
    Some((waiter, record.process))
}

/// Tells when one of these processes has ended, or after a while.
fn watch(processes: Vec<u32>, is_watched: Arc<AtomicBool>, happenings: SyncSender<Happening>) {
    thread::spawn(move || {
        let open = |process: u32| {
            let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
        };
        let open: Vec<OwnedFd> = processes.into_iter().filter_map(open).collect();
        let mut asked: Vec<PollFd<'_>> =
            open.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
        // Interrupted or not: asking once too often does no harm.
        let _ended = rustix::event::poll(&mut asked, Some(&LOOK_AGAIN));
        // Before it is told: who is told asks at once, and must find that nobody watches any more.
        is_watched.store(false, Ordering::SeqCst);
        // Nobody listens any more: the run is over.
        let _told = happenings.send(Happening::LineMoved);
    });
}
