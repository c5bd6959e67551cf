//! A process that is held by a descriptor: signals go to it and to nobody else, also when it has ended and another one has its number.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, held.
#[derive(Debug)]
pub(super) struct Held {
    id: Pid,
    descriptor: OwnedFd,
}

impl Held {
    /// Holds a child that nobody has waited for yet.
    pub(super) fn child(child: &Child) -> io::Result<Self> {
        Ok(Self::open(Pid::from_child(child))?)
    }

    fn open(id: Pid) -> rustix::io::Result<Self> {
        Ok(Self { id, descriptor: pidfd_open(id, PidfdFlags::empty())? })
    }

    /// The first child of this process, unless one of the two has ended.
    pub(super) fn first_child(&self) -> Option<Self> {
        let child = Self::open(self.first_child_id()?).ok()?;
        // Numbers are read before anything is held by them. They were right if they are the same afterwards, and ours is still ours.
        let same = self.first_child_id() == Some(child.id);
        (same && !self.has_ended()).then_some(child)
    }

    fn first_child_id(&self) -> Option<Pid> {
        let id = self.id.as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    }

    fn has_ended(&self) -> bool {
        let mut asked = [PollFd::new(&self.descriptor, PollFlags::IN)];
        rustix::event::poll(&mut asked, Some(&Timespec::default())) != Ok(0)
    }

    /// Sends a signal. Who has ended needs none any more.
    pub(super) fn signal(&self, signal: Signal) {
        let _sent = pidfd_send_signal(&self.descriptor, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("it starts")
    }

    /// Another process with that number, or none on a machine that does not let us choose.
    fn another(number: u32) -> Option<Child> {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()?;
            let mut child = sleeper();
            if child.id() == number {
                return Some(child);
            }
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
        None
    }

    #[test]
    fn whoever_has_the_number_of_one_that_has_ended_is_not_signalled() {
        let mut first = sleeper();
        let held = Held::child(&first).expect("hold it");
        held.signal(Signal::KILL);
        first.wait().expect("it ends");
        assert!(held.has_ended() && held.first_child().is_none());
        let Some(mut second) = another(first.id()) else {
            return;
        };
        held.signal(Signal::KILL);
        // Had it been signalled, it would end before this one does, which is signalled later.
        let third = sleeper();
        let mut third = (Held::child(&third).expect("hold it"), third);
        third.0.signal(Signal::KILL);
        third.1.wait().expect("it ends");
        assert!(second.try_wait().expect("ask").is_none(), "a stranger was killed");
        second.kill().and_then(|()| second.wait()).expect("it ends");
    }

    #[test]
    fn the_only_child_of_a_process_is_found_and_held() {
        let mut parent =
            Command::new("sh").args(["-c", "sleep 600; true"]).spawn().expect("it starts");
        let held = Held::child(&parent).expect("hold it");
        let end = Instant::now() + Duration::from_secs(60);
        let child = loop {
            if let Some(child) = held.first_child() {
                break child;
            }
            assert!(Instant::now() < end, "it was never seen");
        };
        child.signal(Signal::KILL);
        assert!(parent.wait().expect("it ends").success());
    }
}
