//! `unisono config`: settings enter, a table of their values and origins leaves.

use clap::{Args, Subcommand};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::Output;

/// Tell about settings.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Show(ShowArgs),
}

/// Show every setting, its value, and where the value came from.
///
/// Settings are read from ~/.config/unisono/config.toml, then ./unisono.toml, then variables named UNISONO_*, then flags.
/// Later ones win.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct ShowArgs {
    /// How to print the result.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  unisono config show
  UNISONO_GPUS_PER_NODE=4 unisono config show";

pub(crate) fn run(args: &ConfigArgs, context: &mut Context) -> Result<Exit, Error> {
    let ConfigCommand::Show(ShowArgs { output }) = &args.command;
    context.console.settings(&context.settings, *output)?;
    Ok(Exit::Fine)
}
