//! `unisono completions`: the name of a shell enters, its completion script leaves.

use clap::Args;
use clap_complete::Shell;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Print a shell's completion script.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  unisono completions bash > ~/.local/share/bash-completion/completions/unisono
  unisono completions zsh > ~/.zfunc/_unisono
  unisono completions fish > ~/.config/fish/completions/unisono.fish";

pub(crate) fn run(args: &CompletionsArgs, context: &mut Context) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "unisono", &mut script);
    context.console.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Fine)
}
