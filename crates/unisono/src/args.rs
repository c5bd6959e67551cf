//! What can be typed. Doc comments are the help.

use std::num::NonZeroU32;

use clap::{Args, Parser};

use crate::commands::Command;
use crate::settings::{ColorWhen, MachineSlots};

/// Reads any MPI job file and runs it, on this machine or on Kubernetes.
///
/// Unisono reads the job files of Azure ML, OpenPAI, ksonnet, Kubeflow's MPI Operator and kube-batch, and its own
/// UnisonoJob. Which one a file is, it finds out by itself.
#[derive(Debug, Parser)]
#[command(
    name = "unisono",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_long_help = EXAMPLES
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

const EXAMPLES: &str = "\
Examples:
  unisono check job.yaml                          what is wrong with this file?
  unisono plan job.yaml                           what would run, where, with what host file?
  unisono convert job.json --to kubeflow/v2beta1  the same job for another system
  unisono explain unknown-key                     more about a fault

Exit codes: 0 fine, 1 the file has faults, 2 the command line or a setting is wrong.";

/// Settings that can be given for one call. `unisono config show` lists them with where they come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// When to use colours.
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_short_help = true)]
    pub(crate) color: Option<ColorWhen>,
    /// GPUs of one node, for MPIJob v1alpha1 files that state only a total.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub(crate) gpus_per_node: Option<NonZeroU32>,
    /// Whether the cluster offers Azure's RDMA devices (OpenPAI's `paiAzRDMA`).
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_short_help = true)]
    pub(crate) az_rdma: Option<bool>,
    /// The claim of a volume, and a folder in it, for code that is too large to travel with a job.
    #[arg(long, global = true, value_name = "CLAIM[/FOLDER]", hide_short_help = true)]
    pub(crate) code_volume: Option<String>,
    /// The context of the kubeconfig to use.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) context: Option<String>,
    /// The Kubernetes namespace of jobs that name none.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) namespace: Option<String>,
    /// The cluster's domain, for host names of MPIJob v2beta1.
    #[arg(long, global = true, value_name = "DOMAIN", hide_short_help = true)]
    pub(crate) cluster_domain: Option<String>,
    /// Who runs the job.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) user: Option<String>,
    /// Ranks that run on this machine side by side; jobs beyond that wait in line.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub(crate) machine_slots: Option<MachineSlots>,
    /// Directories of ended runs that stay, the newest.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub(crate) keep_runs: Option<NonZeroU32>,
    /// Days for which directories of ended runs stay.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub(crate) keep_days: Option<NonZeroU32>,
}
