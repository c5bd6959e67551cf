//! The launcher's start: waits for its own host table and for every host, writes the hostfiles, then runs the command under supervision.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::echo::Echo;
use crate::foreground;
use crate::hostfile::{By, Family, hostfile};
use crate::keys::{KeyError, SecretKey};
use crate::last_words::LastWords;
use crate::log;
use crate::losses::{self, Loss};
use crate::polling::{PollSet, until};
use crate::probe::{ProbeError, Probes};
use crate::proof::{self, Event, Proof};
use crate::settings::Settings;
use crate::sys::{self, Signals};
use crate::table::{HostTable, TableError};
use crate::tree::PASSED_ON;

/// The exit code of a command that could not be run, or whose success cannot be believed.
pub(crate) const NOT_RUN: u8 = 125;

/// After this long somebody wants to know what is being waited for, and again after each longer silence.
const FIRST_WORD: Duration = Duration::from_secs(5);
const LATER_WORD: Duration = Duration::from_secs(30);

/// What shells take for the path when nobody set it.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How often the table is looked at until it is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often it is looked at while hosts are waited for: one that had to begin anew may have another address.
const LOOK_FOR_CHANGES: Duration = Duration::from_secs(1);

/// What `ready` is told by its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The table must carry this mark, when given.
    pub(crate) identity: Option<String>,
    /// The table must be of this attempt, when given.
    pub(crate) attempt: Option<u32>,
    /// The table must be of this epoch, when given.
    pub(crate) epoch: Option<u32>,
    /// Where the Open MPI hostfile goes.
    pub(crate) hostfile: Option<PathBuf>,
    /// Where the MPICH and Intel MPI hostfile goes.
    pub(crate) hydra_hostfile: Option<PathBuf>,
    /// Where the list of hosts' names goes.
    pub(crate) bare_hostfile: Option<PathBuf>,
    /// What hosts are called in them.
    pub(crate) by: By,
    /// Whether each host is asked only once: who knows that all were up need not wait for one that has ended since.
    pub(crate) asks_once: bool,
    /// When to give up.
    pub(crate) timeout: Duration,
    /// What this host is called in the launch proof.
    pub(crate) name: String,
    /// A folder to be put in front of the command's `PATH`, so that its scripts find our `ssh`.
    pub(crate) path: Option<PathBuf>,
    /// Where to leave a message when all is over: where ranks ran, and what the command said last.
    pub(crate) last_words: Option<PathBuf>,
    /// Whether the command ends when our parent does.
    pub(crate) watch_parent: bool,
    /// What to run when all is ready.
    pub(crate) command: Vec<OsString>,
}

/// Why the command was not run, or its success is not believed.
#[derive(Debug, Error)]
pub(crate) enum ReadyError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error("gave up after {} s: {waiting_for}", after.as_secs())]
    TimedOut { after: Duration, waiting_for: String },
    #[error("cannot write the hostfile {}", path.display())]
    Hostfile { path: PathBuf, source: io::Error },
    #[error("cannot run {program}")]
    Command { program: String, source: io::Error },
    #[error("the command ended with 0, but {host} was lost while it ran: {reason}")]
    Lost { host: String, reason: String },
    #[error("told to stop while waiting")]
    Stopped(u8),
    #[error("a system call failed")]
    System(#[from] io::Error),
}

impl ReadyError {
    /// The exit code to give.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Command { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Command { .. } => 126,
            Self::Stopped(code) => *code,
            _ => NOT_RUN,
        }
    }
}

/// Waits, writes, runs; gives the command's exit code, or 0 when there is no command. Last words are left either way.
pub(crate) fn ready(settings: &Settings, wish: &Wish) -> Result<u8, ReadyError> {
    let mut words = LastWords::default();
    let result = carry_out(settings, wish, &mut words);
    if let Err(error) = &result {
        words.lines.push(format!("unisono-agent: {}", log::chain(error)));
    }
    if let Some(file) = wish.last_words.as_deref().filter(|_| !wish.command.is_empty())
        && let Err(error) = words.leave(file)
    {
        log::line(format_args!("cannot leave a message in {}: {error}", file.display()));
    }
    result
}

fn carry_out(settings: &Settings, wish: &Wish, words: &mut LastWords) -> Result<u8, ReadyError> {
    let parent = rustix::process::getppid().filter(|_| wish.watch_parent);
    let parent = parent.map(foreground::watch_process).transpose()?;
    let key = SecretKey::read(&settings.launcher_key)?;
    let mut patience = Patience::new(wish.timeout)?;
    let table = await_table(settings, wish, &mut patience)?;
    let (table, own_address) = await_hosts(settings, table, wish, &key, &mut patience)?;
    drop((key, patience));
    for (path, family, by) in [
        (&wish.hostfile, Family::OpenMpi, wish.by),
        (&wish.hydra_hostfile, Family::Hydra, wish.by),
        (&wish.bare_hostfile, Family::Bare, By::Name),
    ] {
        if let Some(path) = path {
            replace(path, hostfile(&table, family, by).as_bytes())
                .map_err(|source| ReadyError::Hostfile { path: path.clone(), source })?;
        }
    }
    let Some((program, arguments)) = wish.command.split_first() else {
        return Ok(0);
    };
    let proof_file = settings.proof.as_deref();
    let proof_from = proof_file.and_then(|file| fs::metadata(file).ok()).map_or(0, |it| it.len());
    let mut command = Command::new(program);
    command.args(arguments).envs(interface_variables(own_address));
    let own = table.hosts.iter().find(|host| host.name == wish.name).map(|host| host.address);
    command.envs(table.variables_at(own.or(own_address)));
    if let Ok(folder) = std::env::current_dir() {
        command.envs(table.own_folder.iter().map(|name| (name, &folder)));
    }
    command.envs(wish.path.as_deref().map(|folder| ("PATH", path_from(folder))));
    let own_streams = rustix::termios::isatty(rustix::stdio::stdout());
    let heard = wish.last_words.is_some() && !own_streams;
    let echo = heard.then(|| Echo::of(&mut command)).transpose()?;
    let proof = Proof::new(proof_file, &wish.name);
    let ran = foreground::run(&mut command, parent, &proof, echo).map_err(|source| {
        ReadyError::Command { program: program.to_string_lossy().into_owned(), source }
    })?;
    let records = proof_file.map(|file| proof::read(file, proof_from).unwrap_or_default());
    let records = records.unwrap_or_default();
    *words = LastWords::of(&records, &table, &wish.name).with_lines(ran.last_lines);
    match (ran.outcome.code(), losses::first(&records, &ran.killed)) {
        (0, Some(Loss { host, reason, is_told })) => {
            if !is_told {
                Proof::new(proof_file, &host).tell(Event::Lost { reason: reason.clone() });
            }
            Err(ReadyError::Lost { host, reason })
        }
        (code, _) => Ok(code),
    }
}

/// How long we still wait, who can interrupt it, and when to say something.
struct Patience {
    signals: Signals,
    timeout: Duration,
    give_up_at: Instant,
    speak_at: Instant,
}

impl Patience {
    fn new(timeout: Duration) -> io::Result<Self> {
        let now = Instant::now();
        // As process 1 nothing ends us but what we listen for.
        let signals = Signals::collect(&PASSED_ON)?;
        Ok(Self { signals, timeout, give_up_at: now + timeout, speak_at: now + FIRST_WORD })
    }

    /// Checks signals and time; says what is being waited for when it is time to.
    fn check(&mut self, waiting_for: impl Fn() -> String) -> Result<(), ReadyError> {
        use rustix::process::Signal;
        while let Some(signal) = self.signals.next() {
            if matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT) {
                let number = u8::try_from(signal.as_raw()).unwrap_or_default();
                return Err(ReadyError::Stopped(128u8.saturating_add(number)));
            }
        }
        let now = Instant::now();
        if now >= self.give_up_at {
            return Err(ReadyError::TimedOut { after: self.timeout, waiting_for: waiting_for() });
        }
        if now >= self.speak_at {
            log::line(format_args!("{}", waiting_for()));
            self.speak_at = now + LATER_WORD;
        }
        Ok(())
    }

    /// Time until something must be done even if nothing happens.
    fn limit(&self) -> Duration {
        until(self.give_up_at.min(self.speak_at), Instant::now())
    }
}

fn await_table(
    settings: &Settings,
    wish: &Wish,
    patience: &mut Patience,
) -> Result<HostTable, ReadyError> {
    let file = &settings.table;
    loop {
        let why = match HostTable::read(file, &settings.host_keys) {
            Ok(table) => match foreign(&table, wish) {
                None => return Ok(table),
                Some(why) => why,
            },
            Err(TableError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                "it is not there yet".to_owned()
            }
            Err(error) => log::chain(&error),
        };
        patience.check(|| format!("waiting for the host table {}: {why}", file.display()))?;
        let mut set = PollSet::default();
        set.readable(patience.signals.as_fd());
        set.wait(Some(LOOK_AGAIN.min(patience.limit())))?;
    }
}

/// Why a table is not the one we wait for.
fn foreign(table: &HostTable, wish: &Wish) -> Option<String> {
    let differs = |what: &str, there: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display| {
        Some(format!("the one there has {what} {there}, ours is {wanted}"))
    };
    match (&wish.identity, wish.attempt, wish.epoch) {
        (Some(wanted), _, _) if *wanted != table.identity => {
            differs("identity", &table.identity, wanted)
        }
        (_, Some(wanted), _) if wanted != table.attempt => {
            differs("attempt", &table.attempt, &wanted)
        }
        (_, _, Some(wanted)) if wanted != table.epoch => differs("epoch", &table.epoch, &wanted),
        _ => None,
    }
}

/// Shakes hands with all; gives the table by which they were found and our own address towards them.
fn await_hosts(
    settings: &Settings,
    mut table: HostTable,
    wish: &Wish,
    key: &SecretKey,
    patience: &mut Patience,
) -> Result<(HostTable, Option<IpAddr>), ReadyError> {
    let ask =
        |table: &HostTable| Probes::new(table, &wish.name, key, !wish.asks_once, Instant::now());
    let mut probes = ask(&table)?;
    let mut look_at = Instant::now() + LOOK_FOR_CHANGES;
    while !probes.is_done() {
        patience.check(|| format!("waiting for {}", probes.waiting_for()))?;
        let now = Instant::now();
        if now >= look_at {
            look_at = now + LOOK_FOR_CHANGES;
            // One that cannot be read is being replaced.
            if let Ok(newer) = HostTable::read(&settings.table, &settings.host_keys)
                && newer != table
                && foreign(&newer, wish).is_none()
            {
                table = newer;
                probes = ask(&table)?;
            }
        }
        let limit = patience.limit().min(until(look_at, now));
        probes.advance(limit, patience.signals.as_fd())?;
    }
    Ok((table, probes.own_address))
}

/// MPICH and Intel MPI tell the workers the launcher's name, which nobody may be able to resolve, unless they are told an interface.
fn interface_variables(own_address: Option<IpAddr>) -> Vec<(&'static str, String)> {
    let Some(interface) =
        own_address.filter(|address| !address.is_loopback()).and_then(sys::interface_of)
    else {
        return Vec::new();
    };
    ["HYDRA_IFACE", "I_MPI_HYDRA_IFACE"]
        .into_iter()
        .filter(|name| std::env::var_os(name).is_none())
        .map(|name| (name, interface.clone()))
        .collect()
}

/// The `PATH` with a folder in front of it.
fn path_from(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into()));
    path
}

/// Replaces a file so that a reader sees the old or the new one, never half of it.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    fs::write(&beside, content)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}
