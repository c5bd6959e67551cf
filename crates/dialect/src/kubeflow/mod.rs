//! Kubeflow `MPIJob`: v1alpha1, v1alpha2, v1 and v2beta1.

pub(crate) mod codes;

use unisono_job::{Dialect, Job, Note};

use crate::write::Written;
use crate::{Document, Options};

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(
    dialect: Dialect,
    document: &Document<'_>,
    options: &Options,
) -> (Option<Job>, Vec<Note>) {
    let _ = (dialect, document, options);
    (None, Vec::new())
}

/// The job as text of this dialect, with what it could not carry.
pub(crate) fn write(job: &Job, dialect: Dialect) -> Written {
    let _ = (job, dialect);
    Written { text: String::new(), notes: Vec::new() }
}
