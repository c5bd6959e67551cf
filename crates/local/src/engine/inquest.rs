//! The time between the bad end of a command that launched ranks and the news of it.
//!
//! A launcher may be gone before its ranks on other hosts are, and before their witnesses have told how they ended. Whoever is
//! told of the command's end asks at once which rank failed first, and then ends those hosts with everybody on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use unisono_plan::Time;

use crate::RunDirectory;
use crate::post_mortem::have_all_ranks_ended;

/// A host that its launcher has left gives ranks two seconds to end, and kills them then, witnesses and all: nothing comes later.
const LONGEST: Duration = Duration::from_millis(2500);

/// Most ends are told within milliseconds; looks at the proofs of many hosts cost some.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LAST_PAUSE: Duration = Duration::from_millis(80);

/// What is waited for when a command has come to a bad end.
#[derive(Debug)]
pub(super) struct Inquest {
    pub(super) run: RunDirectory,
    /// When the command's host was started.
    pub(super) since: Time,
    /// Set by whoever does not care any more: they ended the host themselves.
    pub(super) is_pointless: Arc<AtomicBool>,
}

impl Inquest {
    /// Returns when every rank has ended, as far as there are witnesses, or when nothing more will be told.
    pub(super) fn hold(&self) {
        let end = Instant::now() + LONGEST;
        let mut pause = FIRST_PAUSE;
        while !self.is_pointless.load(Ordering::Relaxed)
            && Instant::now() < end
            && !have_all_ranks_ended(&self.run, self.since)
        {
            thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}
