//! The fields of OpenPAI's protocol, version 2.

use super::fields::{MAX_TASKS, is_made_of};
use crate::shape::{Field, Form, Kind, Shape};

const INSTANCES: Kind = Kind::Nullable(&Kind::Integer { min: -1, max: i32::MAX as i64 });
const COMMANDS: Kind = Kind::FilledList(&Kind::Text);
const NAMED: Kind = Kind::FilledText;

pub(super) static JOB: Shape = Shape::new(
    "the job",
    &[
        Field::new(
            "protocolVersion",
            Kind::Either(&[Kind::Integer { min: 2, max: 2 }, Kind::OneOf(&["2"])]),
            "the version of the protocol, 2",
        )
        .required(),
        Field::new("name", Kind::Form(&JOB_NAME), "the job's name").required(),
        Field::new("type", Kind::OneOf(&["job"]), "the kind of document, `job`").required(),
        Field::new("version", Kind::Scalar, "the version of this job"),
        Field::new("contributor", Kind::Text, "who wrote it"),
        Field::new("description", Kind::Text, "what the job is for"),
        Field::new(
            "prerequisites",
            Kind::FilledList(&Kind::Object(&PREREQUISITE)),
            "images, scripts and data that roles refer to",
        ),
        Field::new(
            "parameters",
            Kind::Map(&Kind::Any),
            "values that commands use as `<% $parameters.NAME %>`",
        ),
        Field::new(
            "secrets",
            Kind::Map(&Kind::Any),
            "values that commands use as `<% $secrets.NAME %>`",
        ),
        Field::new(
            "jobRetryCount",
            Kind::COUNT,
            "how often the whole job is tried again after a failure of unknown cause",
        )
        .or("0"),
        Field::new("taskRoles", Kind::Map(&Kind::Object(&ROLE)), "the kinds of task, by name")
            .required(),
        Field::new(
            "deployments",
            Kind::List(&Kind::Object(&DEPLOYMENT)),
            "commands to run before and after those of the roles",
        ),
        Field::new("defaults", Kind::Object(&DEFAULTS), "the queue and the deployment to use"),
        Field::new("extras", Kind::Object(&EXTRAS), "settings of the cluster and of its plugins"),
    ],
);

static PREREQUISITE: Shape = Shape::new(
    "the prerequisite",
    &[
        Field::new("type", Kind::OneOf(&["dockerimage", "script", "output", "data"]), "what it is")
            .required(),
        Field::new("name", NAMED, "the name roles refer to it by").required(),
        Field::new(
            "uri",
            Kind::Either(&[Kind::FilledText, Kind::List(&Kind::FilledText)]),
            "where it is: an image, an address, or (data) a list of addresses",
        ),
        Field::new("auth", Kind::Any, "user and password of the registry"),
        Field::new("protocolVersion", Kind::Any, "the version of the protocol"),
        Field::new("version", Kind::Scalar, "its version"),
        Field::new("contributor", Kind::Text, "who wrote it"),
        Field::new("description", Kind::Text, "what it is for"),
    ],
);

static ROLE: Shape = Shape::new(
    "the task role",
    &[
        Field::new("instances", Kind::Integer { min: 1, max: MAX_TASKS }, "how many tasks").or("1"),
        Field::new("completion", Kind::Object(&COMPLETION), "when this role ends the job"),
        Field::new(
            "taskRetryCount",
            Kind::Integer { min: -2, max: i32::MAX as i64 },
            "how often one task is tried again; only without gang allocation",
        )
        .or("0"),
        Field::new("dockerImage", NAMED, "the name of a `dockerimage` prerequisite").required(),
        Field::new("data", NAMED, "the name of a `data` prerequisite"),
        Field::new("output", NAMED, "the name of an `output` prerequisite"),
        Field::new("script", NAMED, "the name of a `script` prerequisite"),
        Field::new("prerequisites", Kind::List(&NAMED), "names of further prerequisites"),
        Field::new(
            "extraContainerOptions",
            Kind::Object(&CONTAINER),
            "shared memory and InfiniBand",
        ),
        Field::new("resourcePerInstance", Kind::Object(&RESOURCES), "what each task needs")
            .required(),
        Field::new(
            "commands",
            COMMANDS,
            "what each task runs, line by line, by bash that stops at the first failure",
        )
        .required(),
    ],
);

static COMPLETION: Shape = Shape::new(
    "completion",
    &[
        Field::new(
            "minFailedInstances",
            INSTANCES,
            "this many failed tasks fail the job; -1: never",
        )
        .or("1"),
        Field::new(
            "minSucceededInstances",
            INSTANCES,
            "this many succeeded tasks make the job succeed; -1: never",
        )
        .or("all instances"),
    ],
);

static CONTAINER: Shape = Shape::new(
    "extraContainerOptions",
    &[
        Field::new("shmMB", Kind::COUNT, "size of /dev/shm, in MiB").or("512"),
        Field::new("infiniband", Kind::Boolean, "whether each task gets an InfiniBand device")
            .or("false"),
    ],
);

static RESOURCES: Shape = Shape::new(
    "resourcePerInstance",
    &[
        Field::new("cpu", Kind::COUNT, "processors of each task").required(),
        Field::new("memoryMB", Kind::COUNT, "memory of each task, in MiB").required(),
        Field::new("gpu", Kind::COUNT, "GPUs of each task; also its rank slots").required(),
        Field::new(
            "ports",
            Kind::Map(&Kind::Integer { min: 0, max: 65_535 }),
            "how many ports of each label",
        )
        .or("one port each for `http` and `ssh`"),
    ],
);

static DEPLOYMENT: Shape = Shape::new(
    "the deployment",
    &[
        Field::new("name", NAMED, "the name that `defaults.deployment` chooses it by").required(),
        Field::new(
            "taskRoles",
            Kind::Map(&Kind::Object(&DEPLOYED_ROLE)),
            "commands to add, by role",
        )
        .required(),
    ],
);

static DEPLOYED_ROLE: Shape = Shape::new(
    "the deployment's role",
    &[
        Field::new(
            "preCommands",
            Kind::List(&Kind::Text),
            "what to run before the role's commands",
        ),
        Field::new(
            "postCommands",
            Kind::List(&Kind::Text),
            "what to run after the role's commands",
        ),
    ],
);

static DEFAULTS: Shape = Shape::open(
    "defaults",
    &[
        Field::new("virtualCluster", Kind::Text, "the queue the job waits in").or("default"),
        Field::new("deployment", NAMED, "the name of the deployment to use"),
    ],
);

/// The key of the list of plugins.
pub(super) const PLUGINS: &str = "com.microsoft.pai.runtimeplugin";

static EXTRAS: Shape = Shape::open(
    "extras",
    &[
        Field::new(
            PLUGINS,
            Kind::List(&Kind::Object(&PLUGIN)),
            "plugins of the runtime: `ssh` is built in, others are kept",
        ),
        Field::new("gangAllocation", Kind::Boolean, "whether all tasks start together or none")
            .or("true"),
        Field::new("hivedScheduler", Kind::Any, "settings of the HiveD scheduler; kept"),
        Field::new("storages", Kind::Any, "storages to mount; kept"),
    ],
);

static PLUGIN: Shape = Shape::open(
    "the plugin",
    &[
        Field::new("plugin", NAMED, "its name").required(),
        Field::new(
            "parameters",
            Kind::Any,
            "its settings; for ssh: jobssh, sshbarrier, sshbarrierTimeout, userssh",
        ),
    ],
);

static JOB_NAME: Form = Form {
    name: "a job name (letters, digits, `-` and `_`, at most 255)",
    fits: |text| is_made_of(text, "_-") && text.len() <= 255,
    pattern: "^[a-zA-Z0-9_-]{1,255}$",
};

/// Whether a text can be the name of a role: a letter or `_`, then also digits.
pub(super) fn is_role_name(text: &str) -> bool {
    is_made_of(text, "_") && !text.starts_with(|it: char| it.is_ascii_digit())
}
