//! The connections that have not proved a key yet, and which of them to drop when there are too many.
//!
//! An honest launcher speaks first, as soon as it is connected, and is done within milliseconds. So one that is silent costs a
//! descriptor and no process, and is the first to go; one that is proving its key is left some time before it can be dropped.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal};

use crate::connection::{HANDSHAKE_LIMIT, RefusalError};
use crate::log;
use crate::polling::{PollSet, Ready, Token, until};
use crate::processes;

/// How many there may be at a time.
const MOST: usize = 64;

/// How long one that is proving its key is safe, even on a busy machine with a full house.
const SAFE: Duration = Duration::from_millis(100);

/// All of them, oldest first.
#[derive(Default)]
pub(crate) struct Strangers {
    silent: VecDeque<Silent>,
    proving: VecDeque<Proving>,
}

/// One that has not said a word.
pub(crate) struct Silent {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) since: Instant,
}

/// One that a process of ours listens to.
pub(crate) struct Proving {
    pub(crate) pid: Pid,
    pub(crate) peer: SocketAddr,
    pub(crate) since: Instant,
    /// Readable when the process has found its peer honest, or is gone.
    pub(crate) news: OwnedFd,
}

/// Their places in one wait.
pub(crate) struct Tokens {
    silent: Vec<Token>,
    proving: Vec<Token>,
}

impl Strangers {
    /// Takes in a new one.
    pub(crate) fn welcome(&mut self, stranger: Silent) {
        self.silent.push_back(stranger);
    }

    /// Notes that a process listens to this one now.
    pub(crate) fn listen_to(&mut self, stranger: Proving) {
        self.proving.push_back(stranger);
    }

    /// Whether another may come in. If not, `due_in` tells when to ask again.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.silent.len() + self.proving.len() < MOST
            || !self.silent.is_empty()
            || self.proving.front().is_some_and(|oldest| now >= oldest.since + SAFE)
    }

    /// Drops one if another could not come in otherwise.
    pub(crate) fn make_room(&mut self) {
        if self.silent.len() + self.proving.len() < MOST {
            return;
        }
        let crowded = |peer: SocketAddr, what: &str| {
            log::line(format_args!(
                "refused {peer}: {MOST} connections without proof of key, this is the oldest {what}"
            ));
        };
        if let Some(oldest) = self.silent.pop_front() {
            crowded(oldest.peer, "that says nothing");
        } else if let Some(oldest) = self.proving.pop_front() {
            processes::signal(oldest.pid, Signal::KILL);
            crowded(oldest.peer, "of them");
        }
    }

    /// Time until somebody is overdue, or until a full house may have room again.
    pub(crate) fn due_in(&self, now: Instant) -> Option<Duration> {
        let overdue = self.silent.front().map(|oldest| oldest.since + HANDSHAKE_LIMIT);
        let full = !self.has_room(now);
        let room = self.proving.front().filter(|_| full).map(|oldest| oldest.since + SAFE);
        overdue.into_iter().chain(room).min().map(|due| until(due, now))
    }

    /// Turns away those who have said nothing for too long.
    pub(crate) fn turn_away_overdue(&mut self, now: Instant) {
        while let Some(oldest) = self.silent.pop_front_if(|it| now >= it.since + HANDSHAKE_LIMIT) {
            log::line(format_args!("refused {}: {}", oldest.peer, RefusalError::SlowHandshake));
        }
    }

    /// Adds all of them to a wait.
    pub(crate) fn poll<'these>(&'these self, set: &mut PollSet<'these>) -> Tokens {
        Tokens {
            silent: self.silent.iter().map(|it| set.readable(it.socket.as_fd())).collect(),
            proving: self.proving.iter().map(|it| set.readable(it.news.as_fd())).collect(),
        }
    }

    /// Forgets those who are strangers no more, and gives those who have begun to speak.
    pub(crate) fn sort(&mut self, tokens: Tokens, ready: &Ready) -> Vec<Silent> {
        let mut tokens_proving = tokens.proving.into_iter();
        self.proving.retain(|_| !ready.any(tokens_proving.next()));
        let all = std::mem::take(&mut self.silent);
        let (speaking, silent): (Vec<_>, Vec<_>) =
            all.into_iter().zip(tokens.silent).partition(|(_, token)| ready.any(Some(*token)));
        self.silent = silent.into_iter().map(|(stranger, _)| stranger).collect();
        speaking.into_iter().map(|(stranger, _)| stranger).filter(Silent::has_spoken).collect()
    }

    /// Drops all.
    pub(crate) fn clear(&mut self) {
        self.silent.clear();
        for stranger in self.proving.drain(..) {
            processes::signal(stranger.pid, Signal::KILL);
        }
    }

    /// Forgets all without a word to anybody: for a forked process that has only one of them to care for.
    pub(crate) fn forget(&mut self) {
        self.silent.clear();
        self.proving.clear();
    }
}

impl Silent {
    /// Whether it said something; one that left without a word is not worth a process.
    fn has_spoken(&self) -> bool {
        let mut byte = [0_u8];
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let spoke = matches!(rustix::net::recv(&self.socket, &mut byte[..], peek), Ok((1.., _)));
        if !spoke {
            log::line(format_args!("refused {}: it left without a word", self.peer));
        }
        spoke
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn silent(listener: &TcpListener, since: Instant) -> (TcpStream, Silent) {
        let launcher = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        (launcher, Silent { socket, peer, since })
    }

    #[test]
    fn a_full_house_drops_the_oldest_that_says_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let now = Instant::now();
        let mut strangers = Strangers::default();
        let mut launchers = Vec::new();
        for _ in 0..MOST {
            let (launcher, stranger) = silent(&listener, now);
            launchers.push(launcher);
            strangers.make_room();
            strangers.welcome(stranger);
        }
        assert!(strangers.has_room(now));
        let oldest = strangers.silent.front().unwrap().peer;
        strangers.make_room();
        assert_eq!(strangers.silent.len(), MOST - 1);
        assert_ne!(strangers.silent.front().unwrap().peer, oldest);
    }

    #[test]
    fn silence_has_a_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let now = Instant::now();
        let mut strangers = Strangers::default();
        let (_launcher, stranger) = silent(&listener, now);
        strangers.welcome(stranger);
        assert_eq!(strangers.due_in(now), Some(HANDSHAKE_LIMIT));
        strangers.turn_away_overdue(now);
        assert_eq!(strangers.silent.len(), 1);
        strangers.turn_away_overdue(now + HANDSHAKE_LIMIT);
        assert_eq!(strangers.silent.len(), 0);
    }
}
