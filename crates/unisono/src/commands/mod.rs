//! The verbs, one file each: `<Verb>Args` is what can be typed, `run` does it.

mod check;
mod config;
mod explain;

use clap::Subcommand;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::CheckArgs),
    Config(config::ConfigArgs),
    Explain(explain::ExplainArgs),
}

/// Does it.
pub(crate) fn run(command: &Command, context: &mut Context) -> Result<Exit, Error> {
    match command {
        Command::Check(args) => check::run(args, context),
        Command::Config(args) => config::run(args, context),
        Command::Explain(args) => explain::run(args, context),
    }
}
