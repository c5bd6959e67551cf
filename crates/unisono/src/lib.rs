//! The program: the command line enters, a report on standard output and an exit code leave.
//!
//! `args` is what was typed, `settings` everything that files, environment and flags say, `commands` one file per verb,
//! `input` the only place that opens job files, `report` the only place that knows how things look, `exit` every code.

mod args;
#[cfg(feature = "kubernetes")]
mod cluster;
mod commands;
mod error;
mod exit;
mod input;
mod job_file;
mod report;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use unisono_local::{RunDirectory, RunRecord};

use crate::args::Arguments;
use crate::error::Error;
use crate::report::Console;
use crate::settings::{Settings, World};

/// What every command works with.
struct Context {
    settings: Settings,
    world: World,
    console: Console,
}

impl Context {
    /// Where the runs of this machine are kept.
    fn runs_folder(&self) -> Result<PathBuf, Error> {
        let missing = || Error::usage("no home folder is known", "set HOME or XDG_STATE_HOME");
        self.world.runs_folder().ok_or_else(missing)
    }

    /// The run of that id or beginning of one, else the newest of a job of that name; the newest of all without a name.
    fn find_run(&self, name: Option<&str>) -> Result<(RunDirectory, RunRecord), Error> {
        let mut runs = RunDirectory::all(&self.runs_folder()?)?;
        let fits = |record: &RunRecord| {
            name.is_none_or(|name| record.id.starts_with(name) || record.job == name)
        };
        match runs.iter().rposition(|(_, record)| fits(record)) {
            Some(at) => Ok(runs.swap_remove(at)),
            None => Err(Error::usage(
                "there is no such run",
                "`unisono list` shows the runs of this machine",
            )),
        }
    }
}

/// Does the work of another program when called as one: the agent, `ssh`, `mpirun`, or a part of a local host.
///
/// Comes first of all, while the process has one thread.
pub fn answer_as_another(arguments: &[OsString]) -> Option<ExitCode> {
    let code = |code: i32| ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    match name {
        "unisono-agent" | "unisono-rsh" | "unisono-rank" | "rsh" | "ssh" => {
            Some(unisono_agent::main(arguments))
        }
        _ => unisono_local::shim::take_over(arguments)
            .or_else(|| unisono_local::host::take_over(arguments.iter()))
            .map(code),
    }
}

/// Parses, runs, and says how it ended.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let arguments = match parse(words) {
        Ok(arguments) => arguments,
        Err(error) => return report::usage(&error).into(),
    };
    let world = World::of_this_process();
    let (settings, warnings) = match Settings::load(&world, &arguments.settings) {
        Ok(loaded) => loaded,
        Err(error) => {
            return Console::new(arguments.settings.color.unwrap_or_default())
                .fail(&error.into())
                .into();
        }
    };
    let console = Console::new(settings.color.value);
    let mut context = Context { settings, world, console };
    context.console.warn(&warnings);
    match commands::run(&arguments.command, &mut context) {
        Ok(exit) => exit.into(),
        Err(error) => context.console.fail(&error).into(),
    }
}

/// The command line's definition, from which help, completions, man pages and the command reference are made.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Every fault, warning and note there is, for the reference.
pub fn codes() -> impl Iterator<Item = &'static unisono_job::Code> {
    commands::codes()
}

/// Takes the words apart. A program that is called `ks` does what `unisono ks` does.
fn parse(mut words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let called = words.first().and_then(|program| Path::new(program).file_name());
    if called.is_some_and(|name| name == "ks") {
        words.insert(1, "ks".into());
    }
    let mut matches = command().try_get_matches_from(words)?;
    Arguments::from_arg_matches_mut(&mut matches)
}
