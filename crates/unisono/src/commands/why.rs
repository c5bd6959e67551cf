//! `unisono why`: one run enters; why it waits, why it failed or how it ended leaves.

use clap::Args;

use super::place::{EngineArgs, Found, find};
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Output, WhyView};

/// Tell why a run waits, or why it failed; also from another terminal, and after a crash.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: EngineArgs,
    /// How to print it.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

pub(crate) fn run(args: &WhyArgs, context: &mut Context) -> Result<Exit, Error> {
    let view = match find(args.run.as_deref(), args.place, context)? {
        Found::Here(directory, record) => WhyView::of(&directory, &record),
        #[cfg(feature = "kubernetes")]
        Found::InCluster(_, job) => WhyView::in_cluster(&job),
    };
    context.console.run_why(&view, args.output)?;
    Ok(Exit::Fine)
}
