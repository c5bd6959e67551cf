//! Shakes hands with every host of a table, many at a time, until all have answered: hosts go in, our own address towards them comes out.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustls::ClientConfig;

use crate::channel::Channel;
use crate::dial::{Dial, DialError, ONE_TRY, Request};
use crate::frame::Kind;
use crate::keys::SecretKey;
use crate::polling::{PollSet, until};
use crate::table::{HostTable, TableError};
use crate::tls::{self, TlsError};

/// How many hosts are asked at the same time.
const AT_ONCE: usize = 64;

/// How soon a host that did not answer is asked again. Each later time takes twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// The hosts and how far each has come.
pub(crate) struct Probes {
    each: Vec<Probe>,
    /// Our own address on the first connection that answered.
    pub(crate) own_address: Option<IpAddr>,
}

struct Probe {
    name: String,
    place: SocketAddr,
    config: Arc<ClientConfig>,
    state: State,
    pause: Duration,
    why: String,
    insists: bool,
}

/// Why a host cannot even be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Table(#[from] TableError),
}

enum State {
    Waiting { ask_at: Instant },
    Dialing { dial: Box<Dial<'static>>, give_up_at: Instant },
    Asked { channel: Box<Channel>, give_up_at: Instant },
    Answered,
}

impl Probes {
    /// Prepares to ask every host of the table, until it answers or only once, but the one of that name, which is this one:
    /// it need not be reached.
    pub(crate) fn new(
        table: &HostTable,
        own_name: &str,
        key: &SecretKey,
        insists: bool,
        now: Instant,
    ) -> Result<Self, ProbeError> {
        let others = table.hosts.iter().filter(|host| host.name != own_name);
        let each = others.map(|host| {
            Ok(Probe {
                name: host.name.clone(),
                place: table.place(host),
                config: tls::launcher_config(key, host.public_key()?)?,
                state: State::Waiting { ask_at: now },
                pause: FIRST_PAUSE,
                why: "not asked yet".to_owned(),
                insists,
            })
        });
        Ok(Self { each: each.collect::<Result<_, ProbeError>>()?, own_address: None })
    }

    /// Whether all have answered.
    pub(crate) fn is_done(&self) -> bool {
        self.each.iter().all(|probe| matches!(probe.state, State::Answered))
    }

    /// Who has not answered, and why, in words.
    pub(crate) fn waiting_for(&self) -> String {
        let mut waiting = self.each.iter().filter(|probe| !matches!(probe.state, State::Answered));
        let shown: Vec<String> = waiting
            .by_ref()
            .take(3)
            .map(|probe| format!("{} at {} ({})", probe.name, probe.place, probe.why))
            .collect();
        match waiting.count() {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }

    /// Goes on with all of them for at most this long, or until `interrupt` is readable.
    pub(crate) fn advance(&mut self, limit: Duration, interrupt: BorrowedFd<'_>) -> io::Result<()> {
        let now = Instant::now();
        let mut in_flight = self.each.iter().filter(|probe| probe.is_in_flight()).count();
        for probe in &mut self.each {
            if in_flight < AT_ONCE
                && matches!(probe.state, State::Waiting { ask_at } if ask_at <= now)
            {
                probe.ask(now);
                in_flight += usize::from(probe.is_in_flight());
            }
        }
        let next = self.each.iter().filter_map(|probe| probe.due_at(in_flight < AT_ONCE)).min();
        let limit = next.map_or(limit, |next| until(next, now).min(limit));
        let mut set = PollSet::default();
        set.readable(interrupt);
        let tokens: Vec<_> = self
            .each
            .iter()
            .map(|probe| probe.interest().map(|(fd, flags)| set.add(fd, flags)))
            .collect();
        let ready = set.wait(Some(limit))?;
        let now = Instant::now();
        for (probe, token) in self.each.iter_mut().zip(tokens) {
            if ready.any(token) {
                self.own_address = self.own_address.or(probe.step(now));
            }
            probe.check_time(now);
        }
        Ok(())
    }
}

impl Probe {
    fn is_in_flight(&self) -> bool {
        matches!(self.state, State::Dialing { .. } | State::Asked { .. })
    }

    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            State::Dialing { dial, .. } => dial.interest(),
            State::Asked { channel, .. } => Some((channel.as_fd(), PollFlags::IN)),
            State::Waiting { .. } | State::Answered => None,
        }
    }

    fn due_at(&self, may_ask: bool) -> Option<Instant> {
        match self.state {
            State::Waiting { ask_at } => may_ask.then_some(ask_at),
            State::Dialing { give_up_at, .. } | State::Asked { give_up_at, .. } => Some(give_up_at),
            State::Answered => None,
        }
    }

    fn ask(&mut self, now: Instant) {
        match Dial::begin(self.place, self.config.clone(), Request::Probe) {
            Ok(dial) => {
                self.state = State::Dialing { dial: Box::new(dial), give_up_at: now + ONE_TRY };
            }
            Err(error) => self.failed(&error, now),
        }
    }

    /// Deals with news from the socket; gives our own address there once the host has answered.
    fn step(&mut self, now: Instant) -> Option<IpAddr> {
        let outcome = match &mut self.state {
            State::Dialing { dial, give_up_at } => {
                let give_up_at = *give_up_at;
                dial.advance().map(|channel| {
                    channel.map(|channel| State::Asked { channel: Box::new(channel), give_up_at })
                })
            }
            State::Asked { channel, .. } => {
                channel.receive().map(|()| None).map_err(DialError::from)
            }
            State::Waiting { .. } | State::Answered => Ok(None),
        };
        match outcome {
            Ok(Some(state)) => self.state = state,
            Ok(None) => {}
            Err(error) => self.failed(&error, now),
        }
        let State::Asked { channel, .. } = &mut self.state else {
            return None;
        };
        match channel.next_frame() {
            Ok(Some(frame)) if frame.kind == Kind::Here => {
                let own = channel.local_address();
                self.state = State::Answered;
                own
            }
            Ok(_) => None,
            Err(error) => {
                self.failed(&error.into(), now);
                None
            }
        }
    }

    fn check_time(&mut self, now: Instant) {
        if self.is_in_flight() && self.due_at(false).is_some_and(|due| due <= now) {
            self.failed(&DialError::TimedOut, now);
        }
    }

    fn failed(&mut self, error: &DialError, now: Instant) {
        self.why = error.to_string();
        self.state = if self.insists {
            State::Waiting { ask_at: now + self.pause }
        } else {
            State::Answered
        };
        self.pause = (self.pause * 2).min(LAST_PAUSE);
    }
}
