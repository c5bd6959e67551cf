//! One host that was started: its description enters, a keeper runs it, and what becomes of it is told to the loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::process::Signal;
use unisono_plan::{Ended, Incarnation, SeenState, Time};

use super::Happening;
use super::held::Held;
use super::inquest::Inquest;
use crate::RunDirectory;
use crate::furnish::Furnished;
use crate::host::limits::killed;
use crate::host::{self, Bounds};
use crate::output::pump;
use crate::tails::Tails;
use crate::untagger::Reading;

/// One host that was started.
#[derive(Debug)]
pub(super) struct Hosted {
    keeper: Held,
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) has_command: bool,
    pub(super) up: bool,
    pub(super) released: Option<Time>,
    pub(super) asked_to_stop: bool,
    pub(super) ended: Option<Ended>,
    pub(super) tails: Tails,
    bounds: Option<Bounds>,
    /// Whether we ended it ourselves, or asked it to end: nobody wonders why it did.
    is_unwanted: Arc<AtomicBool>,
    /// Keeps what its keeper reads and writes there for as long as the keeper may do so.
    _files: [OwnedFd; 2],
}

/// Whom a host's end and words are told to, and by which clock.
#[derive(Clone, Debug)]
pub(super) struct Ear {
    pub(super) happenings: SyncSender<Happening>,
    pub(super) clock: fn() -> Time,
    /// The run, where all its ranks are of one command: only then it is clear whose ends these are.
    pub(super) ranks_of: Option<RunDirectory>,
}

impl Hosted {
    /// Starts a host. `kills` is the file that its description names for the number of killed processes.
    pub(super) fn start(
        program: &Path,
        furnished: Furnished,
        incarnation: Incarnation,
        address: SocketAddr,
        stdin: Stdio,
        kills: OwnedFd,
        ear: &Ear,
    ) -> io::Result<Self> {
        let spec = in_memory(&serde_json::to_vec(&furnished.spec)?)?;
        let mut child = host::command(program, &path_of(&spec))
            // Ctrl-C in the terminal is for us; what becomes of the hosts is decided, not shared out.
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let keeper = Held::child(&child).inspect_err(|_| drop(child.kill()))?;
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let run = ear.ranks_of.clone().filter(|_| furnished.launches);
        let is_pointless = is_unwanted.clone();
        let inquest = run.map(|run| Inquest { run, since: (ear.clock)(), is_pointless });
        listen(child, incarnation, furnished.reading, inquest, ear.clone());
        Ok(Self {
            keeper,
            name: furnished.spec.name,
            address,
            has_command: furnished.has_command,
            up: false,
            released: None,
            asked_to_stop: false,
            ended: None,
            tails: Tails::default(),
            bounds: furnished.spec.bounds,
            is_unwanted,
            _files: [spec, kills],
        })
    }

    pub(super) fn state(&self) -> SeenState {
        match (&self.ended, self.released) {
            (Some(ended), _) => SeenState::Ended(ended.clone()),
            (None, Some(since)) if self.has_command => SeenState::Running { since },
            (None, _) if self.up => SeenState::Up,
            (None, _) => SeenState::Coming("its host is being set up".to_owned()),
        }
    }

    /// Whether its command was let go and has not ended.
    pub(super) const fn runs_command(&self) -> bool {
        self.has_command && self.released.is_some() && self.ended.is_none()
    }

    /// Whether the kernel killed processes of it because they used more memory than they may.
    pub(super) fn is_starved(&self) -> bool {
        self.bounds.as_ref().is_some_and(|bounds| killed(bounds) > 0)
    }

    /// Ends the host with everything in it: its keeper sees to that.
    pub(super) fn kill(&self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
        self.keeper.signal(Signal::TERM);
    }

    /// Asks its command to end, through process 1, the keeper's only child. A host on which none runs is killed: nobody there
    /// would do anything about it, and a process 1 that does not listen yet would not even hear of it.
    pub(super) fn terminate(&self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
        match self.keeper.first_child().filter(|_| self.up && self.runs_command()) {
            Some(first) => first.signal(Signal::TERM),
            None => self.kill(),
        }
    }
}

/// Tells what a host writes and, after all of that, how it ended.
fn listen(
    mut keeper: Child,
    incarnation: Incarnation,
    reading: [Reading; 2],
    inquest: Option<Inquest>,
    ear: Ear,
) {
    let Ear { happenings, clock, .. } = ear;
    let (stdout, stderr) = (keeper.stdout.take(), keeper.stderr.take());
    let [out, err] = reading;
    let pumps = [
        stdout.map(|it| pump(it, incarnation, false, out, happenings.clone())),
        stderr.map(|it| pump(it, incarnation, true, err, happenings.clone())),
    ];
    thread::spawn(move || {
        let status = keeper.wait();
        for pump in pumps.into_iter().flatten() {
            // A pump that panicked has told so itself; the end is still the end.
            let _joined = pump.join();
        }
        let code = status.map_or(host::COULD_NOT_START, host::exit_code);
        let at = clock();
        if let Some(inquest) = inquest.filter(|_| code != 0) {
            inquest.hold();
        }
        // Nobody listens any more: the run is over.
        let _told = happenings.send(Happening::HostEnded(incarnation, code, at));
    });
}

/// Where other processes of ours find a file that we hold.
pub(super) fn path_of(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// A file that exists only in memory and only while somebody holds it.
pub(super) fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Write as _;
    let file = rustix::fs::memfd_create("unisono-host", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    Ok(file.into())
}
