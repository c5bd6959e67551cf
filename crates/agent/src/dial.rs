//! Reaches a host: a place and a TLS configuration go in, a channel whose host has proved its key comes out.
//!
//! The request is handed over together with our own proof, so a process is started one round trip after the connection stands.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustls::ClientConfig;
use thiserror::Error;

use crate::channel::{Channel, ChannelError};
use crate::frame::Kind;
use crate::polling::{PollSet, until};

/// How long one `rsh` tries: a host under attack or just being started may drop a connection that was not yet authenticated.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one connection and its handshake may take before another is tried.
pub(crate) const ONE_TRY: Duration = Duration::from_secs(5);

/// The pause before the second try; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Why a host was not reached.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("{}", plain(.0))]
    Connect(io::Error),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("no answer within {} s", ONE_TRY.as_secs())]
    TimedOut,
}

/// What is asked of a host, sent with our proof of key.
pub(crate) enum Request<'text> {
    /// Answer, and no more.
    Probe,
    /// Start this.
    Launch { command: &'text [u8], with_stdin: bool },
}

/// One try to reach a host. It never waits: poll `interest`, then `advance`.
pub(crate) struct Dial<'text> {
    place: SocketAddr,
    config: Arc<ClientConfig>,
    request: Request<'text>,
    state: State,
}

enum State {
    Connecting(OwnedFd),
    Handshaking(Box<Channel>),
    Over,
}

impl<'text> Dial<'text> {
    /// Begins to connect.
    pub(crate) fn begin(
        place: SocketAddr,
        config: Arc<ClientConfig>,
        request: Request<'text>,
    ) -> Result<Self, DialError> {
        let family = match place {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
            .map_err(|error| DialError::Connect(error.into()))?;
        match rustix::net::connect(&socket, &place) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(DialError::Connect(error.into())),
        }
        Ok(Self { place, config, request, state: State::Connecting(socket) })
    }

    /// What to wait for.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            State::Connecting(socket) => Some((socket.as_fd(), PollFlags::OUT)),
            State::Handshaking(channel) if channel.wants_write() => {
                Some((channel.as_fd(), PollFlags::IN | PollFlags::OUT))
            }
            State::Handshaking(channel) => Some((channel.as_fd(), PollFlags::IN)),
            State::Over => None,
        }
    }

    /// Goes as far as it can; gives the channel once the host has proved its key and the request is on its way.
    pub(crate) fn advance(&mut self) -> Result<Option<Channel>, DialError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Connecting(socket) => {
                let outcome = sockopt::socket_error(&socket).map_err(io::Error::from);
                outcome.and_then(|it| it.map_err(io::Error::from)).map_err(DialError::Connect)?;
                let stream = TcpStream::from(socket);
                let mut channel = Channel::launcher(stream, self.place, self.config.clone())?;
                self.request.put_in_line(&mut channel)?;
                channel.flush()?;
                self.state = State::Handshaking(Box::new(channel));
                Ok(None)
            }
            State::Handshaking(mut channel) => {
                channel.receive()?;
                channel.flush()?;
                if channel.is_handshaking() {
                    self.state = State::Handshaking(channel);
                    return Ok(None);
                }
                Ok(Some(*channel))
            }
            State::Over => Ok(None),
        }
    }
}

impl Request<'_> {
    fn put_in_line(&self, channel: &mut Channel) -> Result<(), ChannelError> {
        match self {
            Self::Probe => channel.send(Kind::Probe, &[]),
            Self::Launch { command, with_stdin } => {
                for piece in command.chunks(crate::frame::LONGEST_PAYLOAD) {
                    channel.send(Kind::Command, piece)?;
                }
                channel.send(Kind::Start, &[u8::from(*with_stdin)])
            }
        }
    }
}

/// Reaches one host, trying again for a few seconds where that is safe: nothing can have been started before the host proved its
/// key, because the request leaves only after that.
pub(crate) fn reach(
    place: SocketAddr,
    config: &Arc<ClientConfig>,
    command: &[u8],
    with_stdin: bool,
) -> Result<Channel, DialError> {
    let give_up = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        let request = Request::Launch { command, with_stdin };
        let failed = match try_once(place, config.clone(), request) {
            Ok(channel) => return Ok(channel),
            // Another key will not become the right one.
            Err(error @ DialError::Channel(ChannelError::Tls(_) | ChannelError::Frame(_))) => {
                return Err(error);
            }
            Err(error) => error,
        };
        if Instant::now() + pause >= give_up {
            return Err(failed);
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn try_once(
    place: SocketAddr,
    config: Arc<ClientConfig>,
    request: Request<'_>,
) -> Result<Channel, DialError> {
    let deadline = Instant::now() + ONE_TRY;
    let mut dial = Dial::begin(place, config, request)?;
    while let Some((fd, flags)) = dial.interest() {
        let now = Instant::now();
        if now >= deadline {
            return Err(DialError::TimedOut);
        }
        let mut set = PollSet::default();
        let token = set.add(fd, flags);
        let ready = set.wait(Some(until(deadline, now))).map_err(DialError::Connect)?;
        if ready.any(Some(token))
            && let Some(channel) = dial.advance()?
        {
            return Ok(channel);
        }
    }
    Err(DialError::TimedOut)
}

/// The system's words without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
