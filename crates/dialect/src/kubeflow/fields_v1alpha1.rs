//! The field table of `MPIJob` v1alpha1, whose launcher and workers share one template.

use super::fields::{BACKOFF, DEADLINE, KIND};
use crate::kubernetes::{POD_TEMPLATE, object};
use crate::shape::{Field, Kind, Shape};

pub(super) static V1ALPHA1: Shape = Shape::new("MPIJob (v1alpha1)", &object(KIND, &SPEC));

static SPEC: Shape = Shape::new(
    "MPIJobSpec (v1alpha1)",
    &[
        Field::new("gpus", Kind::POSITIVE, "GPUs of all workers: 1, 2, 4 or a multiple of 8"),
        Field::new("gpusPerNode", Kind::POSITIVE, "GPUs of one worker at most")
            .or("what the operator is started with; 8 in the published manifests"),
        Field::new(
            "processingUnits",
            Kind::POSITIVE,
            "GPUs or CPUs of all workers: 1, 2, 4 or a multiple of 8",
        ),
        Field::new("processingUnitsPerNode", Kind::POSITIVE, "units of one worker at most")
            .or("what the operator is started with"),
        Field::new("processingResourceType", Kind::Text, "what a unit is: nvidia.com/gpu or cpu")
            .or("nvidia.com/gpu"),
        Field::new("replicas", Kind::POSITIVE, "the number of workers"),
        Field::new("slotsPerWorker", Kind::POSITIVE, "ranks on each worker")
            .or("the units of a worker, else 1"),
        Field::new(
            "launcherOnMaster",
            Kind::Boolean,
            "whether the launcher runs on a control-plane node",
        )
        .or("false"),
        BACKOFF,
        DEADLINE,
        Field::new(
            "template",
            Kind::Object(&POD_TEMPLATE),
            "what the pods of launcher and workers are made of",
        )
        .required(),
    ],
);
