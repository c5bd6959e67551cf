//! Sees how a rank ends: a process that is about to become a rank goes in, a line of the launch proof comes out.
//!
//! Only its parent can wait for a process, and a rank's parent is its launcher, of which some keep to themselves what they saw. But
//! whoever holds a process by a descriptor is told of its end and, by Linux 6.15 and later, of how it ended. So a rank leaves a
//! witness: a process in a session of its own, no child of the rank's, that writes one line and ends. Older kernels have no witnesses.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use crate::proof::{self, Event, Proof};
use crate::ranks::Rank;
use crate::sys::{self, Fork};
use crate::tree::PASSED_ON;

/// What a witness is called in lists of processes: it has a rank's environment, but is none. The kernel keeps 15 bytes.
pub(crate) const NAME: &str = "unisono-witness";

/// How long a launcher may take to wait for a rank that has ended; only then the kernel tells how.
const REAPED_WITHIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Leaves a witness of this very process's end, and says whether there is one. A rank does without where none can be had.
pub(crate) fn leave(proof: &Proof, rank: &Rank) -> bool {
    let this = rustix::process::getpid();
    let Ok(held) = rustix::process::pidfd_open(this, PidfdFlags::empty()) else {
        return false;
    };
    if sys::exit_status(held.as_fd()).is_err() {
        return false;
    }
    match sys::fork() {
        Ok(Fork::Child) => {
            // Named before it loses its parent: from then on it stands before the rank in the tree.
            let _named = rustix::thread::set_name(c"unisono-witness");
            if let Ok(Fork::Child) = sys::fork() {
                testify(held, proof, rank);
            }
            sys::exit_now(0)
        }
        Ok(Fork::Parent(between)) => {
            wait_for(between);
            true
        }
        Err(_) => false,
    }
}

/// The rank must not have a child that it knows nothing of.
fn wait_for(child: Pid) {
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitpid(Some(child), WaitOptions::empty())
    {}
}

fn testify(held: OwnedFd, proof: &Proof, rank: &Rank) {
    // What ends the launcher's groups and sessions does not reach this one; what ends the whole tree kills in the end.
    let _apart = rustix::process::setsid().is_ok() && sys::block(&PASSED_ON).is_ok();
    // Launchers notice the end of a rank by what it closes.
    let Ok(held) = sys::close_all_but(held) else {
        return;
    };
    if wait(&held, PollFlags::IN, None).is_err() {
        return;
    }
    let at = proof::now();
    // The kernel tells by this that the rank was waited for; one that tells it in no way is not waited for longer.
    let _reaped = wait(&held, PollFlags::empty(), Some(&REAPED_WITHIN));
    if let Ok(Some(status)) = sys::exit_status(held.as_fd()) {
        let Rank { rank, pid, .. } = *rank;
        proof.tell_at(at, Event::RankEnded { rank, pid, code: code(status) });
    }
}

fn wait(held: &OwnedFd, flags: PollFlags, limit: Option<&Timespec>) -> io::Result<()> {
    loop {
        match rustix::event::poll(&mut [PollFd::new(held, flags)], limit) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// The exit code, or 128 and the signal, of a status as `wait` gives it.
const fn code(status: i32) -> i32 {
    match status & 0x7f {
        0 => (status >> 8) & 0xff,
        signal => 128 + signal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_as_shells_do() {
        assert_eq!([0x0300, 0x0000, 0x000b, 0x008b, 0x0009].map(code), [3, 0, 139, 139, 137]);
    }
}
