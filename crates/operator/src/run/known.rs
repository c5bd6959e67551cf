//! What follows from a job object alone: it is read and laid out once, and not again as long as nobody changes it. Most looks are
//! about pods, and come many at once.

use std::sync::Arc;

use unisono_job::Note;
use unisono_k8s::{JobObject, Resource, Settings, kubeflow};
use unisono_plan::{Plan, lay_out};

use super::world::Kept;

/// A job object that was read.
#[derive(Debug)]
pub(crate) struct Known {
    kept: Arc<Kept>,
    pub(crate) object: JobObject,
    /// Through which it is written.
    pub(crate) resource: Resource,
    /// What is odd about it.
    pub(crate) notes: Vec<Note>,
    /// Its job's plan; none when it holds no job.
    pub(crate) plan: Option<Plan>,
}

impl Known {
    /// Reads an object.
    pub(crate) fn of(
        kept: Arc<Kept>,
        reading: &unisono_dialect::Options,
        settings: &Settings,
    ) -> Option<Self> {
        let object = kept.object()?;
        let read = object.read(reading);
        let resource = read.dialect.and_then(|dialect| object.resource(dialect));
        let resource = resource.unwrap_or(kubeflow("v2beta1"));
        let plan = read.job.map(|job| lay_out(&job, &object.facts(settings), object.generation()));
        Some(Self { kept, object, resource, notes: read.notes, plan })
    }

    /// Whether this object was read, as it was seen then.
    pub(crate) fn is_of(&self, kept: &Arc<Kept>) -> bool {
        Arc::ptr_eq(&self.kept, kept)
    }
}
