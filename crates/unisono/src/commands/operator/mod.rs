//! `unisono operator`: the cluster's side.

mod install;
mod manifests;
mod run;

use clap::{Args, Subcommand};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Serve MPI jobs in a cluster.
#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    #[command(subcommand)]
    command: OperatorCommand,
}

#[derive(Debug, Subcommand)]
enum OperatorCommand {
    Install(install::InstallArgs),
    Manifests(manifests::ManifestsArgs),
    Run(run::RunArgs),
}

pub(crate) use install::install_objects;

pub(crate) fn run(args: &OperatorArgs, context: &mut Context) -> Result<Exit, Error> {
    match &args.command {
        OperatorCommand::Install(args) => install::run(args, context),
        OperatorCommand::Manifests(args) => manifests::run(args, context),
        OperatorCommand::Run(args) => run::run(args, context),
    }
}
