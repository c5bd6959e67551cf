//! One launch on a host: an authenticated channel and a command go in; output, rank sightings and the exit leave by the channel.
//!
//! Runs in a process of its own, which is the command's supervisor. When the launcher goes away, or the host is stopped, the whole
//! tree is ended. When the command ends normally its detached descendants live on, as under sshd, and this process stays to
//! reap them.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::channel::Channel;
use crate::frame::{Frame, Kind, LONGEST_PAYLOAD};
use crate::log;
use crate::polling::{PollSet, Ready, Token, earlier, until};
use crate::proof::Event;
use crate::ranks::{Changes, Watch};
use crate::shell_words;
use crate::sys::{self, Signals};
use crate::tree::{self, Outcome, PASSED_ON, Tree};

/// How much standard input a launcher may send before we have passed it on: one pipe's worth.
pub(crate) const STDIN_CREDIT: u32 = 64 << 10;

/// How long a launcher may take to hang up on a host that has started nothing for it.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs a command for the launcher at the other end; returns when no process of it is left.
pub(crate) fn run(
    mut channel: Channel,
    command: &[u8],
    with_stdin: bool,
    serve: OwnedFd,
) -> io::Result<()> {
    let signals = tree::supervisor_signals()?;
    let started = prepare(command).and_then(|mut command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::start_apart(&mut command);
        Tree::start(&mut command).map_err(Unstartable::from)
    });
    let (tree, mut child) = match started {
        Ok(started) => started,
        Err(unstartable) => return refuse(channel, &unstartable),
    };
    let pid = u32::try_from(tree.main().as_raw_nonzero().get()).unwrap_or_default();
    // A launcher that is gone already is noticed by the first turn.
    drop(channel.send(Kind::Started, &pid.to_be_bytes()));
    let stdin = child.stdin.take().filter(|_| with_stdin);
    if let Some(stdin) = &stdin {
        rustix::io::ioctl_fionbio(stdin, true)?;
    }
    let mut launch = Launch {
        line: Line::Open(channel),
        tree,
        signals,
        serve: Some(serve),
        stdin,
        stdin_held: Vec::new(),
        stdin_ended: false,
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
        watch: Watch::new(Instant::now()),
        buffer: Vec::new(),
    };
    while launch.turn()? {}
    Ok(())
}

/// The state of a running launch.
struct Launch {
    line: Line,
    tree: Tree,
    signals: Signals,
    /// The serving process; none once it is known to be gone.
    serve: Option<OwnedFd>,
    stdin: Option<ChildStdin>,
    stdin_held: Vec<u8>,
    stdin_ended: bool,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    watch: Watch,
    buffer: Vec<u8>,
}

/// How we stand with the launcher.
enum Line {
    /// It listens.
    Open(Channel),
    /// It has been told the exit; we wait for it to hang up, however long it is stopped: closing first could make the kernel
    /// throw away what it has not read yet.
    Farewell(Channel),
    /// It is gone.
    Closed,
}

/// What one turn waits for.
#[derive(Default)]
struct Tokens {
    line: Option<Token>,
    stdin: Option<Token>,
    stdout: Option<Token>,
    stderr: Option<Token>,
    signals: Option<Token>,
    serve: Option<Token>,
}

impl Launch {
    /// Waits for something to happen and deals with it. False when all is over.
    fn turn(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        self.tree.reap();
        self.tell_exit(now);
        let due = self.tree.advance(now);
        if self.tree.is_gone() && matches!(self.line, Line::Closed) {
            return Ok(false);
        }
        let due = earlier(due, self.look_at_line());
        let (tokens, ready) = self.wait(now, due)?;
        if ready.any(tokens.signals) {
            self.take_signals();
        }
        if ready.any(tokens.serve) {
            self.serve = None;
            self.stop();
        }
        if ready.any(tokens.line) {
            self.exchange();
        }
        if ready.any(tokens.stdin) {
            self.feed();
        }
        if ready.any(tokens.stdout) {
            self.pass_output(Kind::Stdout);
        }
        if ready.any(tokens.stderr) {
            self.pass_output(Kind::Stderr);
        }
        self.look_around();
        Ok(true)
    }

    fn wait(&self, now: Instant, due: Option<Duration>) -> io::Result<(Tokens, Ready)> {
        let mut set = PollSet::default();
        let mut tokens =
            Tokens { signals: Some(set.readable(self.signals.as_fd())), ..Tokens::default() };
        tokens.serve = self.serve.as_ref().map(|serve| set.readable(serve.as_fd()));
        let mut limit = due;
        match &self.line {
            Line::Open(channel) => {
                tokens.line = Some(set.add(channel.as_fd(), interest(channel)));
                // Output is read only when all earlier output is on its way: a slow reader slows the command, and we hold one frame.
                if !channel.wants_write() {
                    tokens.stdout = self.stdout.as_ref().map(|pipe| set.readable(pipe.as_fd()));
                    tokens.stderr = self.stderr.as_ref().map(|pipe| set.readable(pipe.as_fd()));
                }
                if !self.stdin_held.is_empty() {
                    tokens.stdin = self.stdin.as_ref().map(|pipe| set.writable(pipe.as_fd()));
                }
                if self.tree.outcome().is_none() {
                    limit = earlier(limit, Some(self.watch.due_in(now)));
                }
            }
            Line::Farewell(channel) => {
                tokens.line = Some(set.add(channel.as_fd(), interest(channel)));
            }
            Line::Closed => {}
        }
        Ok((tokens, set.wait(limit)?))
    }

    /// Hangs up when the launcher's machine is gone; otherwise gives how soon to look again.
    fn look_at_line(&mut self) -> Option<Duration> {
        let (Line::Open(channel) | Line::Farewell(channel)) = &self.line else {
            return None;
        };
        channel.look_again_in().unwrap_or_else(|_| {
            self.hung_up();
            Some(Duration::ZERO)
        })
    }

    /// Moves bytes to and from the launcher.
    fn exchange(&mut self) {
        let exchanged = match &mut self.line {
            Line::Open(channel) | Line::Farewell(channel) => {
                channel.flush().and_then(|()| channel.receive())
            }
            Line::Closed => return,
        };
        match exchanged {
            Ok(()) => self.take_frames(),
            Err(_) => self.hung_up(),
        }
    }

    fn take_frames(&mut self) {
        loop {
            let frame = match &mut self.line {
                Line::Open(channel) | Line::Farewell(channel) => channel.next_frame(),
                Line::Closed => return,
            };
            match frame {
                Ok(Some(frame)) if matches!(self.line, Line::Open(_)) => self.take_frame(&frame),
                Ok(Some(Frame { kind: Kind::Taken, .. })) => self.line = Line::Closed,
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(fault) => {
                    log::line(format_args!("a launcher broke the protocol: {fault}"));
                    return self.hung_up();
                }
            }
        }
    }

    fn take_frame(&mut self, frame: &Frame) {
        match frame.kind {
            Kind::Stdin if self.stdin_held.len() + frame.payload.len() <= STDIN_CREDIT as usize => {
                self.stdin_held.extend(&frame.payload);
                self.feed();
            }
            Kind::StdinEnd => {
                self.stdin_ended = true;
                self.feed();
            }
            Kind::Signal => {
                let wanted = frame.byte().and_then(|number| Signal::from_named_raw(number.into()));
                if let Some(signal) = wanted.filter(|signal| PASSED_ON.contains(signal)) {
                    self.tree.signal(signal);
                }
            }
            // Without a reader the command gets SIGPIPE when it next writes, as it would on the launcher's own machine.
            Kind::OutputClosed => match frame.byte() {
                Some(1) => self.stdout = None,
                Some(2) => self.stderr = None,
                Some(_) | None => {}
            },
            other => {
                log::line(format_args!("a launcher broke the protocol: {other:?} out of order"));
                self.hung_up();
            }
        }
    }

    /// Passes held input to the command, grants as much again, and closes the pipe after the last byte.
    fn feed(&mut self) {
        let mut passed = 0;
        match &self.stdin {
            Some(pipe) if !self.stdin_held.is_empty() => {
                match rustix::io::write(pipe, &self.stdin_held) {
                    Ok(written) => {
                        self.stdin_held.drain(..written);
                        passed = written;
                    }
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    // The command does not read any more: what comes is swallowed, as sshd does.
                    Err(_) => self.stdin = None,
                }
            }
            Some(_) | None => {}
        }
        if self.stdin.is_none() {
            passed += self.stdin_held.len();
            self.stdin_held.clear();
        }
        if self.stdin_ended && self.stdin_held.is_empty() {
            self.stdin = None;
        }
        if passed > 0 && !self.stdin_ended {
            let credit = u32::try_from(passed).unwrap_or(STDIN_CREDIT);
            self.send(Kind::Credit, &credit.to_be_bytes());
        }
    }

    fn pass_output(&mut self, kind: Kind) {
        let pipe = if kind == Kind::Stdout { &mut self.stdout } else { &mut self.stderr };
        let Some(open) = pipe.as_ref() else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve_exact(LONGEST_PAYLOAD);
        match rustix::io::read(open, rustix::buffer::spare_capacity(&mut buffer)) {
            Ok(0) => *pipe = None,
            // The allocator may have given more room than asked for.
            Ok(_) => buffer.chunks(LONGEST_PAYLOAD).for_each(|piece| self.send(kind, piece)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => *pipe = None,
        }
        self.buffer = buffer;
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::CHILD => self.tree.reap(),
                // Only the serving process sends these, and it means the host.
                Signal::TERM | Signal::INT | Signal::HUP => self.stop(),
                _ => {}
            }
        }
    }

    /// The host itself ends: so does the command, and the launcher is told that it was not the command's own doing.
    fn stop(&mut self) {
        if !self.tree.is_ending() {
            self.send(Kind::Stopping, &[]);
            self.tree.end(Instant::now());
        }
    }

    /// The launcher is gone. Unless it took the exit, everything it started goes too: when mpirun is killed, its daemons
    /// may exit on their own before we hear of it, and what their ranks left running must not live on.
    fn hung_up(&mut self) {
        if !matches!(self.line, Line::Closed) {
            self.tree.end(Instant::now());
        }
        self.line = Line::Closed;
        (self.stdin, self.stdout, self.stderr) = (None, None, None);
    }

    /// Tells the exit once the command has ended and all its output has been passed on.
    fn tell_exit(&mut self, now: Instant) {
        let (Some(outcome), None, None) = (self.tree.outcome(), &self.stdout, &self.stderr) else {
            return;
        };
        if !matches!(self.line, Line::Open(_)) {
            return;
        }
        match outcome {
            Outcome::Exited(code) => self.send(Kind::Exited, &[code]),
            Outcome::Killed(signal) => {
                self.send(Kind::Killed, &[signal]);
                // A command that was shot did not mean to leave anything running.
                self.tree.end(now);
            }
        }
        self.line = match std::mem::replace(&mut self.line, Line::Closed) {
            Line::Open(channel) | Line::Farewell(channel) => Line::Farewell(channel),
            Line::Closed => Line::Closed,
        };
    }

    /// Looks for ranks from time to time.
    fn look_around(&mut self) {
        if !matches!(self.line, Line::Open(_)) || self.tree.outcome().is_some() {
            return;
        }
        let Some(Changes { appeared, gone }) = self.watch.advance(Instant::now()) else {
            return;
        };
        let events =
            appeared.into_iter().map(Event::Rank).chain(gone.into_iter().map(Event::RankGone));
        for event in events {
            if let Ok(text) = serde_json::to_vec(&event) {
                self.send(Kind::Rank, &text);
            }
        }
        if self.watch.is_settled() {
            // Until the next look we only wait.
            sys::release_code();
        }
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) {
        if let Line::Open(channel) = &mut self.line
            && channel.send(kind, payload).and_then(|()| channel.flush()).is_err()
        {
            self.hung_up();
        }
    }
}

fn interest(channel: &Channel) -> rustix::event::PollFlags {
    use rustix::event::PollFlags;
    if channel.wants_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
}

/// Why a command could not be started: the exit code shells give for it, and words.
struct Unstartable {
    code: u8,
    reason: String,
}

impl From<io::Error> for Unstartable {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        Self { code, reason: format!("cannot start the command: {error}") }
    }
}

/// As sshd does: the shell reads the text. Without a shell, the form that launchers send is read here.
fn prepare(text: &[u8]) -> Result<Command, Unstartable> {
    const SHELL: &str = "/bin/sh";
    if fs::exists(SHELL).unwrap_or(false) {
        let mut command = Command::new(SHELL);
        if !text.is_empty() {
            command.arg("-c").arg(std::ffi::OsStr::from_bytes(text));
        }
        return Ok(command);
    }
    let unreadable = |reason: String| Unstartable { code: 127, reason };
    let text = std::str::from_utf8(text).map_err(|_| {
        unreadable("there is no shell on this host to read a command that is not UTF-8".to_owned())
    })?;
    let simple = shell_words::read(text, |name| std::env::var(name).ok())
        .map_err(|error| unreadable(error.to_string()))?;
    let (program, arguments) =
        simple.arguments.split_first().ok_or_else(|| unreadable("no command".to_owned()))?;
    let search = simple.variables.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
    let mut command = Command::new(find_program(program, search.as_deref().unwrap_or_default()));
    command.args(arguments).envs(&simple.variables);
    Ok(command)
}

fn find_program(program: &str, search: &str) -> std::path::PathBuf {
    if program.contains('/') {
        return program.into();
    }
    let found =
        search.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| program.into())
}

/// Says that nothing was started, and hangs up.
fn refuse(mut channel: Channel, unstartable: &Unstartable) -> io::Result<()> {
    let payload = [&[unstartable.code], unstartable.reason.as_bytes()].concat();
    drop(channel.send(Kind::Refused, payload.get(..LONGEST_PAYLOAD).unwrap_or(&payload)));
    linger(channel)
}

/// Sends what waits and gives the other side the time to read it.
pub(crate) fn linger(mut channel: Channel) -> io::Result<()> {
    let end = Instant::now() + FAREWELL;
    while channel.flush().is_ok() && Instant::now() < end {
        if !channel.wants_write() {
            channel.finish();
        }
        let mut set = PollSet::default();
        let token = set.add(channel.as_fd(), interest(&channel));
        let ready = set.wait(Some(until(end, Instant::now())))?;
        if ready.any(Some(token)) && channel.receive().is_err() {
            return Ok(());
        }
        while let Ok(Some(_)) = channel.next_frame() {}
    }
    Ok(())
}
