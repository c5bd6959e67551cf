//! The field tables of kube-batch `MPI`: with a whole Job and a PodGroup inside, or with a bare job spec.

use crate::kubernetes::{METADATA_OF_A_PART, POD_TEMPLATE, object};
use crate::shape::{Field, Kind, Shape};

const KIND: &str = "the kind of object: MPI";
const STATUS: Field = Field::new("status", Kind::Any, "what became of it; has no effect");

/// `spec.job` is a whole Job, `spec.podGroup` a whole PodGroup.
pub(super) static WITH_OBJECTS: Shape = Shape::new("MPI", &object(KIND, &SPEC_WITH_OBJECTS));

static SPEC_WITH_OBJECTS: Shape = Shape::new(
    "MPISpec",
    &[
        Field::new("job", Kind::Object(&JOB), "the Job whose pods run the ranks").required(),
        Field::new("podGroup", Kind::Object(&POD_GROUP), "the gang they are placed as").required(),
    ],
);

static JOB: Shape = Shape::new("Job", &JOB_FIELDS);

const JOB_FIELDS: [Field; 5] = [
    Field::new("apiVersion", Kind::Text, "batch/v1"),
    Field::new("kind", Kind::Text, "Job"),
    Field::new("metadata", Kind::Object(&METADATA_OF_A_PART), "its labels go to the pods"),
    Field::new("spec", Kind::Object(&JOB_SPEC), "the pods and how many").required(),
    STATUS,
];

static POD_GROUP: Shape = Shape::new(
    "PodGroup",
    &[
        Field::new("apiVersion", Kind::Text, "scheduling.incubator.k8s.io/v1alpha1"),
        Field::new("kind", Kind::Text, "PodGroup"),
        Field::new("metadata", Kind::Any, "has no effect"),
        Field::new("spec", Kind::Object(&POD_GROUP_SPEC), "the gang's size and queue"),
        STATUS,
    ],
);

static POD_GROUP_SPEC: Shape = Shape::new(
    "PodGroupSpec",
    &[
        Field::new("minMember", Kind::COUNT, "how many pods must fit at once; the number of hosts")
            .or("0"),
        Field::new("queue", Kind::Text, "the queue the job waits in"),
        Field::new("priorityClassName", Kind::Text, "the priority class"),
    ],
);

/// `spec.job` is a job spec; the gang is as large as `parallelism`.
pub(super) static WITH_SPEC: Shape = Shape::new("MPI", &object(KIND, &SPEC_WITH_SPEC));

static SPEC_WITH_SPEC: Shape = Shape::new(
    "MPISpec",
    &[Field::new("job", Kind::Object(&JOB_SPEC), "the pods and how many").required()],
);

static JOB_SPEC: Shape = Shape::new("JobSpec", &JOB_SPEC_FIELDS);

const JOB_SPEC_FIELDS: [Field; 16] = [
    Field::new("parallelism", Kind::POSITIVE, "pods at a time; the number of hosts").or("1"),
    Field::new("completions", Kind::POSITIVE, "pods that must end well; the number of hosts")
        .or("the same as `parallelism`"),
    Field::new("backoffLimit", Kind::COUNT, "how often a failed job is started again").or("6"),
    Field::new("activeDeadlineSeconds", Kind::SECONDS, "seconds after which the job is stopped")
        .or("no limit"),
    Field::new(
        "ttlSecondsAfterFinished",
        Kind::COUNT,
        "seconds after its end when the job is removed",
    )
    .or("never"),
    Field::new("suspend", Kind::Boolean, "whether the job waits until somebody resumes it")
        .or("false"),
    Field::new("managedBy", Kind::Text, "who runs the job"),
    Field::new("template", Kind::Object(&POD_TEMPLATE), "what the pods are made of").required(),
    Field::new("selector", Kind::Any, "set by kube-batch"),
    Field::new("manualSelector", Kind::Boolean, "set by kube-batch"),
    Field::new("completionMode", Kind::Text, "whether completions are numbered").or("NonIndexed"),
    Field::new("backoffLimitPerIndex", Kind::Any, "retries of each numbered completion"),
    Field::new("maxFailedIndexes", Kind::Any, "numbered completions that may fail"),
    Field::new("podFailurePolicy", Kind::Any, "what each kind of failure means"),
    Field::new("successPolicy", Kind::Any, "when the job has succeeded"),
    Field::new("podReplacementPolicy", Kind::Any, "when a failed pod is replaced"),
];

/// What an API server serves: `spec.job` may hold the fields of either shape.
pub(super) static EITHER: Shape = Shape::new("MPI", &object(KIND, &SPEC_OF_EITHER));

static SPEC_OF_EITHER: Shape = Shape::new(
    "MPISpec",
    &[
        Field::new(
            "job",
            Kind::Object(&JOB_OR_SPEC),
            "the Job whose pods run the ranks, or only its spec",
        ),
        Field::new(
            "podGroup",
            Kind::Object(&POD_GROUP),
            "the gang they are placed as, where `job` is a whole Job",
        ),
    ],
);

static JOB_OR_SPEC: Shape = Shape::new("Job or JobSpec", &FIELDS_OF_EITHER);

const FIELDS_OF_EITHER: [Field; JOB_FIELDS.len() + JOB_SPEC_FIELDS.len()] = {
    let mut all = [STATUS; JOB_FIELDS.len() + JOB_SPEC_FIELDS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < JOB_FIELDS.len() {
            JOB_FIELDS[at]
        } else {
            JOB_SPEC_FIELDS[at - JOB_FIELDS.len()]
        };
        at += 1;
    }
    all
};
