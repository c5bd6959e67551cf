//! `UnisonoJob`: the neutral job as a Kubernetes object.

use unisono_job::{Job, Note};

use crate::write::Written;
use crate::{Document, Options};

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(document: &Document<'_>, options: &Options) -> (Option<Job>, Vec<Note>) {
    let _ = (document, options);
    (None, Vec::new())
}

/// The job as text of this dialect, with what it could not carry.
pub(crate) fn write(job: &Job) -> Written {
    let _ = job;
    Written { text: String::new(), notes: Vec::new() }
}
