//! Waits on several descriptors at once: descriptors and a time limit go in, which of them are ready comes out.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// The descriptors of one wait. An entry is remembered by the number `add` gave it.
#[derive(Default)]
pub(crate) struct PollSet<'fd>(Vec<PollFd<'fd>>);

/// What came of a wait.
pub(crate) struct Ready(Vec<PollFlags>);

/// An entry of a [`PollSet`].
#[derive(Clone, Copy)]
pub(crate) struct Token(usize);

impl<'fd> PollSet<'fd> {
    /// Waits for input; also reports an end or a fault.
    pub(crate) fn readable(&mut self, fd: BorrowedFd<'fd>) -> Token {
        self.add(fd, PollFlags::IN)
    }

    /// Waits for room to write.
    pub(crate) fn writable(&mut self, fd: BorrowedFd<'fd>) -> Token {
        self.add(fd, PollFlags::OUT)
    }

    /// Waits for either, as asked; with neither it still reports a fault.
    pub(crate) fn add(&mut self, fd: BorrowedFd<'fd>, flags: PollFlags) -> Token {
        self.0.push(PollFd::from_borrowed_fd(fd, flags));
        Token(self.0.len() - 1)
    }

    /// Waits until something is ready or the time is over.
    pub(crate) fn wait(mut self, limit: Option<Duration>) -> io::Result<Ready> {
        // Rounded up by a millisecond: waking early would only mean another turn.
        let limit = limit.map(|limit| limit + Duration::from_millis(1));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match rustix::event::poll(&mut self.0, limit.as_ref()) {
            Ok(_) => Ok(Ready(self.0.iter().map(PollFd::revents).collect())),
            Err(rustix::io::Errno::INTR) => Ok(Ready(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

impl Ready {
    /// Whether the time ran out.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.iter().all(|flags| flags.is_empty())
    }

    /// Whether anything happened there.
    pub(crate) fn any(&self, token: Option<Token>) -> bool {
        token.and_then(|Token(index)| self.0.get(index)).is_some_and(|flags| !flags.is_empty())
    }
}

/// The time left until a moment, none when it has passed.
pub(crate) fn until(moment: std::time::Instant, now: std::time::Instant) -> Duration {
    moment.saturating_duration_since(now)
}

/// The shorter of two limits, none when there is neither.
pub(crate) fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
