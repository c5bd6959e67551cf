//! `unisono status`: one run enters, where it is in its life and where its ranks ran leaves.

use clap::Args;

use super::place::{EngineArgs, Found, find};
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Output, RunView, proof_of};

/// Tell where a run is in its life, and which hosts were reached when.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: EngineArgs,
    /// How to print it.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

pub(crate) fn run(args: &StatusArgs, context: &mut Context) -> Result<Exit, Error> {
    let (view, hosts) = match find(args.run.as_deref(), args.place, context)? {
        Found::Here(directory, record) => (RunView::of(&directory, &record), proof_of(&directory)),
        #[cfg(feature = "kubernetes")]
        Found::InCluster(session, job) => {
            (RunView::in_cluster(&job), session.run(|cluster| cluster.hosts(&job))?)
        }
    };
    context.console.run_status(&view, &hosts, args.output)?;
    Ok(Exit::Fine)
}
