//! Kubeflow `MPIJob`: v1alpha1, v1alpha2, v1 and v2beta1.

pub(crate) mod codes;
mod fields;
mod fields_v1alpha1;
mod moved;
mod policies;
mod replicas;
mod v1alpha1;
mod version;
mod write;

use unisono_job::{Dialect, Flavour, Job, Note};

use crate::kubernetes::Lowering;
use crate::shape::Shape;
use crate::write::Written;
use crate::{Document, Options};

pub(crate) use version::{version, written_version};

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(
    dialect: Dialect,
    document: &Document<'_>,
    options: &Options,
) -> (Option<Job>, Vec<Note>) {
    let mut lowering = Lowering::new(document, shape(dialect), |path| moved::hint(dialect, path));
    tell_version(dialect, &mut lowering);
    let body = document.root.at(&["spec"]).and_then(|spec| match dialect {
        Dialect::KubeflowV1alpha1 => v1alpha1::body(&mut lowering, spec, options),
        _ => replicas::body(dialect, &mut lowering, spec),
    });
    lowering.finish(dialect, body)
}

/// The job as text of v2beta1 or v1, with what it could not carry.
pub(crate) fn write(job: &Job, dialect: Dialect) -> Written {
    write::write(job, dialect)
}

/// The field table of a version.
pub(crate) fn shape(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::KubeflowV1alpha1 => &fields_v1alpha1::V1ALPHA1,
        Dialect::KubeflowV1alpha2 => &fields::V1ALPHA2,
        Dialect::KubeflowV1 => &fields::V1,
        _ => &fields::V2BETA1,
    }
}

/// The `apiVersion` of a version.
const fn api_version(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::KubeflowV1alpha1 => "kubeflow.org/v1alpha1",
        Dialect::KubeflowV1alpha2 => "kubeflow.org/v1alpha2",
        Dialect::KubeflowV1 => "kubeflow.org/v1",
        _ => "kubeflow.org/v2beta1",
    }
}

/// How v2beta1 writes an MPI.
const fn written_mpi(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::OpenMpi => "OpenMPI",
        Flavour::Intel => "Intel",
        Flavour::Mpich => "MPICH",
    }
}

fn tell_version(dialect: Dialect, lowering: &mut Lowering<'_>) {
    let Some(node) = lowering.document.root.get("apiVersion") else { return };
    if let Some(served) = node.text().filter(|served| *served != api_version(dialect)) {
        let message = format!(
            "the object is served as {served}, but was written as {}",
            api_version(dialect)
        );
        lowering.tell(Note::new(&codes::READ_AS_WRITTEN, message), node);
    }
}
