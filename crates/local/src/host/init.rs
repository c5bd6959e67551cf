//! Process 1 of a host: makes its root directory and becomes its command.

use std::convert::Infallible;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};
use unisono_agent::processes;

use super::{HostSpec, Isolation, SetUpError, io_step, limits, root, step};
use crate::open_files;

/// Becomes the host; ends this process when it cannot.
pub(super) fn become_host(spec: &HostSpec, keeper: u32) -> ! {
    match try_to_become(spec, keeper) {
        Ok(never) => match never {},
        Err(error) => super::report(&error),
    }
    // What the keeper holds for its host is the keeper's to let go of.
    processes::exit_now(super::COULD_NOT_START)
}

fn try_to_become(spec: &HostSpec, keeper: u32) -> Result<Infallible, SetUpError> {
    step(set_parent_process_death_signal(Some(Signal::KILL)), "tie process 1 to its keeper")?;
    // The keeper may have gone before it was tied to; the machine's /proc, still mounted here, tells.
    io_step(std::fs::metadata(format!("/proc/{keeper}/stat")), "find the keeper alive")?;
    if let Some(bounds) = &spec.bounds {
        io_step(limits::enter(bounds), "keep the host within its limits")?;
    }
    if let Some(before) = spec.open_files {
        step(open_files::lower(before), "limit the number of open files")?;
    }
    if spec.isolation != Isolation::Processes {
        root::enter(spec)?;
    }
    let (program, arguments) = spec
        .argv
        .split_first()
        .map_or(("", [].as_slice()), |(program, rest)| (program.as_str(), rest));
    let variables = spec.environment.iter().map(|(name, value)| (name, value));
    let error = Command::new(program)
        .args(arguments)
        .current_dir(&spec.working_dir)
        .env_clear()
        .envs(variables)
        .exec();
    Err(SetUpError::Io(format!("run {program} in {}", spec.working_dir.display()), error))
}
