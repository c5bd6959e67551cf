//! `unisono submit`: a job file of any dialect enters, objects of a cluster leave; with `--follow` the job's output and its
//! exit code.

#[cfg(feature = "kubernetes")]
mod carry_out;
#[cfg(feature = "kubernetes")]
mod code;
mod codes;
#[cfg(feature = "kubernetes")]
mod dry_run;
#[cfg(feature = "kubernetes")]
pub(super) mod follow;
#[cfg(feature = "kubernetes")]
mod prepare;
#[cfg(feature = "kubernetes")]
mod translate;

use std::path::PathBuf;

use clap::Args;

use super::RunOutput;

#[cfg(feature = "kubernetes")]
pub(crate) use carry_out::run;
pub(crate) use codes::CODES;
#[cfg(feature = "kubernetes")]
pub(crate) use prepare::as_given;

/// Run a job on Kubernetes.
///
/// Kubernetes' own job files (MPIJob, kube-batch MPI, UnisonoJob) and whatever else stands in them are applied as they are. Jobs
/// of Azure ML and OpenPAI become a UnisonoJob; settings say which images and places their names mean. A code folder travels
/// with its job. Context and namespace are those of the kubeconfig, unless flags say otherwise.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// The job file; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Submit only the job of this name, where the file has several.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Print every object as YAML, those that the operator would make included, and do nothing.
    #[arg(long, conflicts_with = "follow")]
    dry_run: bool,
    /// Show what the job writes until it ends, and end with its exit code.
    #[arg(long, short)]
    follow: bool,
    /// Remove a job of the same name first, with everything that belongs to it.
    #[arg(long)]
    replace: bool,
    /// With --follow: the program's bare lines, without rank and host.
    #[arg(long, requires = "follow")]
    raw: bool,
    /// How to print what happens.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: RunOutput,
}

const EXAMPLES: &str = "\
Examples:
  unisono submit job.yaml --follow
  unisono submit job.yaml --dry-run               every object that would be made
  unisono submit job.json --context lab --namespace team-a

Exit codes: 0 submitted, 1 the file has faults, 125 the cluster did not take it; with --follow the
job's own, as of `unisono run`.";

/// Says that this build cannot.
#[cfg(not(feature = "kubernetes"))]
pub(crate) fn run(
    _args: &SubmitArgs,
    _context: &mut crate::Context,
) -> Result<crate::exit::Exit, crate::error::Error> {
    Err(crate::error::Error::without_kubernetes("submit"))
}
