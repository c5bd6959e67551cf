//! The first seconds of a connection to a host: an accepted socket goes in, a request of somebody who may launch comes out, or nothing.

use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustls::ServerConfig;
use thiserror::Error;

use crate::channel::{Channel, ChannelError};
use crate::frame::{Frame, Kind};
use crate::polling::{PollSet, until};

/// How long a peer may take to prove its key, and then to say what it wants.
pub(crate) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Linux takes no longer single argument (`MAX_ARG_STRLEN`, with its final zero), and a command is one argument of the shell.
pub(crate) const LONGEST_COMMAND: usize = (128 << 10) - 1;

/// Why a connection was turned away.
#[derive(Debug, Error)]
pub(crate) enum RefusalError {
    #[error("{0}")]
    Channel(#[from] ChannelError),
    #[error("no proof of key within {} s", HANDSHAKE_LIMIT.as_secs())]
    SlowHandshake,
    #[error("no request within {} s", HANDSHAKE_LIMIT.as_secs())]
    SlowRequest,
    #[error("a request out of order: {0:?}")]
    OutOfOrder(Kind),
    #[error("a command of more than {LONGEST_COMMAND} bytes")]
    LongCommand,
    #[error("a command with a zero byte in it")]
    ZeroByte,
}

/// What an authenticated launcher wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// To know that we are here.
    Answer,
    /// This command to be run.
    Launch { command: Vec<u8>, with_stdin: bool },
}

/// Lets a launcher prove its key. Until this returns nothing of what the peer sent has been looked at.
pub(crate) fn authenticate(
    socket: TcpStream,
    config: Arc<ServerConfig>,
) -> Result<Channel, RefusalError> {
    let deadline = Instant::now() + HANDSHAKE_LIMIT;
    let mut channel = Channel::host(socket, config)?;
    while channel.is_handshaking() {
        step(&mut channel, deadline, RefusalError::SlowHandshake)?;
    }
    Ok(channel)
}

/// Reads the request of an authenticated launcher.
pub(crate) fn request(channel: &mut Channel) -> Result<Wanted, RefusalError> {
    let deadline = Instant::now() + HANDSHAKE_LIMIT;
    let mut command = Vec::new();
    loop {
        while let Some(frame) = channel.next_frame()? {
            if let Some(wanted) = take(&mut command, frame)? {
                return Ok(wanted);
            }
        }
        step(channel, deadline, RefusalError::SlowRequest)?;
    }
}

/// Adds one frame to the request; gives it once it is complete.
fn take(command: &mut Vec<u8>, frame: Frame) -> Result<Option<Wanted>, RefusalError> {
    match (frame.kind, frame.byte()) {
        (Kind::Probe, _) if command.is_empty() => Ok(Some(Wanted::Answer)),
        (Kind::Command, _) => {
            command.extend(frame.payload);
            if command.len() > LONGEST_COMMAND {
                return Err(RefusalError::LongCommand);
            }
            Ok(None)
        }
        (Kind::Start, Some(flags)) => {
            let command = std::mem::take(command);
            if command.contains(&0) {
                return Err(RefusalError::ZeroByte);
            }
            Ok(Some(Wanted::Launch { command, with_stdin: flags == 1 }))
        }
        (other, _) => Err(RefusalError::OutOfOrder(other)),
    }
}

/// Waits for the socket and moves bytes once.
fn step(channel: &mut Channel, deadline: Instant, late: RefusalError) -> Result<(), RefusalError> {
    let now = Instant::now();
    if now >= deadline {
        return Err(late);
    }
    let mut set = PollSet::default();
    let readable = set.add(channel.as_fd(), PollFlags::IN);
    let writable = channel.wants_write().then(|| set.writable(channel.as_fd()));
    let ready = set.wait(Some(until(deadline, now))).map_err(ChannelError::Socket)?;
    if ready.any(Some(readable)) {
        channel.receive()?;
    }
    if ready.any(writable) || ready.any(Some(readable)) {
        channel.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: Kind, payload: &[u8]) -> Frame {
        Frame { kind, payload: payload.to_vec() }
    }

    #[test]
    fn a_command_arrives_in_pieces() {
        let mut command = Vec::new();
        assert!(matches!(take(&mut command, frame(Kind::Command, b"host")), Ok(None)));
        assert!(matches!(take(&mut command, frame(Kind::Command, b"name")), Ok(None)));
        let wanted = take(&mut command, frame(Kind::Start, &[1])).unwrap().unwrap();
        assert_eq!(wanted, Wanted::Launch { command: b"hostname".to_vec(), with_stdin: true });
    }

    #[test]
    fn a_command_without_end_is_cut_off_at_the_limit() {
        let mut command = Vec::new();
        let piece = vec![b'x'; 60_000];
        let faults = (0..3).filter_map(|_| take(&mut command, frame(Kind::Command, &piece)).err());
        assert!(matches!(faults.last(), Some(RefusalError::LongCommand)));
    }

    #[test]
    fn zero_bytes_and_disorder_are_refused() {
        assert!(matches!(
            take(&mut b"a\0b".to_vec(), frame(Kind::Start, &[0])),
            Err(RefusalError::ZeroByte)
        ));
        for kind in [Kind::Stdin, Kind::Signal, Kind::Exited, Kind::Started] {
            let refused = take(&mut Vec::new(), frame(kind, &[1]));
            assert!(matches!(refused, Err(RefusalError::OutOfOrder(_))), "{kind:?}");
        }
    }
}
