//! `unisono operator`: the cluster's side.

mod install;
mod manifests;
mod run;

use std::future::Future;

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

pub(crate) fn run(args: &OperatorArgs, context: &mut Context) -> Result<Exit, Error> {
    match &args.command {
        OperatorCommand::Install(args) => install::run(args, context),
        OperatorCommand::Manifests(args) => manifests::run(args, context),
        OperatorCommand::Run(args) => run::run(args, context),
    }
}

/// Runs a future to its end on this thread: waiting for a cluster needs no second one.
fn wait_for<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::run("the system gives no timers or sockets", error))?;
    runtime.block_on(future)
}

/// A client of the cluster that the kubeconfig or the pod's own account names.
async fn client() -> Result<kube::Client, Error> {
    let unreachable = |source| Error::Run {
        message: "no cluster can be reached".to_owned(),
        hint: Some("set KUBECONFIG, or run this in a pod".to_owned()),
        source: Some(source),
    };
    let config = kube::Config::infer().await.map_err(|error| unreachable(Box::new(error)))?;
    kube::Client::try_from(config).map_err(|error| unreachable(Box::new(error)))
}
