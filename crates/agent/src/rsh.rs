//! What mpirun calls in place of ssh: a host and a command go in; its output and exact exit come out, and both ends live and die together.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::channel::{Channel, ChannelError};
use crate::connection::LONGEST_COMMAND;
use crate::dial::{self, DialError};
use crate::foreground;
use crate::frame::{Frame, Kind};
use crate::keys::{KeyError, SecretKey};
use crate::launch::STDIN_CREDIT;
use crate::log;
use crate::outlet::Outlet;
use crate::polling::{PollSet, Ready, Token, earlier};
use crate::processes;
use crate::proof::{Event, Proof};
use crate::settings::Settings;
use crate::ssh_args::{self, CallError};
use crate::sys::{self, Signals};
use crate::table::{HostTable, LookupError, TableError};
use crate::tls::{self, TlsError};
use crate::tree::PASSED_ON;

/// The exit code of ssh's own failures, which its callers know.
pub(crate) const FAILED: u8 = 255;

/// A moment without news after which the start is over, of a job with many hosts too.
const QUIET: Duration = Duration::from_secs(3);

/// How long a host that never pauses is listened to after our caller has gone.
const LAST_LOOK: Duration = Duration::from_millis(200);

/// How much standard input is read at a time.
const STDIN_READ: usize = 16 << 10;

/// Why nothing was run, or the command's end is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RshError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(
        "the command is {0} bytes long; a host takes at most {LONGEST_COMMAND}: put it in a script"
    )]
    LongCommand(usize),
    #[error("cannot reach {host}")]
    Unreachable { host: String, source: DialError },
    #[error("{host}: {reason}")]
    Refused { host: String, code: u8, reason: String },
    #[error("lost {host}: {reason}")]
    Lost { host: String, reason: String },
    #[error("a system call failed")]
    System(#[from] io::Error),
}

impl RshError {
    /// The exit code to give.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Refused { code, .. } => *code,
            _ => FAILED,
        }
    }
}

/// Runs the command on the host and gives its exit code.
pub(crate) fn rsh(settings: &Settings, arguments: &[OsString]) -> Result<u8, RshError> {
    let parent = rustix::process::getppid().and_then(|pid| foreground::watch_process(pid).ok());
    let call = ssh_args::read(arguments)?;
    if call.command.len() > LONGEST_COMMAND {
        return Err(RshError::LongCommand(call.command.len()));
    }
    let table = HostTable::read(&settings.table, &settings.host_keys)?;
    let host = table.find(&call.host)?;
    let proof = Proof::new(settings.proof.as_deref(), &host.name);
    let config =
        tls::launcher_config(&SecretKey::read(&settings.launcher_key)?, host.public_key()?)?;
    let place = table.place(host);
    let command = with_variables(&table.variables_at(Some(host.address)), call.command);
    let channel = dial::reach(place, &config, &command, call.reads_stdin).map_err(|source| {
        proof.tell(Event::Refused { reason: source.to_string() });
        RshError::Unreachable { host: host.name.clone(), source }
    })?;
    proof.tell(Event::Reached { address: place.to_string() });
    let mut session = Session {
        host: host.name.clone(),
        channel,
        proof,
        parent,
        orphaned: None,
        signals: Signals::collect(&PASSED_ON)?,
        told_to_end: false,
        reads_stdin: call.reads_stdin,
        credit: STDIN_CREDIT as usize,
        stdout: Some(Outlet::new(rustix::stdio::stdout())),
        stderr: Some(Outlet::new(rustix::stdio::stderr())),
        unwritten: None,
        seen_output: false,
        lost_output: false,
        stopping: false,
        settled: false,
        buffer: Vec::new(),
    };
    drop((table, config));
    loop {
        if let Some(code) = session.turn()? {
            return Ok(code);
        }
    }
}

/// The command with the job's variables in front of it, as far as a host takes a text of that length.
fn with_variables(variables: &BTreeMap<String, String>, command: Vec<u8>) -> Vec<u8> {
    if variables.is_empty() {
        return command;
    }
    let quoted = |value: &str| value.replace('\'', "'\\''");
    let assigned = variables.iter().map(|(name, value)| format!(" {name}='{}'", quoted(value)));
    let mut whole = format!("export{}; ", assigned.collect::<String>()).into_bytes();
    if whole.len() + command.len() > LONGEST_COMMAND {
        log::line(format_args!("the job's variables are too long to be passed on"));
        return command;
    }
    whole.extend(command);
    whole
}

/// A command that runs elsewhere.
struct Session {
    host: String,
    channel: Channel,
    proof: Proof,
    /// Whoever called us: `kill -9` of mpirun leaves us behind, so we must notice.
    parent: Option<OwnedFd>,
    /// Since when it is gone.
    orphaned: Option<Instant>,
    signals: Signals,
    /// Whether a signal that asks for an end has been passed on.
    told_to_end: bool,
    reads_stdin: bool,
    credit: usize,
    stdout: Option<Outlet>,
    stderr: Option<Outlet>,
    /// Output that our own reader has not taken yet. While there is some, no more is read from the host.
    unwritten: Option<Unwritten>,
    seen_output: bool,
    /// Whether output was lost for another reason than that its reader left.
    lost_output: bool,
    stopping: bool,
    /// Whether there has been a quiet moment.
    settled: bool,
    buffer: Vec<u8>,
}

struct Unwritten {
    kind: Kind,
    bytes: Vec<u8>,
    from: usize,
}

#[derive(Default)]
struct Tokens {
    line: Option<Token>,
    stdin: Option<Token>,
    outlet: Option<Token>,
    signals: Option<Token>,
    parent: Option<Token>,
}

impl Session {
    /// Waits for something to happen and deals with it. Gives the exit code when the command has ended.
    fn turn(&mut self) -> Result<Option<u8>, RshError> {
        // Frames that arrived together are all in memory: the socket would not wake us for them.
        while self.unwritten.is_none() {
            match self.channel.next_frame() {
                Ok(Some(frame)) => {
                    if let Some(code) = self.take_frame(frame)? {
                        return Ok(Some(code));
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(self.lost(&error)),
            }
        }
        let (tokens, ready) = self.wait()?;
        if !self.settled && ready.is_nothing() {
            // What started the command is not needed to wait for its end.
            sys::release_code();
            self.settled = true;
        }
        if ready.any(tokens.parent) && self.is_abandoned(ready.any(tokens.line)) {
            self.proof.tell(Event::Abandoned { reason: "the calling process is gone".to_owned() });
            return Ok(Some(FAILED));
        }
        if ready.any(tokens.signals)
            && let Some(code) = self.take_signals()?
        {
            return Ok(Some(code));
        }
        if ready.any(tokens.outlet) {
            self.write_out()?;
        }
        if ready.any(tokens.line) {
            let exchanged = self.channel.flush().and_then(|()| {
                if self.unwritten.is_none() { self.channel.receive() } else { Ok(()) }
            });
            exchanged.map_err(|error| self.lost(&error))?;
        }
        if ready.any(tokens.stdin) {
            self.read_stdin()?;
        }
        Ok(None)
    }

    /// Whether the command is to end because our caller has. What the host has sent by then is read first: a caller that notices
    /// before us that the host is lost may leave with success, and nobody else would tell.
    fn is_abandoned(&mut self, has_more: bool) -> bool {
        let since = self.orphaned.get_or_insert_with(Instant::now);
        !has_more || since.elapsed() >= LAST_LOOK
    }

    fn wait(&self) -> Result<(Tokens, Ready), RshError> {
        let mut set = PollSet::default();
        let mut tokens =
            Tokens { signals: Some(set.readable(self.signals.as_fd())), ..Tokens::default() };
        tokens.parent = self.parent.as_ref().map(|parent| set.readable(parent.as_fd()));
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, self.unwritten.is_none());
        interest.set(PollFlags::OUT, self.channel.wants_write());
        if !interest.is_empty() {
            tokens.line = Some(set.add(self.channel.as_fd(), interest));
        }
        if let Some(outlet) = self.unwritten.as_ref().and_then(|it| self.outlet(it.kind)) {
            tokens.outlet = Some(set.writable(outlet.as_fd()));
        }
        if self.reads_stdin && self.credit > 0 && !self.channel.wants_write() {
            tokens.stdin = Some(set.readable(rustix::stdio::stdin()));
        }
        let limit = (!self.settled).then_some(QUIET);
        let look_again = self.channel.look_again_in().map_err(|error| self.lost(&error))?;
        Ok((tokens, set.wait(earlier(limit, look_again))?))
    }

    fn take_frame(&mut self, frame: Frame) -> Result<Option<u8>, RshError> {
        match frame.kind {
            Kind::Stdout | Kind::Stderr => {
                if !std::mem::replace(&mut self.seen_output, true) {
                    self.proof.tell(Event::FirstByte);
                }
                self.unwritten =
                    Some(Unwritten { kind: frame.kind, bytes: frame.payload, from: 0 });
                self.write_out()?;
            }
            Kind::Started => {
                self.proof.tell(Event::Started { pid: frame.number().unwrap_or_default() });
            }
            Kind::Credit => {
                let more = frame.number().unwrap_or_default().min(STDIN_CREDIT);
                self.credit = (self.credit + more as usize).min(STDIN_CREDIT as usize);
            }
            Kind::Rank => {
                let event = serde_json::from_slice(&frame.payload);
                if let Ok(event @ (Event::Rank(_) | Event::RankGone(_))) = event {
                    self.proof.tell(event);
                }
            }
            Kind::Stopping => {
                self.stopping = true;
                self.proof.tell(Event::Lost { reason: "the host was stopped".to_owned() });
            }
            Kind::Exited | Kind::Killed => return self.ended(&frame).map(Some),
            Kind::Refused => return Err(self.refused(&frame)),
            unexpected => {
                let reason = format!("it sent {unexpected:?}, which a host never sends");
                self.proof.tell(Event::Lost { reason: reason.clone() });
                return Err(RshError::Lost { host: self.host.clone(), reason });
            }
        }
        Ok(None)
    }

    fn ended(&mut self, frame: &Frame) -> Result<u8, RshError> {
        let number = frame.byte().unwrap_or(u8::MAX);
        let (event, code) = if frame.kind == Kind::Exited {
            (Event::Exited { code: number }, number)
        } else {
            (Event::Killed { signal: number }, 128u8.saturating_add(number))
        };
        self.proof.tell(event);
        if !self.is_orphan() {
            // If this does not arrive the host ends what the command left running, and that is all.
            drop(self.channel.send(Kind::Taken, &[]).and_then(|()| self.channel.flush()));
        }
        if self.stopping {
            return Err(RshError::Lost {
                host: self.host.clone(),
                reason: "the host was stopped".to_owned(),
            });
        }
        // A command whose output did not arrive has not succeeded.
        Ok(if self.lost_output && code == 0 { FAILED } else { code })
    }

    /// Whether our caller is gone, at this very moment, or going.
    ///
    /// A killed mpirun closes its connections before the kernel says that it has ended. Its daemons may notice and exit in
    /// between, and their exit must not pass for one that somebody waited for.
    fn is_orphan(&self) -> bool {
        let Some(parent) = &self.parent else {
            return false;
        };
        if rustix::process::getppid().is_none_or(processes::is_exiting) {
            return true;
        }
        let mut asked = [PollFd::new(parent, PollFlags::IN)];
        rustix::event::poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
    }

    fn refused(&self, frame: &Frame) -> RshError {
        let (code, reason) = frame.payload.split_first().unwrap_or((&FAILED, &[]));
        let reason = String::from_utf8_lossy(reason).into_owned();
        self.proof.tell(Event::Refused { reason: reason.clone() });
        RshError::Refused { host: self.host.clone(), code: *code, reason }
    }

    /// The connection ended before the command did.
    fn lost(&self, error: &ChannelError) -> RshError {
        let reason = error.to_string();
        if !self.stopping {
            self.proof.tell(Event::Lost { reason: reason.clone() });
        }
        RshError::Lost { host: self.host.clone(), reason }
    }

    fn outlet(&self, kind: Kind) -> Option<&Outlet> {
        if kind == Kind::Stdout { self.stdout.as_ref() } else { self.stderr.as_ref() }
    }

    /// Writes as much of the waiting output as its reader takes.
    fn write_out(&mut self) -> Result<(), RshError> {
        while let Some(unwritten) = &self.unwritten {
            let rest = unwritten.bytes.get(unwritten.from..).unwrap_or_default();
            let kind = unwritten.kind;
            match self.outlet(kind).map(|outlet| outlet.write(rest)) {
                Some(Ok(0)) if !rest.is_empty() => return Ok(()),
                Some(Ok(written)) => self.written(written),
                Some(Err(error)) => self.close_outlet(kind, error)?,
                None => self.unwritten = None,
            }
        }
        Ok(())
    }

    fn written(&mut self, length: usize) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.from += length;
            if unwritten.from >= unwritten.bytes.len() {
                self.unwritten = None;
            }
        }
    }

    /// Our own reader is gone, or the disk is full: the host is told, so that the command notices as if it ran here.
    fn close_outlet(&mut self, kind: Kind, error: Errno) -> Result<(), RshError> {
        if error != Errno::PIPE {
            let host = &self.host;
            log::line(format_args!("cannot pass on output of {host}: {error}"));
            self.lost_output = true;
        }
        let stream = if kind == Kind::Stdout {
            self.stdout = None;
            1
        } else {
            self.stderr = None;
            2
        };
        self.send(Kind::OutputClosed, &[stream])
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), RshError> {
        let sent = self.channel.send(kind, payload).and_then(|()| self.channel.flush());
        sent.map_err(|error| self.lost(&error))
    }

    fn read_stdin(&mut self) -> Result<(), RshError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(self.credit.min(STDIN_READ), 0);
        let sent = match rustix::io::read(rustix::stdio::stdin(), buffer.as_mut_slice()) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            // A stdin that cannot be read (of a background job on a terminal) is one without input.
            Ok(0) | Err(_) => {
                self.reads_stdin = false;
                self.send(Kind::StdinEnd, &[])
            }
            Ok(length) => {
                self.credit -= length;
                self.send(Kind::Stdin, buffer.get(..length).unwrap_or_default())
            }
        };
        self.buffer = buffer;
        sent
    }

    /// Passes signals on. One that asks for an end twice is taken to mean it: we leave, and the host ends the command.
    fn take_signals(&mut self) -> Result<Option<u8>, RshError> {
        while let Some(signal) = self.signals.next() {
            let asks_for_end =
                matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT);
            let number = u8::try_from(signal.as_raw()).unwrap_or_default();
            if asks_for_end && std::mem::replace(&mut self.told_to_end, true) {
                self.proof.tell(Event::Abandoned { reason: "told to end twice".to_owned() });
                return Ok(Some(128u8.saturating_add(number)));
            }
            self.send(Kind::Signal, &[number])?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_job_go_before_the_command_as_far_as_they_fit() {
        let variables = BTreeMap::from([("A".to_owned(), "it's $1".to_owned())]);
        let command = with_variables(&variables, b"orted -x".to_vec());
        assert_eq!(String::from_utf8(command).unwrap(), "export A='it'\\''s $1'; orted -x");
        assert_eq!(with_variables(&BTreeMap::new(), b"x".to_vec()), b"x");
        let long = BTreeMap::from([("A".to_owned(), "a".repeat(LONGEST_COMMAND))]);
        assert_eq!(with_variables(&long, b"x".to_vec()), b"x");
    }
}
