//! The fields of the forms in which the user writes the launch line, and those that all forms share.

use unisono_job::Dialect;

use super::command_fields;
use crate::shape::{Field, Kind, Shape};

/// More hosts than any cluster has; a file must not be able to ask for an unbounded plan.
pub(super) const MAX_HOSTS: u32 = 100_000;

/// More processes than any host can run.
pub(super) const MAX_PROCESSES: u32 = 10_000;

pub(super) const HOSTS: Kind = Kind::Integer { min: 1, max: MAX_HOSTS as i64 };
pub(super) const PROCESSES: Kind = Kind::Integer { min: 1, max: MAX_PROCESSES as i64 };
const LIMITS: Kind = Kind::Map(&Kind::Quantity);
pub(super) const ENVIRONMENT: Kind =
    Kind::Either(&[Kind::FilledText, Kind::Object(&INLINE_ENVIRONMENT)]);
pub(super) const STRINGS: Kind = Kind::Map(&Kind::Nullable(&Kind::Scalar));

const CODE_KIND: Kind = Kind::Either(&[Kind::FilledText, Kind::Object(&CODE)]);

// Rows of more than one form.
pub(super) const EXPERIMENT: Field = Field::new(
    "experiment_name",
    Kind::FilledText,
    "the name under which runs are listed together",
)
.or("the name of the working folder");
pub(super) const CODE_FOLDER: Field = Field::new(
    "code",
    CODE_KIND,
    "the folder with the program, which becomes the working directory",
);
pub(super) const VARIABLES: Field =
    Field::new("environment_variables", STRINGS, "variables of every process");

/// Kinds of compute that give the job hosts of their own, one of which also launches.
pub(super) const MANAGED: [&str; 2] = ["AmlCompute", "managed"];
/// Kinds of compute that are Kubernetes clusters, where a launcher stands beside the workers.
pub(super) const KUBERNETES: [&str; 4] = ["AksCompute", "AksCluster", "Amlk8s", "k8s"];

/// The field table of a form.
pub(crate) const fn shape(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::AzureFlat => &FLAT_JOB,
        Dialect::AzureCommand => &command_fields::JOB,
        _ => &MPI_JOB,
    }
}

static MPI_JOB: Shape = Shape::new(
    "MpiJob",
    &[
        Field::new("name", Kind::FilledText, "the job's name, unique in its workspace").required(),
        Field::new("type", Kind::OneOfAnyCase(&["MpiJob"]), "the kind of job, `MpiJob`").required(),
        EXPERIMENT,
        Field::new("launcher", Kind::Object(&LAUNCHER), "what starts the ranks").required(),
        Field::new("worker", Kind::Object(&WORKER), "what hosts the ranks").required(),
        Field::new("compute", Kind::Object(&COMPUTE), "where the job runs, and on how many hosts")
            .required(),
    ],
);

static LAUNCHER: Shape = Shape::new(
    "launcher",
    &[
        Field::new("spec", Kind::Object(&LAUNCHER_SPEC), "what the launcher runs and needs")
            .required(),
        Field::new(
            "resource_limits",
            LIMITS,
            "limits of the launcher; another place for `spec.resource_limits`",
        ),
    ],
);

static LAUNCHER_SPEC: Shape = Shape::new(
    "launcher.spec",
    &[
        Field::new(
            "command",
            Kind::FilledText,
            "the launch line (`mpirun …`, `mpiexec …`, `horovodrun …`), run once",
        )
        .required(),
        CODE_FOLDER,
        Field::new(
            "environment",
            ENVIRONMENT,
            "the environment of the launcher, `azureml:NAME:VERSION`",
        )
        .required(),
        Field::new("resource_limits", LIMITS, "the most the launcher may use, on Kubernetes"),
    ],
);

static WORKER: Shape = Shape::new(
    "worker",
    &[
        Field::new("spec", Kind::Object(&WORKER_SPEC), "what a worker needs").required(),
        Field::new("resource_limits", LIMITS, "limits of a worker; another place for `spec.resource_limits`"),
        Field::new("num_replicas", HOSTS, "how many workers, on Kubernetes")
            .or("compute.instance_count, else the ranks of the launch line divided by the processes of a worker"),
        Field::new("slots_per", PROCESSES, "processes on each worker")
            .or("the worker's GPU limit, else the launch line's ranks spread over the hosts, else 1"),
    ],
);

static WORKER_SPEC: Shape = Shape::new(
    "worker.spec",
    &[
        Field::new(
            "environment",
            ENVIRONMENT,
            "the environment of the workers, `azureml:NAME:VERSION`",
        )
        .required(),
        Field::new(
            "resource_limits",
            LIMITS,
            "the most a worker may use, such as `nvidia.com/gpu: 4` (or `gpu: 4`)",
        ),
        Field::new(
            "command",
            Kind::Any,
            "not used by MPI jobs: the launcher starts what workers run",
        ),
        Field::new("code", Kind::Any, "not used by MPI jobs: the launcher's code is on every host"),
    ],
);

static COMPUTE: Shape = Shape::new(
    "compute",
    &[
        Field::new(
            "type",
            Kind::OneOfAnyCase(&["AmlCompute", "AksCompute", "AksCluster", "Amlk8s"]),
            "the kind of cluster: `AmlCompute` (managed hosts) or `AksCompute` (Kubernetes)",
        )
        .required(),
        Field::new("target", Kind::FilledText, "the name of the cluster").required(),
        Field::new("instance_count", HOSTS, "how many hosts; needed with AmlCompute"),
        Field::new("node_count", HOSTS, "an older name of `instance_count`"),
        Field::new("process_count_per_instance", PROCESSES, "processes on each host")
            .or("worker.slots_per, and what stands for that"),
    ],
);

static FLAT_JOB: Shape = Shape::new(
    "the flattened MPI job",
    &[
        Field::new("name", Kind::FilledText, "the job's name").or("the name of the file"),
        Field::new("type", Kind::Text, "the kind of job; not needed in this form"),
        EXPERIMENT,
        Field::new("description", Kind::Text, "what the job is for"),
        Field::new("command", Kind::FilledText, "the launch line, run once").required(),
        CODE_FOLDER,
        Field::new(
            "environment",
            ENVIRONMENT,
            "a reference `azureml:NAME:VERSION`, or `docker.image`",
        )
        .required(),
        VARIABLES,
        Field::new("distributed", Kind::Object(&DISTRIBUTED), "how the job is spread over hosts")
            .required(),
        Field::new("compute", Kind::Object(&FLAT_COMPUTE), "where the job runs").required(),
    ],
);

static DISTRIBUTED: Shape = Shape::open(
    "distributed",
    &[Field::new("mpi", Kind::Object(&MPI), "the launcher and the workers of an MPI job")],
);

static MPI: Shape = Shape::new(
    "distributed.mpi",
    &[
        Field::new("worker", Kind::Object(&FLAT_WORKER), "what hosts the ranks"),
        Field::new(
            "launcher",
            Kind::Object(&FLAT_LAUNCHER),
            "what starts the ranks, on Kubernetes",
        ),
    ],
);

static FLAT_WORKER: Shape = Shape::new(
    "distributed.mpi.worker",
    &[
        Field::new("count", HOSTS, "how many workers")
            .or("compute.instance_count, else as the launch line tells"),
        Field::new("slots_per", PROCESSES, "processes on each worker").or(
            "the worker's GPU limit, else the launch line's ranks spread over the hosts, else 1",
        ),
        Field::new(
            "resources",
            Kind::Object(&FLAT_RESOURCES),
            "what a worker may use, on Kubernetes",
        ),
    ],
);

static FLAT_LAUNCHER: Shape = Shape::new(
    "distributed.mpi.launcher",
    &[Field::new(
        "resources",
        Kind::Object(&FLAT_RESOURCES),
        "what the launcher may use, on Kubernetes",
    )],
);

static FLAT_RESOURCES: Shape = Shape::new(
    "resources",
    &[Field::new(
        "limits",
        LIMITS,
        "the most it may use, such as `gpu: 4`, `cpu: 2`, `memory: 8Gi`",
    )],
);

static FLAT_COMPUTE: Shape = Shape::new(
    "compute",
    &[
        Field::new(
            "infrastructure",
            Kind::OneOfAnyCase(&["managed", "k8s"]),
            "`managed` (hosts of Azure ML's own) or `k8s`",
        )
        .or("managed"),
        Field::new(
            "type",
            Kind::OneOfAnyCase(&[
                "managed",
                "k8s",
                "AmlCompute",
                "AksCompute",
                "AksCluster",
                "Amlk8s",
            ]),
            "an older name of `infrastructure`",
        ),
        Field::new("target", Kind::FilledText, "the name of the cluster"),
        Field::new(
            "instance_type",
            Kind::FilledText,
            "the size of a host, such as `Standard_NC24`",
        ),
        Field::new("instance_count", HOSTS, "an older name of `distributed.mpi.worker.count`"),
    ],
);

static CODE: Shape = Shape::new(
    "code",
    &[
        Field::new("path", Kind::FilledText, "the folder, relative to the file"),
        Field::new(
            "local_path",
            Kind::FilledText,
            "the folder, as the preview of March 2021 wrote it",
        ),
        Field::new(
            "directory",
            Kind::FilledText,
            "the folder, as the preview of December 2020 wrote it",
        ),
    ],
);

static INLINE_ENVIRONMENT: Shape = Shape::new(
    "environment",
    &[
        Field::new("image", Kind::FilledText, "the container image"),
        Field::new("docker", Kind::Object(&DOCKER), "the container image, as the preview wrote it"),
        Field::new("conda_file", Kind::Any, "packages to add to the image"),
        Field::new("build", Kind::Any, "how to build the image"),
        Field::new("os_type", Kind::Text, "the system inside the image"),
        Field::new("name", Kind::Any, "not allowed here: an inline environment has no name"),
        Field::new("version", Kind::Any, "not allowed here: an inline environment has no version"),
    ],
);

static DOCKER: Shape = Shape::new(
    "environment.docker",
    &[
        Field::new("image", Kind::FilledText, "the container image"),
        Field::new("build", Kind::Any, "how to build the image"),
    ],
);
