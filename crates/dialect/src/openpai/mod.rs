//! OpenPAI: version 1 (JSON) and protocol version 2 (YAML).
//!
//! Every task of every role runs its role's own command and may reach all others, so each role is a group of its own.

pub(crate) mod codes;
mod fields;
mod protocol;
mod references;
mod role;
mod slots;
mod version1;
mod version2;
mod write;
mod write_launch;

use unisono_job::{Dialect, Job, Note};

use crate::notebook::Notebook;
use crate::write::Written;
use crate::{Document, Leniency, Options, check};

pub(crate) use fields::shape;

/// The annotation that holds what OpenPAI files say and the neutral job has no place for.
const KEPT: &str = "openpai.unisono.dev/kept";

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(
    dialect: Dialect,
    document: &Document<'_>,
    options: &Options,
) -> (Option<Job>, Vec<Note>) {
    // The server's own validator turned numbers in quotes into numbers.
    let notes = check(document, shape(dialect), Leniency { numbers_as_text: true });
    let mut notebook = Notebook::new(document, notes);
    let job = match dialect {
        Dialect::OpenPaiV2 => version2::lower(&document.root, &mut notebook),
        _ => version1::lower(&document.root, options, &mut notebook),
    };
    let (notes, origins) = notebook.finish();
    (job.map(|job| Job { origins, ..job }), notes)
}

/// The job as text of this dialect, with what it could not carry.
pub(crate) fn write(job: &Job) -> Written {
    write::write(job)
}
