//! `unisono operator manifests`: options enter, the objects of an installation leave as YAML.

use clap::Args;
use unisono_operator::manifests::{self, Options};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::settings::{Origin, Settings};

/// Print everything the operator is installed with, as YAML.
///
/// The definitions and policies come first, then namespace, permissions, Deployment and disruption budget. The same
/// options give the same text.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    options: OptionArgs,
}

const EXAMPLES: &str = "\
Examples:
  unisono operator manifests | kubectl apply --server-side --force-conflicts -f -
  unisono operator manifests --namespace lab          serve the jobs of one namespace only
  unisono operator manifests -- --gang=none           more words for `unisono operator run`";

/// What an installation can differ in.
#[derive(Debug, Args)]
pub(super) struct OptionArgs {
    /// The namespace the operator lives in; it is made.
    #[arg(long, value_name = "NAME", default_value = "unisono-system")]
    operator_namespace: String,
    /// The image with `/unisono` and `/unisono-agent`.
    #[arg(long, value_name = "IMAGE", default_value_t = manifests::default_image())]
    image: String,
    /// How many operators run. One of them works, the others stand by.
    #[arg(long, value_name = "N", default_value_t = 2)]
    replicas: u32,
    /// More words for `unisono operator run`.
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
}

impl OptionArgs {
    /// The options, with what settings add.
    pub(super) fn options(&self, settings: &Settings) -> Options {
        let mut arguments = Vec::new();
        if !matches!(settings.gpus_per_node.from, Origin::BuiltIn) {
            arguments.push(format!("--gpus-per-node={}", settings.gpus_per_node.value));
        }
        if !settings.cluster_domain.value.is_empty() {
            arguments.push(format!("--cluster-domain={}", settings.cluster_domain.value));
        }
        arguments.extend(self.words.iter().cloned());
        Options {
            namespace: self.operator_namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas,
            only_namespace: only_namespace(settings),
            arguments,
        }
    }
}

/// The namespace that was asked for by name; one that merely is the usual one for new jobs does not limit an operator.
pub(super) fn only_namespace(settings: &Settings) -> Option<String> {
    match settings.namespace.from {
        Origin::Flag(_) => Some(settings.namespace.value.clone()),
        _ => None,
    }
}

pub(crate) fn run(args: &ManifestsArgs, context: &mut Context) -> Result<Exit, Error> {
    let objects = manifests::objects(&args.options.options(&context.settings));
    context.console.data(&manifests::to_yaml(&objects))?;
    Ok(Exit::Fine)
}
