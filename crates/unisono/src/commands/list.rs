//! `unisono list`: the runs of this machine enter, a table leaves.

use clap::Args;
use unisono_local::RunDirectory;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Output, RunView};

/// List the runs of this machine, the newest last.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only runs of this experiment.
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    /// How to print the list.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Error> {
    let runs = RunDirectory::all(&context.runs_folder()?)?;
    let views: Vec<RunView> = runs
        .iter()
        .filter(|(_, record)| args.experiment.is_none() || record.experiment == args.experiment)
        .map(|(directory, record)| RunView::of(directory, record))
        .collect();
    context.console.run_list(&views, args.output)?;
    Ok(Exit::Fine)
}
