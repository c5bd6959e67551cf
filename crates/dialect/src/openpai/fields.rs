//! The fields of OpenPAI's job configuration, version 1.

use unisono_job::Dialect;

use super::protocol;
use crate::shape::{Field, Form, Kind, Shape};

/// The field table of a version.
pub(crate) const fn shape(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::OpenPaiV2 => &protocol::JOB,
        _ => &JOB,
    }
}

/// As many tasks as OpenPAI's launcher accepts in one role.
pub(super) const MAX_TASKS: i64 = 50_000;

/// As many roles as one job may have: each stands in names and variables of all others.
pub(super) const MAX_ROLES: usize = 1000;

const PORTS: Kind = Kind::Integer { min: 0, max: 65_535 };
const MIN_COUNT: Kind = Kind::Nullable(&Kind::POSITIVE);

static JOB: Shape = Shape::new(
    "the job",
    &[
        Field::new("jobName", Kind::Form(&JOB_NAME), "the job's name").required(),
        Field::new("image", Kind::FilledText, "the container image of every task").required(),
        Field::new("authFile", Kind::Text, "a file with the registry's address, user and password"),
        Field::new("dataDir", Kind::Text, "where the data is; tasks find it as PAI_DATA_DIR"),
        Field::new("outputDir", Kind::Text, "where results go; tasks find it as PAI_OUTPUT_DIR"),
        Field::new("codeDir", Kind::Text, "the folder that every task starts in; tasks find it as PAI_CODE_DIR"),
        Field::new("taskRoles", Kind::FilledList(&Kind::Object(&ROLE)), "the kinds of task").required(),
        Field::new("gpuType", Kind::Text, "the kind of GPU the machines must have"),
        Field::new("killAllOnCompletedTaskNumber", Kind::Any, "obsolete, without effect"),
        Field::new("virtualCluster", Kind::Text, "the queue the job waits in").or("default"),
        Field::new(
            "retryCount",
            Kind::Integer { min: -2, max: i32::MAX as i64 },
            "how often the whole job is tried again after a failure of unknown cause; -1: until it succeeds, -2: always",
        )
        .or("0"),
        Field::new("jobEnvs", Kind::Map(&Kind::Any), "variables of every task; `paiAzRDMA` and `isDebug` have a meaning of their own"),
        Field::new("extras", Kind::Map(&Kind::Any), "values of the user's own"),
    ],
);

static ROLE: Shape = Shape::new(
    "the task role",
    &[
        Field::new(
            "name",
            Kind::Form(&ROLE_NAME),
            "the role's name; its tasks are called NAME-0, NAME-1, …",
        )
        .required(),
        Field::new("taskNumber", Kind::Integer { min: 0, max: MAX_TASKS }, "how many tasks")
            .or("1"),
        Field::new("cpuNumber", Kind::COUNT, "processors of each task").or("1"),
        Field::new("memoryMB", Kind::COUNT, "memory of each task, in MiB").or("100"),
        Field::new("shmMB", Kind::COUNT, "size of /dev/shm of each task, in MiB; at most memoryMB")
            .or("64"),
        Field::new("gpuNumber", Kind::COUNT, "GPUs of each task; also its rank slots").or("0"),
        Field::new("portList", Kind::List(&Kind::Object(&PORT)), "ports of each task")
            .or("one port each for `http` and `ssh`"),
        Field::new("command", Kind::FilledText, "what each task runs, by bash").required(),
        Field::new(
            "minFailedTaskCount",
            MIN_COUNT,
            "this many failed tasks fail the job; null: never",
        )
        .or("1"),
        Field::new(
            "minSucceededTaskCount",
            MIN_COUNT,
            "this many succeeded tasks make the job succeed; null: never",
        )
        .or("null"),
    ],
);

static PORT: Shape = Shape::new(
    "the port list",
    &[
        Field::new("label", Kind::Form(&ROLE_NAME), "the name under which tasks find the ports")
            .required(),
        Field::new("beginAt", PORTS, "the first port; 0: any").or("0"),
        Field::new("portNumber", PORTS, "how many ports").or("1"),
    ],
);

static JOB_NAME: Form = Form {
    name: "a job name (letters, digits, `-`, `.` and `_`)",
    fits: |text| is_made_of(text, "-._") && !text.starts_with('.'),
    pattern: r"^[A-Za-z0-9\-_][A-Za-z0-9\-._]*$",
};

static ROLE_NAME: Form = Form {
    name: "a name of letters, digits, `.`, `_` and `~` (no dash)",
    fits: |text| is_made_of(text, "._~"),
    pattern: "^[A-Za-z0-9._~]+$",
};

/// Whether a text has only letters, digits and these, and at least one.
pub(super) fn is_made_of(text: &str, others: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(it))
}
