//! kube-batch's `MPI`, in both its shapes.

use unisono_dialect::{Field, Kind, Shape};
use unisono_job::Dialect;

use super::{CONDITIONS, Column, REMEMBERED, Resource, Rule, Version};

/// `MPI`.
pub(super) const RESOURCE: Resource = Resource {
    group: "scheduling.incubator.k8s.io",
    kind: "MPI",
    plural: "mpis",
    singular: "mpi",
    short_names: &[],
    // Kubernetes' own groups want one.
    annotations: &[(
        "api-approved.kubernetes.io",
        "unapproved, kube-batch's own group; its project has ended",
    )],
    versions: &[Version {
        name: "v1alpha1",
        dialect: Dialect::KubeBatch,
        stored: true,
        columns: &[
            Column {
                name: "State",
                kind: "string",
                path: ".status.job.conditions[-1:].type",
                about: "Complete or Failed, once it has ended.",
                wide: false,
            },
            Column {
                name: "Gang",
                kind: "string",
                path: ".status.podGroup.phase",
                about: "Whether its pods are placed.",
                wide: false,
            },
            Column {
                name: "Running",
                kind: "integer",
                path: ".status.podGroup.running",
                about: "Pods that run.",
                wide: false,
            },
            Column {
                name: "Started",
                kind: "date",
                path: ".status.job.startTime",
                about: "When the job began.",
                wide: true,
            },
            Column {
                name: "Completed",
                kind: "date",
                path: ".status.job.completionTime",
                about: "When the job ended.",
                wide: true,
            },
        ],
        // The number of pods stands in two or three places.
        scale: None,
        status: &STATUS,
        rules: &[HAS_CONTAINERS, ALL_AT_A_TIME, GANG_FITS],
        refuses: true,
    }],
};

const HAS_CONTAINERS: Rule = Rule {
    holds: "it.?spec.?job.?spec.?template.or(it.?spec.?job.?template)\
            .?spec.?containers.orValue([]).size() > 0",
    message: "spec.job needs a template with at least one container, in its spec where it is a whole Job",
};
const ALL_AT_A_TIME: Rule = Rule {
    holds: "it.?spec.?job.?spec.?completions.or(it.?spec.?job.?completions).orValue(1) <= \
            it.?spec.?job.?spec.?parallelism.or(it.?spec.?job.?parallelism).orValue(1)",
    message: "spec.job needs parallelism as large as completions: pods that come later never reach the host file",
};
const GANG_FITS: Rule = Rule {
    holds: "it.?spec.?podGroup.?spec.?minMember.orValue(0) <= \
            it.?spec.?job.?spec.?completions.or(it.?spec.?job.?spec.?parallelism).orValue(1)",
    message: "spec.podGroup.spec.minMember is larger than the number of pods, so that nothing would ever be placed",
};

static STATUS: Shape = Shape::open(
    "status",
    &[
        Field::new("job", Kind::Object(&JOB), "what became of the Job"),
        Field::new("podGroup", Kind::Object(&POD_GROUP), "what became of the gang"),
        Field::new(
            "descriptors",
            Kind::Map(&Kind::Text),
            "what else there is to know: its executor, the objects with its files, its PodGroup, the attempt",
        ),
        CONDITIONS,
        REMEMBERED,
    ],
);

static JOB: Shape = Shape::open(
    "Job status",
    &[
        Field::new("active", Kind::COUNT, "pods that exist and have not ended"),
        Field::new("succeeded", Kind::COUNT, "pods that ended well"),
        Field::new("failed", Kind::COUNT, "tries that failed"),
        Field::new("startTime", Kind::Text, "when the job began"),
        Field::new("completionTime", Kind::Text, "when the job ended"),
        CONDITIONS,
    ],
);

static POD_GROUP: Shape = Shape::open(
    "PodGroup status",
    &[
        Field::new("phase", Kind::Text, "Pending, Running or Unknown"),
        Field::new("running", Kind::COUNT, "pods that run"),
        Field::new("succeeded", Kind::COUNT, "pods that ended well"),
        Field::new("failed", Kind::COUNT, "tries that failed"),
        CONDITIONS,
    ],
);
