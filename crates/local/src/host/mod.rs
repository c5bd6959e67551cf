//! One isolated host: a description goes in, a process that is the host comes out.
//!
//! Hosts are set up by a re-executed, single-threaded process, never by a fork inside a threaded one:
//! the *keeper* makes the namespaces and waits; its copy, the *init*, is process 1 inside, makes the root directory and becomes the
//! host's command. When the keeper ends, for whatever reason, the kernel ends the host with everything in it.

mod init;
mod keeper;
pub(crate) mod limits;
mod namespaces;
mod network;
mod plain;
mod root;
mod spec;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

pub(crate) use keeper::exit_code;
pub use limits::{Bounds, ControlGroup};
pub use network::{Cable, Hub};
pub use spec::{HostFile, HostSpec, Isolation};

/// The first argument by which the program knows that it is to be a host's keeper.
const KEEPER: &str = "__unisono-host-keeper";

/// The first argument by which the program knows that it is to hold a job's private network.
const HUB: &str = "__unisono-network-hub";

/// The first argument by which the program knows that it is to find out what the machine allows.
const TRIAL: &str = "__unisono-host-trial";

/// The command that starts the host described in a file: this same program, as its keeper.
///
/// Its standard streams become those of the host's command; it ends as that command ends.
pub fn command(program: &Path, spec: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(KEEPER).arg(spec);
    command
}

/// Whether the machine allows hosts that are kept apart in this way. The folder is only mounted on, unseen by anybody.
pub fn is_possible(program: &Path, isolation: Isolation, folder: &Path) -> bool {
    let mut trial = Command::new(program);
    trial.arg(TRIAL).arg(folder).arg(isolation.name());
    // Why it is refused is of no use to anybody: what is done instead is told.
    trial.stderr(std::process::Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}

/// Becomes a part of a host when the arguments say so; else returns at once.
///
/// A program that starts hosts calls this first thing, while it has one thread.
pub fn take_over(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> Option<i32> {
    let _program = arguments.next();
    let role = arguments.next()?;
    let path = arguments.next()?;
    let path = Path::new(path.as_ref());
    let word = arguments.next();
    let isolation = |text: Option<&OsStr>| text?.to_str().and_then(Isolation::named);
    let outcome = match role.as_ref().to_str()? {
        KEEPER => keeper::keep(path),
        HUB => network::be_hub(isolation(Some(path.as_os_str()))?),
        TRIAL => namespaces::try_out(isolation(word.as_ref().map(AsRef::as_ref))?, path),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|error| {
        report(&error);
        COULD_NOT_START
    }))
}

/// What a host ends with when it could not be set up; a shell's word for "cannot execute".
pub const COULD_NOT_START: i32 = 125;

/// Why a host could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    #[error("read the host's description {0}")]
    Spec(String, #[source] std::io::Error),
    #[error("{0}")]
    Step(String, #[source] rustix::io::Errno),
    #[error("{0}")]
    Io(String, #[source] std::io::Error),
}

/// Names the step that failed.
pub(crate) fn step<T>(
    result: rustix::io::Result<T>,
    what: impl Into<String>,
) -> Result<T, SetUpError> {
    result.map_err(|error| SetUpError::Step(what.into(), error))
}

/// Names the step that failed.
pub(crate) fn io_step<T>(
    result: std::io::Result<T>,
    what: impl Into<String>,
) -> Result<T, SetUpError> {
    result.map_err(|error| SetUpError::Io(what.into(), error))
}

fn report(error: &SetUpError) {
    use std::error::Error as _;
    use std::io::Write as _;
    let source = error.source().map(|it| format!(": {it}")).unwrap_or_default();
    // Nobody is left to be told when even this fails.
    let _told = writeln!(std::io::stderr(), "unisono: cannot start the host: {error}{source}");
}
