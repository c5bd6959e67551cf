//! kube-batch `MPI`, in both its shapes.

use unisono_job::{Job, Note};

use crate::{Document, Options};

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(document: &Document<'_>, options: &Options) -> (Option<Job>, Vec<Note>) {
    let _ = (document, options);
    (None, Vec::new())
}
