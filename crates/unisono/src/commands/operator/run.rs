//! `unisono operator run`: runs the jobs of a cluster until SIGTERM or SIGINT.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use unisono_dialect::ProcessingUnit;
use unisono_engine::mint;
use unisono_operator::{Gang, RunOptions, manifests};

use super::manifests::only_namespace;
use crate::Context;
use crate::cluster::Session;
use crate::error::Error;
use crate::exit::Exit;
use crate::settings::World;

/// Run the jobs of a cluster.
///
/// In a pod it uses the pod's own account, elsewhere KUBECONFIG. SIGTERM ends it: what is under way is finished and the
/// lease is given back. With --namespace it runs the jobs of that namespace only.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The image with the agent, for the pods of jobs.
    #[arg(long, value_name = "IMAGE", default_value_t = manifests::default_image())]
    image: String,
    /// When nodes pull that image: Always, IfNotPresent or Never; Kubernetes' own rule when not given.
    #[arg(long, value_name = "POLICY")]
    image_pull_policy: Option<String>,
    /// Who places all pods of a job at once: auto, scheduler-plugins[=NAME], volcano, kube-batch or none.
    #[arg(long, value_name = "SCHEDULER", default_value = "auto")]
    gang: Gang,
    /// Give every job a NetworkPolicy that keeps other pods from its agents. The annotation
    /// unisono.dev/network-policy of a job says otherwise for that job.
    #[arg(long)]
    network_policy: bool,
    /// After how long a job fails whose image cannot be had; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = unisono_k8s::IMAGE_PATIENCE.as_secs())]
    image_deadline: u64,
    /// What a unit is in MPIJob v1alpha1 objects that count `processingUnits` and do not say of what.
    #[arg(long, value_enum, value_name = "TYPE", default_value_t)]
    processing_resource_type: ProcessingResource,
    /// Where to answer /healthz, /readyz and /metrics.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The namespace of the lease that says which of several operators works; POD_NAMESPACE when not given. Without
    /// either there is no lease, and no other operator may run.
    #[arg(long, value_name = "NAME")]
    lease_namespace: Option<String>,
    /// This operator's name in the lease, which no other may have; POD_NAME when not given, else the host's name and a number of its own.
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// How many jobs are looked at at once.
    #[arg(long, value_name = "N", default_value_t = 32)]
    workers: usize,
    /// How log lines are written. RUST_LOG chooses which.
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    log: LogForm,
}

const EXAMPLES: &str = "\
Examples:
  unisono operator run                                  from outside, with KUBECONFIG
  unisono operator run --gang none --namespace lab
  RUST_LOG=unisono_operator=debug unisono operator run";

/// What a processing unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ProcessingResource {
    /// A GPU.
    #[default]
    #[value(name = "nvidia.com/gpu", alias = "gpu")]
    Gpu,
    /// A CPU.
    Cpu,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogForm {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

pub(crate) fn run(args: &RunArgs, context: &mut Context) -> Result<Exit, Error> {
    unisono_operator::log(args.log == LogForm::Json);
    let (settings, world) = (&context.settings, &context.world);
    let domain = &settings.cluster_domain.value;
    let options = RunOptions {
        only_namespace: only_namespace(settings),
        image: args.image.clone(),
        image_pull_policy: args.image_pull_policy.clone(),
        cluster_domain: (!domain.is_empty()).then(|| domain.clone()),
        gang: args.gang.clone(),
        network_policy: args.network_policy,
        image_patience: (args.image_deadline > 0).then(|| Duration::from_secs(args.image_deadline)),
        reading: unisono_dialect::Options {
            gpus_per_node: settings.gpus_per_node.value.get(),
            processing_unit: match args.processing_resource_type {
                ProcessingResource::Gpu => ProcessingUnit::Gpu,
                ProcessingResource::Cpu => ProcessingUnit::Cpu,
            },
            ..unisono_dialect::Options::default()
        },
        listen: args.listen,
        lease: lease(args, world)?,
        workers: args.workers.max(1),
        longest_look: unisono_operator::LONGEST_LOOK,
    };
    let session = Session::open(settings)?;
    session.run(async |cluster| {
        let stop = stop_requested()?;
        let run = unisono_operator::run(cluster.client().clone(), options, stop);
        run.await.map_err(|source| Error::run("the operator ended", source))
    })?;
    Ok(Exit::Fine)
}

/// The lease's namespace and our name in it.
fn lease(args: &RunArgs, world: &World) -> Result<Option<(String, String)>, Error> {
    let namespace = args.lease_namespace.clone().or_else(|| world.variable("POD_NAMESPACE"));
    let Some(namespace) = namespace else { return Ok(None) };
    let identity = match args.identity.clone().or_else(|| world.variable("POD_NAME")) {
        Some(identity) => identity,
        None => own_name()?,
    };
    Ok(Some((namespace, identity)))
}

/// A name that no other operator has: two of one name would both take the lease for theirs.
fn own_name() -> Result<String, Error> {
    let number = mint::bytes::<4>()
        .map_err(|error| Error::run("cannot make a name for the lease", error))?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{host}-{:08x}", u32::from_le_bytes(number)))
}

/// Ready when somebody asks the process to end.
fn stop_requested() -> Result<impl Future<Output = ()>, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let fault = |error| Error::run("signals cannot be waited for", error);
    let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        run: RunArgs,
    }

    fn name(words: &[&str], variables: &[(&str, &str)]) -> Option<String> {
        let matches = Typed::command().get_matches_from([&["run"], words].concat());
        let typed = Typed::from_arg_matches(&matches).expect("it can be read");
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let world = World { variables, ..World::default() };
        lease(&typed.run, &world).expect("there is a name").map(|(_, name)| name)
    }

    #[test]
    fn two_operators_never_have_one_name_in_the_lease() {
        assert_eq!(name(&[], &[]), None, "there is no lease");
        let pod = [("POD_NAMESPACE", "lab"), ("POD_NAME", "operator-7")];
        assert_eq!(name(&[], &pod).as_deref(), Some("operator-7"));
        assert_eq!(name(&["--identity", "mine"], &pod).as_deref(), Some("mine"));
        let somewhere = ["--lease-namespace", "lab"];
        let (one, other) = (name(&somewhere, &[]), name(&somewhere, &[]));
        assert!(one.is_some() && one != other, "{one:?}");
    }
}
