//! `unisono status`: one run enters, where it is in its life and where its ranks ran leaves.

use clap::Args;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Output, RunView};

/// Tell where a run is in its life, and which hosts were reached when.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// How to print it.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

pub(crate) fn run(args: &StatusArgs, context: &mut Context) -> Result<Exit, Error> {
    let (directory, record) = context.find_run(args.run.as_deref())?;
    let view = RunView::of(&directory, &record);
    context.console.run_status(&view, &directory, args.output)?;
    Ok(Exit::Fine)
}
