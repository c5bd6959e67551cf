//! One authenticated connection: a non-blocking socket and rustls below, frames above.
//!
//! It never waits. `receive` and `flush` do what the socket allows; the caller polls in between. What is held is bounded:
//! one frame and one read on the way in, and on the way out what the caller sent before the last flush was complete.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, ServerConfig,
    ServerConnection,
};
use thiserror::Error;

use crate::frame::{self, Frame, FrameError, Kind};
use crate::sys;

/// One read from the socket: four of the largest TLS records.
const READ: usize = 64 << 10;

/// How long a machine may be silent before it counts as gone.
const SILENCE: Duration = Duration::from_secs(5);

/// How often that is looked for where the kernel does not do it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a connection is of no more use.
#[derive(Debug, Error)]
pub(crate) enum ChannelError {
    #[error("the connection was cut")]
    Cut,
    #[error("its machine does not answer")]
    Unreachable,
    #[error("the connection failed: {0}")]
    Socket(#[from] io::Error),
    #[error("{}", explain(.0))]
    Tls(#[from] rustls::Error),
    #[error("the peer sent {0}")]
    Frame(#[from] FrameError),
}

/// A connection to the other side.
pub(crate) struct Channel {
    socket: TcpStream,
    tls: Connection,
    encrypted: Vec<u8>,
    inbound: Vec<u8>,
}

impl Channel {
    /// The launcher's side of a connected socket.
    pub(crate) fn launcher(
        socket: TcpStream,
        peer: SocketAddr,
        config: Arc<ClientConfig>,
    ) -> Result<Self, ChannelError> {
        let name = ServerName::IpAddress(IpAddr::into(peer.ip()));
        let tls = ClientConnection::new(config, name)?;
        Self::new(socket, tls.into())
    }

    /// The host's side of an accepted socket.
    pub(crate) fn host(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Self, ChannelError> {
        let tls = ServerConnection::new(config)?;
        Self::new(socket, tls.into())
    }

    fn new(socket: TcpStream, mut tls: Connection) -> Result<Self, ChannelError> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        keep_alive(&socket)?;
        // The callers bound what they send by flushing first.
        tls.set_buffer_limit(None);
        Ok(Self { socket, tls, encrypted: Vec::new(), inbound: Vec::new() })
    }

    /// Our own address on this connection.
    pub(crate) fn local_address(&self) -> Option<IpAddr> {
        self.socket.local_addr().ok().map(|address| address.ip())
    }

    /// Whether keys are still being proved.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether something waits to be flushed.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// How soon to ask this again: while something is on its way to the peer, keep-alive does not ask whether its machine is
    /// still there, and the kernel itself would give up only after a quarter of an hour.
    pub(crate) fn look_again_in(&self) -> Result<Option<Duration>, ChannelError> {
        if !sys::is_something_on_its_way(self.as_fd()) {
            return Ok(None);
        }
        if sys::is_unacknowledged(self.as_fd(), SILENCE) {
            return Err(ChannelError::Unreachable);
        }
        Ok(Some(LOOK_AGAIN))
    }

    /// Takes the next whole frame that has arrived.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, ChannelError> {
        Ok(frame::take(&mut self.inbound)?)
    }

    /// Puts a frame in line; `flush` sends it. During the handshake it waits for the peer to have proved its key.
    pub(crate) fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let header = frame::header(kind, payload.len());
        let written =
            self.tls.writer().write_vectored(&[IoSlice::new(&header), IoSlice::new(payload)])?;
        debug_assert_eq!(written, header.len() + payload.len(), "no buffer limit is set");
        Ok(())
    }

    /// Reads once from the socket. Call it when all frames are taken and the socket is readable.
    pub(crate) fn receive(&mut self) -> Result<(), ChannelError> {
        // Memory that is only reserved costs nothing until the kernel writes to it.
        self.encrypted.clear();
        self.encrypted.reserve(READ);
        match rustix::io::read(&self.socket, spare_capacity(&mut self.encrypted)) {
            Ok(0) | Err(Errno::CONNRESET) => return Err(ChannelError::Cut),
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let mut rest = self.encrypted.as_slice();
        while !rest.is_empty() {
            self.tls.read_tls(&mut rest)?;
            let state = match self.tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The peer learns why by the alert that rustls has put in line.
                    drop(self.tls.write_tls(&mut self.socket));
                    return Err(error.into());
                }
            };
            let before = self.inbound.len();
            self.inbound.resize(before + state.plaintext_bytes_to_read(), 0);
            let fresh = self.inbound.get_mut(before..).unwrap_or_default();
            self.tls.reader().read_exact(fresh)?;
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Result<(), ChannelError> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        self.tls.send_close_notify();
        drop(self.flush());
        drop(self.socket.shutdown(std::net::Shutdown::Write));
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether trying again later is all that is needed.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A peer whose machine is gone sends no end: the kernel asks after 2 s of silence and gives up after 5 s. A peer that is only
/// stopped still answers, because its kernel does.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(2))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    Ok(())
}

/// What a failed handshake means to the one who reads the log.
fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the peer's key is not one of this job's".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::UnknownCA) => {
            "the peer does not accept our key".to_owned()
        }
        other => format!("TLS: {other}"),
    }
}
