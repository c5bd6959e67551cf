//! `unisono list`: the runs of this machine, or the jobs of a cluster, enter, a table leaves.

use clap::Args;
use unisono_local::RunDirectory;

use super::place::{Engine, EngineArgs};
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Output, RunView};

/// List the runs of this machine, or with --engine kubernetes the jobs of a cluster; the newest last.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only runs of this experiment.
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    #[command(flatten)]
    place: EngineArgs,
    /// With --engine kubernetes: the jobs of all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// How to print the list.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Error> {
    let mut views = match args.place.engine {
        Some(Engine::Kubernetes) => in_cluster(args, context)?,
        Some(Engine::Local) | None => here(context)?,
    };
    if args.experiment.is_some() {
        views.retain(|view| view.experiment() == args.experiment.as_deref());
    }
    context.console.run_list(&views, args.output)?;
    Ok(Exit::Fine)
}

fn here(context: &Context) -> Result<Vec<RunView>, Error> {
    let runs = RunDirectory::all(&context.runs_folder()?)?;
    Ok(runs.iter().map(|(directory, record)| RunView::of(directory, record)).collect())
}

#[cfg(feature = "kubernetes")]
fn in_cluster(args: &ListArgs, context: &mut Context) -> Result<Vec<RunView>, Error> {
    let session = crate::cluster::Session::open(&context.settings)?;
    let found = session.run(|cluster| cluster.jobs(args.all_namespaces))?;
    context.console.warn(found.warning().as_slice());
    Ok(found.jobs.iter().map(RunView::in_cluster).collect())
}

#[cfg(not(feature = "kubernetes"))]
fn in_cluster(_args: &ListArgs, _context: &mut Context) -> Result<Vec<RunView>, Error> {
    Err(Error::without_kubernetes("--engine kubernetes"))
}
