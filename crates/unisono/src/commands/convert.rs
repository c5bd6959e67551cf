//! `unisono convert`: a job file enters, the same job in another dialect leaves, with what that dialect cannot carry.

use std::path::PathBuf;

use clap::Args;
use unisono_dialect::{WRITABLE, Written, write};
use unisono_job::{Dialect, Severity};

use crate::Context;
use crate::commands::dialect_name;
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::{self, JobFile};
use crate::report::counted;

/// Write a job in another dialect.
///
/// The result goes to standard output. What the other dialect cannot carry is listed on standard error. What a server set
/// (status, uid, managed fields) is not part of the job and left out.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// The job file; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The dialect to write.
    #[arg(long, value_name = "DIALECT", value_parser = dialect_name::parser(WRITABLE))]
    to: Dialect,
    /// Convert only the job of this name, where the file has several.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Refuse to lose anything: then nothing is written.
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  unisono convert job.json --to kubeflow/v2beta1
  unisono convert old.yaml --to unisono --strict > new.yaml
  kubectl get mpijob ring -o yaml | unisono convert - --to openpai/v2

Exit codes: 0 fine, 1 the file has faults or (--strict) something would be lost, 2 the command line
is wrong or the file cannot be read.";

pub(crate) fn run(args: &ConvertArgs, context: &mut Context) -> Result<Exit, Error> {
    let mut file = job_file::read(&args.file, &context.settings)?;
    if let Some(name) = &args.job {
        file.choose(name)?;
    }
    if file.has_faults() {
        context.console.notes(&file, file.notes());
        return Ok(Exit::Faults);
    }
    let written: Vec<Written> = file.jobs().filter_map(|job| write(job, args.to)).collect();
    context.console.notes(&file, written.iter().flat_map(|it| &it.notes));
    // What merely changes its form is a note; what is lost is a warning.
    let notes = written.iter().flat_map(|it| &it.notes);
    let lost = notes.filter(|note| note.severity() > Severity::Note).count();
    if args.strict && lost > 0 {
        context.console.refuse(&refusal(&file, args.to, lost));
        return Ok(Exit::Faults);
    }
    let texts: Vec<&str> = written.iter().map(|it| it.text.as_str()).collect();
    context.console.data(&texts.join("---\n"))?;
    Ok(Exit::Fine)
}

fn refusal(file: &JobFile, to: Dialect, lost: usize) -> String {
    format!("{} is not written as {to}: {} would be lost", file.name, counted(lost, "value"))
}
