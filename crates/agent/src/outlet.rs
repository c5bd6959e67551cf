//! Writes to a standard stream that others may share, without ever blocking and without changing it for them.
//!
//! The stream's non-blocking flag belongs to everybody who holds it (mpirun and its other children), so it is left alone.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// A pipe that polls as writable takes this much without blocking (`PIPE_BUF`).
const ATOMIC: usize = 4096;

/// One of our standard streams.
pub(crate) struct Outlet {
    stream: BorrowedFd<'static>,
    way: Way,
}

enum Way {
    /// A pipe, opened a second time: this description is ours alone, and non-blocking.
    Reopened(OwnedFd),
    /// A socket takes the flag per call.
    Socket,
    /// Never blocks for long.
    File,
    /// A terminal, or a pipe that cannot be reopened: little by little.
    Careful,
}

impl Outlet {
    pub(crate) fn new(stream: BorrowedFd<'static>) -> Self {
        let kind = rustix::fs::fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let way = match kind {
            Ok(FileType::Fifo) => reopen(stream).map_or(Way::Careful, Way::Reopened),
            Ok(FileType::Socket) => Way::Socket,
            Ok(FileType::RegularFile) => Way::File,
            Ok(_) | Err(_) => Way::Careful,
        };
        Self { stream, way }
    }

    /// What to poll for room.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Reopened(own) => own.as_fd(),
            Way::Socket | Way::File | Way::Careful => self.stream,
        }
    }

    /// Writes some of the bytes; 0 when there is no room now.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let written = match &self.way {
            Way::Reopened(own) => rustix::io::write(own, bytes),
            Way::Socket => {
                rustix::net::send(self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
            Way::File => rustix::io::write(self.stream, bytes),
            Way::Careful => rustix::io::write(self.stream, bytes.get(..ATOMIC).unwrap_or(bytes)),
        };
        match written {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            other => other,
        }
    }
}

fn reopen(stream: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    rustix::fs::open(
        path,
        OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
        Mode::empty(),
    )
}
