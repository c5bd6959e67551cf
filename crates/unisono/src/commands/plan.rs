//! `unisono plan`: a job file enters, what would run where leaves.

use std::path::PathBuf;

use clap::Args;
use unisono_dialect::Reading;
use unisono_plan::{EngineKind, Facts, Overrides, lay_out};

use super::place::Engine;
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::{self, FIRST_GENERATION, JobFile};
use crate::report::{Output, PlanReport};
use crate::settings::Settings;

/// Tell what would run, where, with what host file and environment.
///
/// Nothing is started. The plan is the one that running the job carries out.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// The job file; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Plan only the job of this name, where the file has several.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// How to print the plan.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
    /// Where the job would run.
    #[arg(long, value_enum, default_value_t, value_name = "ENGINE")]
    engine: Engine,
    #[command(flatten)]
    overrides: OverrideArgs,
}

const EXAMPLES: &str = "\
Examples:
  unisono plan job.yaml
  unisono plan job.yaml --hosts 2 --slots 2       the same job, small enough for a laptop
  unisono plan job.yaml --output json | jq .ranks
  unisono plan jobs.yaml --job stencil            one job of several

With --output json there is one document. A file with several jobs gives {\"jobs\": […]}, unless
--job chooses one. Faults stand in its `notes`, and `job` is then null.

Exit codes: 0 fine, 1 the file has faults, 2 the command line is wrong or the file cannot be read.";

/// Numbers to use instead of the file's.
#[derive(Clone, Debug, Args)]
pub(crate) struct OverrideArgs {
    /// Ranks in all, instead of the launch line's count.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    np: Option<u32>,
    /// Hosts of the group that hosts ranks, instead of the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    hosts: Option<u32>,
    /// Slots on every host that has any, instead of the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// Drop a leading `sleep N &&` from commands.
    #[arg(long)]
    skip_sleep: bool,
}

impl OverrideArgs {
    /// What the caller wants changed.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { np, hosts, slots, skip_sleep } = self;
        Overrides { ranks: *np, hosts: *hosts, slots: *slots, skip_sleep: *skip_sleep }
    }
}

pub(crate) fn run(args: &PlanArgs, context: &mut Context) -> Result<Exit, Error> {
    let mut file = job_file::read(&args.file, &context.settings)?;
    if let Some(name) = &args.job {
        file.choose(name)?;
    }
    let engine = match args.engine {
        Engine::Local => EngineKind::Local,
        Engine::Kubernetes => EngineKind::Kubernetes,
    };
    let mut facts = job_file::facts(&context.settings, engine, args.overrides.overrides());
    if args.engine == Engine::Kubernetes {
        give_to_cluster(&mut file, &mut facts, &context.settings);
    }
    let reports: Vec<PlanReport<'_>> =
        file.readings.iter().map(|reading| planned(reading, &facts)).collect();
    context.console.plans(&file, &reports, args.output)?;
    Ok(if file.has_faults() { Exit::Faults } else { Exit::Fine })
}

/// Takes jobs as `unisono submit` gives them to a cluster, and its namespace.
#[cfg(feature = "kubernetes")]
fn give_to_cluster(file: &mut JobFile, facts: &mut Facts, settings: &Settings) {
    facts.namespace = crate::cluster::usual_namespace(settings);
    for reading in &mut file.readings {
        let (job, notes) = super::submit::as_given(reading, settings);
        reading.job = job.filter(|_| !notes.iter().any(unisono_job::Note::is_fault));
        reading.notes.extend(notes);
    }
}

/// A build that submits nothing shows what the file says.
#[cfg(not(feature = "kubernetes"))]
fn give_to_cluster(_file: &mut JobFile, _facts: &mut Facts, _settings: &Settings) {}

fn planned<'file>(reading: &'file Reading, facts: &Facts) -> PlanReport<'file> {
    PlanReport {
        reading,
        plan: reading.job.as_ref().map(|job| lay_out(job, facts, FIRST_GENERATION)),
    }
}
