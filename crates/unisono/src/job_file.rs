//! A job file, read: a path and settings enter, jobs with their plans and everything there is to tell leave.

use std::path::Path;

use unisono_dialect::{Options, Reading, nearest};
use unisono_job::{Job, Note};
use unisono_plan::{EngineKind, Facts, Overrides, lay_out};

use crate::error::Error;
use crate::input::{self, InputError};
use crate::settings::Settings;

/// A job file, read.
#[derive(Debug)]
pub(crate) struct JobFile {
    /// What messages call it.
    pub(crate) name: String,
    /// Its text, to show lines of; empty when it is no text.
    pub(crate) text: String,
    /// Its documents.
    pub(crate) readings: Vec<Reading>,
}

/// A file's job has no history.
pub(crate) const FIRST_GENERATION: u64 = 1;

/// Codes by which a document turns out to be something else than an MPI job.
const NOT_A_JOB: [&str; 3] = ["no-job", "unknown-document", "not-an-mpi-job"];

impl JobFile {
    /// Whether nothing in the file is, or was meant as, an MPI job.
    pub(crate) fn holds_no_job(&self) -> bool {
        self.readings.iter().all(|reading| {
            reading.job.is_none()
                && reading
                    .notes
                    .iter()
                    .filter(|note| note.is_fault())
                    .all(|note| NOT_A_JOB.contains(&note.code.name))
        })
    }

    /// Whether a fault stands in the way of any job.
    pub(crate) fn has_faults(&self) -> bool {
        self.readings.iter().any(|reading| reading.job.is_none())
    }

    /// The jobs that can run.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.readings.iter().filter_map(|reading| reading.job.as_ref())
    }

    /// Keeps the job of that name. Faults of other documents are no matter then.
    pub(crate) fn choose(&mut self, name: &str) -> Result<(), Error> {
        let is_it = |job: &Job| job.name.as_str() == name;
        if !self.jobs().any(is_it) {
            let names: Vec<&str> = self.jobs().map(|job| job.name.as_str()).collect();
            let hint = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "`unisono check` tells what is wrong".to_owned(),
                None => format!("its jobs are {}", names.join(", ")),
            };
            return Err(Error::usage(format!("{} has no job called `{name}`", self.name), hint));
        }
        self.readings.retain(|reading| reading.job.as_ref().is_some_and(is_it));
        Ok(())
    }

    /// Adds what only shows once a job is laid out, such as more ranks than slots.
    pub(crate) fn add_plan_notes(&mut self, facts: &Facts) {
        for reading in &mut self.readings {
            if let Some(job) = &reading.job {
                reading.notes.extend(lay_out(job, facts, FIRST_GENERATION).notes);
            }
        }
    }

    /// Everything there is to tell, document by document.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.readings.iter().flat_map(|reading| &reading.notes)
    }
}

/// Reads a job file.
pub(crate) fn read(path: &Path, settings: &Settings) -> Result<JobFile, InputError> {
    let input = input::read(path)?;
    let options = Options {
        gpus_per_node: settings.gpus_per_node.value.get(),
        az_rdma: settings.offers_rdma(),
        fallback_name: input.stem,
        ..Options::default()
    };
    let readings = unisono_dialect::read(&input.bytes, &options);
    Ok(JobFile { name: input.name, text: text(input.bytes), readings })
}

/// What a plan needs to know beside the job.
pub(crate) fn facts(settings: &Settings, engine: EngineKind, overrides: Overrides) -> Facts {
    let domain = &settings.cluster_domain.value;
    Facts {
        engine,
        namespace: settings.namespace.value.clone(),
        cluster_domain: (!domain.is_empty()).then(|| domain.clone()),
        user: settings.user.value.clone(),
        overrides,
        ..Facts::default()
    }
}

/// The text that positions refer to: without the byte order mark.
fn text(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_default();
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
