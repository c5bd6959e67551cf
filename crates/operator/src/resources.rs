//! The kinds of job object that the operator serves, each with its versions: one table, from which definitions, policies,
//! permissions and watches are made.

use unisono_job::Dialect;

/// A kind of job object.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Its API group.
    pub(crate) group: &'static str,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Its name in paths.
    pub(crate) plural: &'static str,
    /// Its name for one.
    pub(crate) singular: &'static str,
    /// What people type.
    pub(crate) short_names: &'static [&'static str],
    /// Its versions, oldest first.
    pub(crate) versions: &'static [Version],
}

/// A version of a kind.
#[derive(Debug)]
pub(crate) struct Version {
    /// Its name.
    pub(crate) name: &'static str,
    /// The dialect that objects of this version are written in.
    pub(crate) dialect: Dialect,
    /// Whether objects are stored under it. Nothing is converted, so it decides nothing else.
    pub(crate) stored: bool,
    /// What `kubectl get` shows, besides name and age.
    pub(crate) columns: &'static [Column],
    /// Where `kubectl scale` finds the number of workers.
    pub(crate) scale: Scale,
    /// What objects must be, beyond the type of each field.
    pub(crate) rules: &'static [Rule],
}

/// A column of `kubectl get`.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// Whether only `--output wide` shows it.
    pub(crate) wide: bool,
}

/// Where the number of workers stands.
#[derive(Debug)]
pub(crate) struct Scale {
    pub(crate) wanted: &'static str,
    pub(crate) present: &'static str,
}

/// A rule over a whole object.
#[derive(Debug)]
pub(crate) struct Rule {
    /// An expression of the common expression language that must hold; `it` is the object.
    pub(crate) holds: &'static str,
    /// What to tell whoever breaks it.
    pub(crate) message: &'static str,
}

impl Resource {
    /// The name of its definition.
    pub(crate) fn full_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// Every kind.
pub(crate) static RESOURCES: &[Resource] = &[Resource {
    group: "kubeflow.org",
    kind: "MPIJob",
    plural: "mpijobs",
    singular: "mpijob",
    short_names: &["mj", "mpij"],
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
            scale: Scale { wanted: ".spec.replicas", present: ".status.workerReplicas" },
            rules: &[ONE_SIZE, WHOLE_GPUS, WHOLE_UNITS, TEMPLATE_HAS_CONTAINERS],
        },
        Version {
            name: "v1alpha2",
            dialect: Dialect::KubeflowV1alpha2,
            stored: false,
            columns: REPLICA_COLUMNS,
            scale: WORKERS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                HAS_WORKER,
                COUNTS_WORKERS,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
            ],
        },
        Version {
            name: "v1",
            dialect: Dialect::KubeflowV1,
            stored: false,
            columns: REPLICA_COLUMNS,
            scale: WORKERS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
                KEEPS_MANAGER,
            ],
        },
        Version {
            name: "v2beta1",
            dialect: Dialect::KubeflowV2beta1,
            stored: true,
            columns: REPLICA_COLUMNS,
            scale: WORKERS,
            rules: &[
                HAS_LAUNCHER,
                KNOWN_ROLES,
                COUNTS_WORKERS,
                LAUNCHER_HAS_CONTAINERS,
                WORKER_HAS_CONTAINERS,
                NAMES_FIT,
                KEEPS_MANAGER,
            ],
        },
    ],
}];

const WORKERS: Scale = Scale {
    wanted: ".spec.mpiReplicaSpecs.Worker.replicas",
    present: ".status.replicaStatuses.Worker.active",
};

const STARTED: Column = Column {
    name: "Started",
    kind: "date",
    path: ".status.startTime",
    about: "When the job began.",
    wide: true,
};
const COMPLETED: Column = Column {
    name: "Completed",
    kind: "date",
    path: ".status.completionTime",
    about: "When the job ended.",
    wide: true,
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
        path: ".spec.mpiReplicaSpecs.Worker.replicas",
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
