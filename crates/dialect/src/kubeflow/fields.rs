//! The field tables of `MPIJob` v1alpha2, v1 and v2beta1; v1alpha1 has its own file.

use crate::kubernetes::{POD_TEMPLATE, object};
use crate::shape::{Field, Kind, Shape};

/// What `kind` is for in every version.
pub(super) const KIND: &str = "the kind of object: MPIJob";

const CLEAN_POD_POLICIES: &[&str] = &["None", "Running", "All"];
const SLOTS: Field = Field::new("slotsPerWorker", Kind::POSITIVE, "ranks on each worker").or("1");
const CLEAN_POD_POLICY: Field = Field::new(
    "cleanPodPolicy",
    Kind::OneOf(CLEAN_POD_POLICIES),
    "which workers are removed when the job has ended",
)
.or("None");
/// Definitions before v2beta1 took any word.
const ANY_CLEAN_POD_POLICY: Field = Field::new(
    "cleanPodPolicy",
    Kind::Text,
    "which workers are removed when the job has ended: None, Running or All",
)
.or("None");
const MAIN_CONTAINER: Field =
    Field::new("mainContainer", Kind::Text, "the container of each pod in which ranks are started")
        .or("the first container");
pub(super) const DEADLINE: Field =
    Field::new("activeDeadlineSeconds", Kind::SECONDS, "seconds after which the job is stopped")
        .or("no limit");
pub(super) const BACKOFF: Field =
    Field::new("backoffLimit", Kind::COUNT, "how often a failed launcher is started again").or("6");
const TTL: Field = Field::new(
    "ttlSecondsAfterFinished",
    Kind::COUNT,
    "seconds after its end when the job is removed",
)
.or("never");
const SUSPEND: Field =
    Field::new("suspend", Kind::Boolean, "whether the job waits until somebody resumes it")
        .or("false");
const SCHEDULING: Field =
    Field::new("schedulingPolicy", Kind::Object(&SCHEDULING_POLICY), "all-or-nothing placement");

/// Its old definition knew bounds of numbers and nothing else: what it took with other words is taken here, and told.
pub(super) static V1ALPHA2: Shape = Shape::new("MPIJob (v1alpha2)", &object(KIND, &V1ALPHA2_SPEC));

static V1ALPHA2_SPEC: Shape = Shape::new(
    "MPIJobSpec (v1alpha2)",
    &[
        SLOTS,
        BACKOFF,
        DEADLINE,
        ANY_CLEAN_POD_POLICY,
        Field::new(
            "mpiReplicaSpecs",
            Kind::Object(&V1ALPHA2_REPLICAS),
            "the launcher and the workers",
        )
        .required(),
        MAIN_CONTAINER,
        Field::new(
            "runPolicy",
            Kind::Object(&V1ALPHA2_RUN_POLICY),
            "backoffLimit and activeDeadlineSeconds, which win over those above",
        ),
        Field::new(
            "mpiDistribution",
            Kind::Text,
            "which MPI the image holds: OpenMPI, IntelMPI or MPICH",
        )
        .or("OpenMPI"),
    ],
);

static V1ALPHA2_REPLICAS: Shape = Shape::open(
    "mpiReplicaSpecs",
    &[launcher(&V1ALPHA2_LAUNCHER), workers(&V1ALPHA2_WORKER).required()],
);

/// The launcher, as a role of this shape.
const fn launcher(shape: &'static Shape) -> Field {
    Field::new("Launcher", Kind::Object(shape), "the pod that runs mpirun").required()
}

/// The workers, as a role of this shape.
const fn workers(shape: &'static Shape) -> Field {
    Field::new("Worker", Kind::Object(shape), "the pods that host ranks")
}

/// The rows of a role.
const fn member(replicas: Field, restart: Field) -> [Field; 3] {
    [replicas, restart, TEMPLATE]
}

const fn restart(kind: Kind, doc: &'static str, default: &'static str) -> Field {
    Field::new("restartPolicy", kind, doc).or(default)
}

const ANY_RESTART: Kind = Kind::OneOf(&["Never", "OnFailure", "Always", "ExitCode"]);
const TEMPLATE: Field =
    Field::new("template", Kind::Object(&POD_TEMPLATE), "what the pods are made of").required();
const ONE_LAUNCHER: Field =
    Field::new("replicas", Kind::Integer { min: 1, max: 1 }, "always 1").or("1");

static V1ALPHA2_LAUNCHER: Shape = Shape::new(
    "Launcher (v1alpha2)",
    &member(
        ONE_LAUNCHER,
        restart(Kind::Text, "Never, or anything else for OnFailure", "OnFailure"),
    ),
);

static V1ALPHA2_WORKER: Shape = Shape::new(
    "Worker (v1alpha2)",
    &member(
        Field::new("replicas", Kind::POSITIVE, "the number of workers").required(),
        restart(Kind::Text, "has no effect: workers are always restarted", "Always"),
    ),
);

static V1ALPHA2_RUN_POLICY: Shape = Shape::new(
    "RunPolicy (v1alpha2)",
    &[
        BACKOFF,
        DEADLINE,
        Field::new("cleanPodPolicy", Kind::Any, "has no effect here"),
        Field::new("ttlSecondsAfterFinished", Kind::Any, "has no effect in this version"),
        Field::new("schedulingPolicy", Kind::Any, "has no effect in this version"),
    ],
);

pub(super) static V1: Shape = Shape::new("MPIJob (v1)", &object(KIND, &V1_SPEC));

static V1_SPEC: Shape = Shape::new(
    "MPIJobSpec (v1)",
    &[
        SLOTS,
        ANY_CLEAN_POD_POLICY,
        Field::new("mpiReplicaSpecs", Kind::Object(&V1_REPLICAS), "the launcher and the workers")
            .required(),
        MAIN_CONTAINER,
        Field::new("runPolicy", Kind::Object(&V1_RUN_POLICY), "the rules of the job's life"),
    ],
);

static V1_REPLICAS: Shape =
    Shape::open("mpiReplicaSpecs", &[launcher(&V1_LAUNCHER), workers(&V1_WORKER)]);

static V1_LAUNCHER: Shape = Shape::new(
    "Launcher (v1)",
    &member(ONE_LAUNCHER, restart(ANY_RESTART, "when a failed launcher is started again", "Never")),
);

static V1_WORKER: Shape = Shape::new(
    "Worker (v1)",
    &member(
        Field::new("replicas", Kind::COUNT, "the number of workers").or("0"),
        restart(ANY_RESTART, "when a failed worker is started again", "Never"),
    ),
);

static V1_RUN_POLICY: Shape = Shape::new(
    "RunPolicy (v1)",
    &[
        Field::new(
            "cleanPodPolicy",
            Kind::Text,
            "which workers are removed at the end: None, Running or All; wins over the one above",
        )
        .or("None"),
        TTL,
        DEADLINE,
        BACKOFF,
        SCHEDULING,
        SUSPEND,
        Field::new(
            "managedBy",
            Kind::OneOf(&["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]),
            "who runs the job",
        )
        .or("kubeflow.org/training-operator"),
    ],
);

pub(super) static V2BETA1: Shape = Shape::new("MPIJob (v2beta1)", &object(KIND, &V2BETA1_SPEC));

static V2BETA1_SPEC: Shape = Shape::new(
    "MPIJobSpec (v2beta1)",
    &[
        Field::new("slotsPerWorker", Kind::COUNT, "ranks on each worker").or("1"),
        Field::new("runLauncherAsWorker", Kind::Boolean, "whether the launcher hosts ranks too")
            .or("false"),
        Field::new("sshAuthMountPath", Kind::Text, "where the ssh keys are mounted")
            .or("/root/.ssh"),
        Field::new(
            "launcherCreationPolicy",
            Kind::Text,
            "AtStartup, or WaitForWorkersReady to create the launcher after its workers",
        )
        .or("AtStartup"),
        Field::new(
            "mpiImplementation",
            Kind::OneOf(&["OpenMPI", "Intel", "MPICH"]),
            "which MPI the image holds",
        )
        .or("OpenMPI"),
        Field::new("runPolicy", Kind::Object(&V2BETA1_RUN_POLICY), "the rules of the job's life"),
        Field::new(
            "mpiReplicaSpecs",
            Kind::Object(&V2BETA1_REPLICAS),
            "the launcher and the workers",
        )
        .required(),
    ],
);

static V2BETA1_REPLICAS: Shape =
    Shape::open("mpiReplicaSpecs", &[launcher(&V2BETA1_LAUNCHER), workers(&V2BETA1_WORKER)]);

const TWO_RESTARTS: Kind = Kind::OneOf(&["Never", "OnFailure"]);

static V2BETA1_LAUNCHER: Shape = Shape::new(
    "Launcher (v2beta1)",
    &member(
        ONE_LAUNCHER,
        restart(TWO_RESTARTS, "when a failed launcher is started again", "OnFailure"),
    ),
);

static V2BETA1_WORKER: Shape = Shape::new(
    "Worker (v2beta1)",
    &member(
        Field::new("replicas", Kind::POSITIVE, "the number of workers").required(),
        restart(TWO_RESTARTS, "when a failed worker is started again", "Never"),
    ),
);

static V2BETA1_RUN_POLICY: Shape = Shape::new(
    "RunPolicy (v2beta1)",
    &[
        CLEAN_POD_POLICY,
        TTL,
        DEADLINE,
        BACKOFF,
        SCHEDULING,
        SUSPEND,
        Field::new(
            "managedBy",
            Kind::OneOf(&["kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"]),
            "who runs the job",
        )
        .or("kubeflow.org/mpi-operator"),
    ],
);

static SCHEDULING_POLICY: Shape = Shape::new(
    "SchedulingPolicy",
    &[
        Field::new("minAvailable", Kind::COUNT, "how many pods must fit at once")
            .or("the workers and the launcher"),
        Field::new("queue", Kind::Text, "the queue the job waits in"),
        Field::new("minResources", Kind::Map(&Kind::Quantity), "resources that must be free")
            .or("what the pods ask for"),
        Field::new("priorityClass", Kind::Text, "the priority class")
            .or("that of the launcher's template, else that of the workers'"),
        Field::new("scheduleTimeoutSeconds", Kind::COUNT, "seconds the job may wait for its place"),
    ],
);
