//! `unisono man`: manual pages leave.

use std::path::PathBuf;

use clap::Args;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Print the manual page, or write the pages of all commands.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write one page for each command into this folder.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  unisono man | man -l -
  unisono man --folder ~/.local/share/man/man1";

pub(crate) fn run(args: &ManArgs, context: &mut Context) -> Result<Exit, Error> {
    let command = crate::command();
    match &args.folder {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            context.console.data(&String::from_utf8_lossy(&page))?;
        }
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .map_err(|source| Error::Unwritable { path: folder.clone(), source })?,
    }
    Ok(Exit::Fine)
}
