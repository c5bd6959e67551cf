//! Azure ML: `type: MpiJob`, its flattened form, and CLI v2 command jobs with `distribution: mpi`.
//!
//! In the first two the command is the launch line, run once; in CLI v2 it is what every rank runs, and we write the
//! launch line.

pub(crate) mod codes;
mod command;
mod command_fields;
mod environment;
mod fields;
mod flat;
mod launched;
mod mpijob;
mod placeholders;
mod values;
mod write;

use unisono_job::{Dialect, Job, Note};

use crate::notebook::Notebook;
use crate::write::Written;
use crate::{Document, Leniency, Options, check};

pub(crate) use fields::shape;

/// The annotation that holds what Azure ML files say and the neutral job has no place for.
const KEPT: &str = "azureml.unisono.dev/kept";

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(
    dialect: Dialect,
    document: &Document<'_>,
    options: &Options,
) -> (Option<Job>, Vec<Note>) {
    let notes = check(document, shape(dialect), Leniency::default());
    let mut notebook = Notebook::new(document, notes);
    let root = &document.root;
    let job = match dialect {
        Dialect::AzureFlat => flat::lower(root, options, &mut notebook),
        Dialect::AzureCommand => command::lower(root, options, &mut notebook),
        _ => mpijob::lower(root, options, &mut notebook),
    };
    let (notes, origins) = notebook.finish();
    (job.map(|job| Job { origins, ..job }), notes)
}

/// The cluster that an Azure ML file names, without Azure's `azureml:`.
pub fn compute_target(job: &Job) -> Option<String> {
    let kept = crate::kept::Kept::of(job, KEPT);
    let target = kept.text("compute")?;
    Some(target.strip_prefix("azureml:").unwrap_or(target).to_owned())
}

/// The job as text of this dialect, with what it could not carry.
pub(crate) fn write(job: &Job) -> Written {
    write::write(job)
}
