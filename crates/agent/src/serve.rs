//! A host's own process: connections come in, each is answered by a forked process of its own; an optional command runs beside them.
//!
//! The server itself never takes a byte off a connection. What a peer sends is only looked at in the process forked for it, so a fault
//! there cannot hurt others, and each launch has a supervisor of its own. Every direct child of the server is such a process; any
//! other child that turns up has lost its supervisor and is killed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustls::ServerConfig;

use crate::connection::{self, Wanted};
use crate::foreground;
use crate::frame::Kind;
use crate::keys::{KeyError, Launchers, SecretKey};
use crate::launch;
use crate::log;
use crate::polling::{PollSet, until};
use crate::processes;
use crate::proof::Proof;
use crate::settings::Settings;
use crate::strangers::{Proving, Silent, Strangers};
use crate::sys::{self, Fork, Signals};
use crate::tls::{self, TlsError};
use crate::tree;

/// How long launches may take to end when the host is stopped: the supervisors' own grace and some time to kill.
const STOP_LIMIT: Duration = Duration::from_secs(4);

/// How often stray processes are looked for while there are any.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// Why the server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot listen on {place}")]
    Listen { place: SocketAddr, source: io::Error },
    #[error("a system call failed")]
    System(#[from] io::Error),
}

/// Serves until it is stopped or its own command ends; gives the exit code.
pub(crate) fn serve(settings: &Settings, own_command: &[OsString]) -> Result<u8, ServeError> {
    let key = SecretKey::read(&settings.host_key)?;
    let launchers = Launchers::read(&settings.launchers)?;
    let config = tls::host_config(&key, &launchers)?;
    drop(key);
    // Before we say that we are here: who hears it may ask us to stop, and process 1 hears only what it listens for.
    let signals = tree::supervisor_signals()?;
    let listener = listen(settings.listen)?;
    log::line(format_args!("listening on {}", listener.local_addr()?));
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    let mut server = Server {
        config,
        listener: Some(listener),
        signals,
        strangers: Strangers::default(),
        supervisors: BTreeSet::new(),
        own: None,
        stop: None,
        stray: false,
    };
    server.start_own(own_command)?;
    sys::release_code();
    loop {
        if let Some(code) = server.turn()? {
            return Ok(code);
        }
    }
}

struct Server {
    config: Arc<ServerConfig>,
    listener: Option<TcpListener>,
    signals: Signals,
    strangers: Strangers,
    /// Process ids of everybody we forked and have not reaped.
    supervisors: BTreeSet<i32>,
    /// The supervisor of our own command.
    own: Option<Pid>,
    stop: Option<Stop>,
    /// Whether a supervisor died and may have left processes to us.
    stray: bool,
}

#[derive(Clone, Copy)]
struct Stop {
    code: u8,
    kill_at: Instant,
}

impl Server {
    /// Waits for something to happen and deals with it. Gives the exit code when all is over.
    fn turn(&mut self) -> Result<Option<u8>, ServeError> {
        let now = Instant::now();
        if let Some(stop) = self.stop {
            if now >= stop.kill_at {
                self.signal_supervisors(Signal::KILL);
            }
            if self.supervisors.is_empty() && !self.stray {
                return Ok(Some(stop.code));
            }
        }
        self.strangers.turn_away_overdue(now);
        let mut set = PollSet::default();
        let signalled = set.readable(self.signals.as_fd());
        let listener = self.listener.as_ref().filter(|_| self.strangers.has_room(now));
        let called = listener.map(|listener| set.readable(listener.as_fd()));
        let tokens = self.strangers.poll(&mut set);
        let ready = set.wait(self.due_in(now))?;

        for speaking in self.strangers.sort(tokens, &ready) {
            self.listen_to(speaking)?;
        }
        if ready.any(Some(signalled)) {
            self.take_signals();
        }
        if ready.any(called) {
            self.accept();
        }
        if self.stray {
            self.kill_strays();
        }
        Ok(None)
    }

    fn due_in(&self, now: Instant) -> Option<Duration> {
        let stop = match self.stop {
            _ if self.stray => Some(KILL_AGAIN),
            Some(stop) => Some(until(stop.kill_at, now).max(KILL_AGAIN)),
            None => None,
        };
        stop.into_iter().chain(self.strangers.due_in(now)).min()
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        match accept_one(listener) {
            Ok(Some((socket, peer))) => {
                self.strangers.make_room();
                self.strangers.welcome(Silent { socket, peer, since: Instant::now() });
            }
            Ok(None) => {}
            Err(error) => log::line(format_args!("cannot accept a connection: {error}")),
        }
    }

    /// Starts the process that listens to a stranger.
    fn listen_to(&mut self, stranger: Silent) -> Result<(), ServeError> {
        let Silent { socket, peer, since } = stranger;
        let (news, authenticated) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let server = rustix::process::getpid();
        match sys::fork() {
            Ok(Fork::Parent(pid)) => {
                self.supervisors.insert(pid.as_raw_nonzero().get());
                self.strangers.listen_to(Proving { pid, peer, since, news });
            }
            Ok(Fork::Child) => {
                self.listener = None;
                self.strangers.forget();
                drop(news);
                answer(socket, peer, self.config.clone(), authenticated, server);
                sys::exit_now(0);
            }
            Err(error) => {
                log::line(format_args!("refused {peer}: cannot start a process for it: {error}"));
            }
        }
        Ok(())
    }

    fn start_own(&mut self, command: &[OsString]) -> Result<(), ServeError> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(());
        };
        let server = rustix::process::getpid();
        match sys::fork()? {
            Fork::Parent(pid) => {
                self.supervisors.insert(pid.as_raw_nonzero().get());
                self.own = Some(pid);
                Ok(())
            }
            Fork::Child => {
                self.listener = None;
                let mut command = Command::new(program);
                command.args(arguments);
                let watched = foreground::watch_process(server).ok();
                sys::exit_now(run_own(&mut command, watched).into())
            }
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match (signal, self.own) {
                (Signal::CHILD, _) => self.reap(),
                // Our own command decides what its signals mean; when it ends, so do we.
                (passed_on, Some(own)) => processes::signal(own, passed_on),
                (Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT, None) => {
                    self.begin_stop(0)
                }
                (_, None) => {}
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped(pid, status),
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        let was_supervisor = self.supervisors.remove(&pid.as_raw_nonzero().get());
        // A supervisor leaves by itself only when its tree is gone.
        self.stray |= was_supervisor && status.terminating_signal().is_some();
        if self.own == Some(pid) {
            self.own = None;
            let code =
                status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
            self.begin_stop(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX));
        }
    }

    fn begin_stop(&mut self, code: u8) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(Stop { code, kill_at: Instant::now() + STOP_LIMIT });
        self.listener = None;
        self.strangers.clear();
        self.signal_supervisors(Signal::TERM);
    }

    fn signal_supervisors(&self, signal: Signal) {
        for pid in self.supervisors.iter().copied().filter_map(Pid::from_raw) {
            processes::signal(pid, signal);
        }
    }

    /// Kills what a dead supervisor left to us.
    fn kill_strays(&mut self) {
        self.reap();
        let strays: Vec<Pid> = processes::own_children()
            .into_iter()
            .filter(|pid| !self.supervisors.contains(&pid.as_raw_nonzero().get()))
            .collect();
        self.stray = !strays.is_empty();
        for stray in strays {
            let below = processes::descendants(stray);
            for pid in below.into_iter().chain([stray]) {
                processes::signal(pid, Signal::KILL);
            }
        }
    }
}

/// Everything that happens to one connection, in a process of its own.
fn answer(
    socket: TcpStream,
    peer: SocketAddr,
    config: Arc<ServerConfig>,
    authenticated: OwnedFd,
    server: Pid,
) {
    let Ok(server_ends) = foreground::watch_process(server) else {
        return;
    };
    if rustix::process::getppid() != Some(server) {
        return;
    }
    let wanted = connection::authenticate(socket, config).and_then(|mut channel| {
        // The server only counts: should this fail, it takes us for a stranger until we end.
        let _ = rustix::io::write(&authenticated, b"+");
        drop(authenticated);
        connection::request(&mut channel).map(|wanted| (channel, wanted))
    });
    let done = match wanted {
        Ok((mut channel, Wanted::Answer)) => {
            drop(channel.send(Kind::Here, &[]));
            launch::linger(channel)
        }
        Ok((channel, Wanted::Launch { command, with_stdin })) => {
            launch::run(channel, &command, with_stdin, server_ends)
        }
        Err(refusal) => {
            log::line(format_args!("refused {peer}: {refusal}"));
            Ok(())
        }
    };
    if let Err(error) = done {
        log::line(format_args!("a launch for {peer} failed: {error}"));
    }
}

fn run_own(command: &mut Command, server: Option<OwnedFd>) -> u8 {
    match foreground::run(command, server, &Proof::new(None, ""), None) {
        Ok(ran) => ran.outcome.code(),
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            log::line(format_args!("cannot run {program}: {error}"));
            if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
        }
    }
}

fn accept_one(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::net::accept_with(listener, flags) {
        Ok(socket) => {
            let socket = TcpStream::from(socket);
            // A peer that has already left has no address any more.
            Ok(socket.peer_addr().ok().map(|peer| (socket, peer)))
        }
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Listens at the place, or, when only a port is known, on every address of whichever kind the host has.
fn listen(place: Option<SocketAddr>) -> Result<TcpListener, ServeError> {
    let port = crate::table::DEFAULT_PORT;
    let everywhere = [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()];
    let places = place.as_ref().map_or(&everywhere[..], std::slice::from_ref);
    let listener = TcpListener::bind(places).and_then(|listener| {
        // A long queue, so that a flood does not make the kernel drop an honest caller before we see it.
        rustix::net::listen(&listener, 4096)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| ServeError::Listen { place: place.unwrap_or(everywhere[0]), source })
}
