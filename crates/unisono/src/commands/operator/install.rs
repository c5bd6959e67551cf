//! `unisono operator install`: options enter, a cluster with a working operator leaves.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use unisono_operator::{Step, manifests};

use super::manifests::OptionArgs;
use crate::Context;
use crate::cluster::Session;
use crate::error::Error;
use crate::exit::Exit;

/// Install the operator in the cluster that KUBECONFIG names, and wait until it is ready.
///
/// A definition of MPIJob that another operator left is taken over with its jobs. Installing again is an upgrade.
/// End the other operator first: two of them would fight over the same jobs.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    options: OptionArgs,
    /// How long to wait for it, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

const EXAMPLES: &str = "\
Examples:
  unisono operator install
  unisono operator install --image registry.lab/unisono:1 --replicas 1
  unisono operator install --namespace lab            serve the jobs of one namespace only";

pub(crate) fn run(args: &InstallArgs, context: &mut Context) -> Result<Exit, Error> {
    let objects = manifests::objects(&args.options.options(&context.settings));
    let session = Session::open(&context.settings)?;
    install_objects(&session, &objects, Duration::from_secs(args.timeout), context)?;
    Ok(Exit::Fine)
}

/// Gives the objects of an installation to a cluster, and waits until they work.
pub(crate) fn install_objects(
    session: &Session,
    objects: &[Value],
    patience: Duration,
    context: &mut Context,
) -> Result<(), Error> {
    let installed = session.run(|cluster| {
        unisono_operator::install(cluster.client(), objects, patience, |step| {
            context.console.talk(&format!("{}\n", line(&step)));
        })
    });
    installed.map_err(|source| Error::Run {
        message: "the operator is not installed".to_owned(),
        hint: Some("what was applied stays; mend the cause and install again".to_owned()),
        source: Some(Box::new(source)),
    })
}

fn line(step: &Step) -> String {
    match step {
        Step::Rival { namespace, name } => format!(
            "warning: {name} in {namespace} runs MPI jobs, too, and both would run the same ones; end it: \
             kubectl scale deployment/{name} --namespace={namespace} --replicas=0"
        ),
        Step::Applied { kind, name } => format!("applied {kind} {name}"),
        Step::Waiting { kind, name, state } => format!("waiting for {kind} {name}: {state}"),
        Step::Ready => "the operator is ready".to_owned(),
    }
}
