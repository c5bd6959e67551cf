//! `unisono check`: job files enter, everything there is to tell about them leaves.

use std::path::{Path, PathBuf};

use clap::Args;
use unisono_plan::{EngineKind, Facts, Overrides};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::JobFile;
use crate::report::{CheckReport, Output};
use crate::{input, job_file};

/// Tell what is wrong with job files, all at once.
///
/// Every fault, warning and note is shown with its place, the line it stands on, and what to type instead.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Job files; a folder is walked for .yaml, .yml and .json files, `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to print the result.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  unisono check job.yaml
  unisono check jobs/                             every job file of a folder
  kubectl get mpijobs -o yaml | unisono check -   what a cluster holds
  unisono check --output json job.yaml | jq '.files[].notes[].code'

Exit codes: 0 no faults (warnings are no faults), 1 faults, 2 a file cannot be read.";

pub(crate) fn run(args: &CheckArgs, context: &mut Context) -> Result<Exit, Error> {
    // What only this machine cannot do is no matter of the file.
    let facts = job_file::facts(&context.settings, EngineKind::Kubernetes, Overrides::default());
    let mut report = CheckReport::default();
    let mut unreadable = Vec::new();
    for path in &args.files {
        for (path, in_folder) in expand(path, &mut unreadable) {
            match job_file::read(&path, &context.settings) {
                Ok(file) => report.add(checked(file, in_folder, &facts)),
                Err(error) => unreadable.push(error.into()),
            }
        }
    }
    let exit = if report.errors() > 0 { Exit::Faults } else { Exit::Fine };
    context.console.check(&report, args.output)?;
    let failed = unreadable.iter().map(|error| context.console.fail(error)).max();
    Ok(failed.map_or(exit, |failed| failed.max(exit)))
}

/// The files a path stands for, and whether they were found by walking a folder.
fn expand(path: &Path, unreadable: &mut Vec<Error>) -> Vec<(PathBuf, bool)> {
    if !path.is_dir() {
        return vec![(path.to_owned(), false)];
    }
    match input::walk(path) {
        Ok(files) => files.into_iter().map(|file| (file, true)).collect(),
        Err(error) => {
            unreadable.push(error.into());
            Vec::new()
        }
    }
}

/// Folders hold other things than jobs; what is no job at all is only listed.
fn checked(mut file: JobFile, in_folder: bool, facts: &Facts) -> JobFile {
    file.add_plan_notes(facts);
    if in_folder && file.holds_no_job() {
        file.readings.clear();
    }
    file
}
