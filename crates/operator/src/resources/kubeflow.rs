//! `MPIJob` of Kubeflow, in its four versions.

use unisono_dialect::{Field, Kind, Shape};
use unisono_job::Dialect;

use super::{COMPLETED, CONDITIONS, Column, REMEMBERED, Resource, Rule, STARTED, Scale, Version};

/// `MPIJob`.
pub(super) const RESOURCE: Resource = Resource {
    group: "kubeflow.org",
    kind: "MPIJob",
    plural: "mpijobs",
    singular: "mpijob",
    short_names: &["mj", "mpij"],
    annotations: &[],
    versions: &[
        Version {
            name: "v1alpha1",
            dialect: Dialect::KubeflowV1alpha1,
            stored: false,
            columns: &[
                Column {
                    name: "State",
                    kind: "string",
                    path: ".status.launcherStatus",
                    about: "What the launcher does.",
                    wide: false,
                },
                Column {
                    name: "Workers",
                    kind: "integer",
                    path: ".status.workerReplicas",
                    about: "Workers that are up.",
                    wide: false,
                },
                STARTED,
                COMPLETED,
            ],
            scale: Some(Scale {
                wanted: ".spec.replicas",
                present: ".status.workerReplicas",
                rule: ONE_COUNT,
            }),
            status: &STATUS,
            rules: &[ONE_SIZE, WHOLE_GPUS, WHOLE_UNITS, TEMPLATE_HAS_CONTAINERS],
            refuses: true,
        },
        Version {
            name: "v1alpha2",
            dialect: Dialect::KubeflowV1alpha2,
            stored: false,
            columns: REPLICA_COLUMNS,
            scale: Some(WORKERS),
            status: &STATUS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                HAS_WORKER,
                COUNTS_WORKERS,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
            ],
            // Its own definition checked bounds of numbers only, and whatever makes objects of it may rely on that.
            refuses: false,
        },
        Version {
            name: "v1",
            dialect: Dialect::KubeflowV1,
            stored: false,
            columns: REPLICA_COLUMNS,
            scale: Some(WORKERS),
            status: &STATUS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
                KEEPS_MANAGER,
            ],
            refuses: true,
        },
        Version {
            name: "v2beta1",
            dialect: Dialect::KubeflowV2beta1,
            stored: true,
            columns: REPLICA_COLUMNS,
            scale: Some(WORKERS),
            status: &STATUS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                COUNTS_WORKERS,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
                NAMES_FIT,
                KEEPS_MANAGER,
            ],
            refuses: true,
        },
    ],
};

const WORKERS: Scale = Scale {
    wanted: ".spec.mpiReplicaSpecs.Worker.replicas",
    present: ".status.replicaStatuses.Worker.active",
    rule: WORKERS_STAND_HERE,
};

const WORKERS_STAND_HERE: Rule = Rule {
    holds: "!has(it.mpiReplicaSpecs) || !has(it.mpiReplicaSpecs.Worker) || has(it.mpiReplicaSpecs.Worker.template)",
    message: "the job has no spec.mpiReplicaSpecs.Worker to scale; a job of v1alpha1 is scaled by \
              kubectl scale mpijobs.v1alpha1.kubeflow.org/NAME --replicas=N",
};
const ONE_COUNT: Rule = Rule {
    holds: "!has(it.replicas) || !has(it.gpus) && !has(it.processingUnits)",
    message: "the job has as many workers as spec.gpus or spec.processingUnits asks for; change that in place of spec.replicas",
};

const REPLICA_COLUMNS: &[Column] = &[
    Column {
        name: "State",
        kind: "string",
        // The newest condition is the last.
        path: ".status.conditions[-1:].type",
        about: "The newest condition.",
        wide: false,
    },
    Column {
        name: "Workers",
        kind: "integer",
        // A v1alpha1 job has no such field, or only a number of GPUs, and is shown in these versions, too.
        path: ".status.unisono.workers",
        about: "Workers the job asks for.",
        wide: false,
    },
    Column {
        name: "Reason",
        kind: "string",
        path: ".status.conditions[-1:].reason",
        about: "Why it is in this state.",
        wide: true,
    },
    STARTED,
    COMPLETED,
];

const HAS_LAUNCHER: Rule = Rule {
    holds: "it.?spec.?mpiReplicaSpecs.?Launcher.hasValue()",
    message: "spec.mpiReplicaSpecs needs Launcher: the pod that runs mpirun",
};
const HAS_WORKER: Rule = Rule {
    holds: "it.?spec.?mpiReplicaSpecs.?Worker.hasValue()",
    message: "spec.mpiReplicaSpecs needs Worker: the pods that host ranks",
};
const KNOWN_ROLES: Rule = Rule {
    holds: "it.?spec.?mpiReplicaSpecs.orValue({}).all(role, role in ['Launcher', 'Worker'])",
    message: "spec.mpiReplicaSpecs takes exactly the keys Launcher and Worker",
};
const COUNTS_WORKERS: Rule = Rule {
    holds: "!it.?spec.?mpiReplicaSpecs.?Worker.hasValue() || \
            it.?spec.?mpiReplicaSpecs.?Worker.?replicas.orValue(0) >= 1",
    message: "spec.mpiReplicaSpecs.Worker needs replicas, at least 1",
};
const LAUNCHER_HAS_CONTAINERS: Rule = Rule {
    holds: "!it.?spec.?mpiReplicaSpecs.?Launcher.hasValue() || \
            it.?spec.?mpiReplicaSpecs.?Launcher.?template.?spec.?containers.orValue([]).size() > 0",
    message: "spec.mpiReplicaSpecs.Launcher.template.spec.containers needs at least one container",
};
const WORKER_HAS_CONTAINERS: Rule = Rule {
    holds: "!it.?spec.?mpiReplicaSpecs.?Worker.hasValue() || \
            it.?spec.?mpiReplicaSpecs.?Worker.?template.?spec.?containers.orValue([]).size() > 0",
    message: "spec.mpiReplicaSpecs.Worker.template.spec.containers needs at least one container",
};
const NAMES_FIT: Rule = Rule {
    // The last worker is called NAME-worker-N, which must be a label of DNS that begins with a letter.
    holds: "!it.metadata.?name.hasValue() || \
            it.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && \
            it.metadata.name.size() + 8 + \
            string(it.?spec.?mpiReplicaSpecs.?Worker.?replicas.orValue(1) - 1).size() <= 63",
    message: "metadata.name begins with a letter, is made of lower-case letters, digits and dashes, and leaves room \
              for -worker-N within 63 characters",
};
const ONE_SIZE: Rule = Rule {
    holds: "['gpus', 'processingUnits', 'replicas'].filter(way, way in it.?spec.orValue({})).size() == 1",
    message: "spec needs exactly one of gpus, processingUnits and replicas",
};
const WHOLE_GPUS: Rule = Rule {
    holds: "it.?spec.?gpus.orValue(1) in [1, 2, 4] || it.spec.gpus % 8 == 0",
    message: "spec.gpus is 1, 2, 4 or a multiple of 8",
};
const WHOLE_UNITS: Rule = Rule {
    holds: "it.?spec.?processingUnits.orValue(1) in [1, 2, 4] || it.spec.processingUnits % 8 == 0",
    message: "spec.processingUnits is 1, 2, 4 or a multiple of 8",
};
const TEMPLATE_HAS_CONTAINERS: Rule = Rule {
    holds: "it.?spec.?template.?spec.?containers.orValue([]).size() > 0",
    message: "spec.template.spec.containers needs at least one container",
};
const KEEPS_MANAGER: Rule = Rule {
    holds: "request.operation == 'CREATE' || \
            object.?spec.?runPolicy.?managedBy == oldObject.?spec.?runPolicy.?managedBy",
    message: "spec.runPolicy.managedBy cannot change while the job exists",
};

static STATUS: Shape = Shape::open(
    "status",
    &[
        CONDITIONS,
        Field::new("replicaStatuses", Kind::Map(&Kind::Object(&REPLICAS)), "pods of each role"),
        Field::new("launcherStatus", Kind::Text, "Active, Succeeded or Failed; only in v1alpha1"),
        Field::new("workerReplicas", Kind::COUNT, "workers that are up; only in v1alpha1"),
        Field::new("startTime", Kind::Text, "when the job began; again when it was resumed"),
        Field::new("completionTime", Kind::Text, "when the job ended"),
        REMEMBERED,
    ],
);

static REPLICAS: Shape = Shape::open(
    "replica status",
    &[
        Field::new("active", Kind::COUNT, "pods that are up"),
        Field::new("succeeded", Kind::COUNT, "pods that ended well"),
        Field::new("failed", Kind::COUNT, "pods that ended badly"),
    ],
);
