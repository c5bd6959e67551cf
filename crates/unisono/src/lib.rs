//! The program: the command line enters, a report on standard output and an exit code leave.
//!
//! `args` is what was typed, `settings` everything that files, environment and flags say, `commands` one file per verb,
//! `input` the only place that opens job files, `report` the only place that knows how things look, `exit` every code.

mod args;
mod commands;
mod error;
mod exit;
mod input;
mod job_file;
mod report;
mod settings;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::Arguments;
use crate::report::Console;
use crate::settings::{Settings, World};

/// What every command works with.
struct Context {
    settings: Settings,
    console: Console,
}

/// Answers by the name it is called by: as the agent, or as itself.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let called = words.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    match called {
        Some("unisono-agent" | "unisono-rsh" | "rsh" | "ssh") => unisono_agent::main(&words),
        Some(_) | None => run_as_unisono(words),
    }
}

/// Parses, runs, and says how it ended.
fn run_as_unisono(words: Vec<OsString>) -> ExitCode {
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
    let mut context = Context { settings, console };
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

fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut matches = command().try_get_matches_from(words)?;
    Arguments::from_arg_matches_mut(&mut matches)
}
