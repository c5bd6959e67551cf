//! The field tables of `UnisonoJob`: what is checked, published as JSON Schema and printed as reference.

use unisono_job::is_dns_label;

use super::words;
use crate::shape::{Field, Form, Kind, Shape};

/// The object itself.
pub(super) static JOB: Shape = Shape::new(
    "UnisonoJob",
    &[
        Field::new("apiVersion", Kind::OneOf(&[API_VERSION]), "the version of this form")
            .required(),
        Field::new("kind", Kind::OneOf(&[KIND]), "the kind of object").required(),
        Field::new("metadata", Kind::Object(&METADATA), "the job's name and labels").required(),
        Field::new("spec", Kind::Object(&SPEC), "what runs, where, and by which rules").required(),
        Field::new("status", Kind::Any, "what became of the job; written by Unisono, never read"),
    ],
);

pub(super) const API_VERSION: &str = "unisono.dev/v1alpha1";
pub(super) const KIND: &str = "UnisonoJob";

static METADATA: Shape = Shape::open(
    "metadata",
    &[
        Field::new(
            "name",
            Kind::Form(&DNS_LABEL),
            "the job's name, and the stem of its hosts' names",
        )
        .required(),
        Field::new("namespace", Kind::Form(&DNS_LABEL), "the Kubernetes namespace to run in"),
        Field::new("labels", Kind::Map(&Kind::Text), "labels of the job"),
        Field::new("annotations", Kind::Map(&Kind::Text), "annotations of the job"),
    ],
);

static SPEC: Shape = Shape::new(
    "UnisonoJobSpec",
    &[
        Field::new("groups", Kind::FilledList(&Kind::Object(&GROUP)), "the kinds of member, in the order in which their hosts are numbered")
            .required(),
        Field::new("mpi", Kind::OneOf(&words::MPI_NAMES), "the MPI that the image or the machine brings")
            .or("told from the options of the launch line"),
        Field::new("launchRights", Kind::OneOf(&words::LAUNCH_RIGHTS_NAMES), "which members may start processes on the others: only the one that runs the launch line, or everybody")
            .or("`Launcher` when a group launches, else `Everybody`"),
        Field::new("policies", Kind::Object(&POLICIES), "retries, limits, clean-up and placement"),
        Field::new("writtenFor", Kind::OneOf(&words::DIALECT_NAMES), "the dialect whose host names, variables and files the commands expect; a converted job carries it")
            .or("unisono"),
        Field::new("experiment", Kind::FilledText, "a name under which runs are listed together"),
    ],
);

static GROUP: Shape = Shape::new(
    "Group",
    &[
        Field::new("name", Kind::Form(&GROUP_NAME), "the role of these members; host names are made from it")
            .required(),
        Field::new("replicas", Kind::COUNT, "how many members").or("1"),
        Field::new("slots", Kind::COUNT, "rank slots on each member; 0 when it hosts no ranks")
            .or("0 with `run: Launch`; else one per GPU limit, else the launch line's ranks spread over the hosts, else 1"),
        Field::new("run", Kind::OneOf(RUN), "what the members do: `Launch` runs the launch line on the one member; `LaunchOnFirst` runs it on the first of them and all host ranks; `Command` runs the group's own command on every member; `Ranks` hosts ranks")
            .or("`Ranks`; a group with a command has to say it"),
        Field::new("script", Kind::FilledText, "a line or script for the shell; instead of `command`"),
        Field::new("shell", Kind::OneOf(&words::SHELL_NAMES), "the shell that reads `script`; `StrictBash` stops at the first failing command, unset variable or broken pipe")
            .or("Bash"),
        Field::new("command", Kind::FilledList(&Kind::Text), "program and first arguments, run without a shell"),
        Field::new("args", Kind::List(&Kind::Text), "further arguments; without `command` they go to the image's own entry point, and an empty list means its own arguments"),
        Field::new("image", Kind::FilledText, "the container image"),
        Field::new("azureEnvironment", Kind::FilledText, "an Azure ML environment (`azureml:NAME:VERSION`) that settings map to an image; instead of `image`"),
        Field::new("resources", Kind::Object(&RESOURCES), "what each member may use and is promised"),
        Field::new("env", Kind::List(&Kind::Object(&ENV)), "variables of the members' environment"),
        Field::new("workingDir", Kind::FilledText, "the directory the command starts in"),
        Field::new("code", Kind::FilledText, "a folder that becomes the working directory: of the machine that runs or submits the job, relative to the file or absolute; in a volume, as `claim:NAME/FOLDER`; or in 1 to 64 ConfigMaps NAME-0, NAME-1, … as `configmaps:NAME:COUNT`, which `unisono submit` writes"),
        Field::new("ports", Kind::List(&Kind::Object(&PORT)), "ports that each member is promised"),
        Field::new("shmMiB", Kind::SECONDS, "size of `/dev/shm` in MiB").or("what the host gives"),
        Field::new("rdma", Kind::Boolean, "whether each member gets the devices that the settings of whoever submits the job name for RDMA; the operator reads no settings").or("false"),
        Field::new("completion", Kind::Object(&COMPLETION), "when these members end the job")
            .or("with a launch line its end decides; with `run: Command` one failure fails the job; with `run: Ranks` never"),
        Field::new("restartPolicy", Kind::OneOf(&words::RESTART_NAMES), "what happens to a member that ends").or("Never"),
        Field::new("template", Kind::Object(&TEMPLATE), "a pod template for what has no field here; the group's own fields win over what its container says"),
        Field::new("templateContainer", Kind::COUNT, "which of the template's containers runs what the group runs, counted from 0").or("0"),
        Field::new("sshAuthMountPath", Kind::FilledText, "where images with their own sshd find the job's keys").or("`/root/.ssh`"),
    ],
);

static RESOURCES: Shape = Shape::new(
    "Resources",
    &[
        Field::new(
            "limits",
            Kind::Map(&Kind::Quantity),
            "the most a member may use, by resource name",
        ),
        Field::new(
            "requests",
            Kind::Map(&Kind::Quantity),
            "what a member is promised, by resource name",
        ),
    ],
);

static ENV: Shape = Shape::new(
    "EnvVar",
    &[
        Field::new("name", Kind::FilledText, "the variable").required(),
        Field::new("value", Kind::Text, "its value").or(
            "the `valueFrom` of the same variable in `template`, which only Kubernetes can look up",
        ),
    ],
);

static PORT: Shape = Shape::new(
    "PortRequest",
    &[
        Field::new("name", Kind::FilledText, "the name under which a member finds its ports")
            .required(),
        Field::new("first", Kind::Integer { min: 1, max: 65535 }, "the first port number")
            .or("any that are free"),
        Field::new("count", Kind::Integer { min: 0, max: 65535 }, "how many ports").or("1"),
    ],
);

static COMPLETION: Shape = Shape::new(
    "Completion",
    &[
        Field::new("minFailed", Kind::POSITIVE, "this many failed members fail the job")
            .or("no number does"),
        Field::new(
            "minSucceeded",
            Kind::POSITIVE,
            "this many succeeded members make the job succeed",
        )
        .or("no number does"),
    ],
);

static TEMPLATE: Shape = Shape::open(
    "PodTemplate",
    &[
        Field::new("metadata", Kind::Any, "labels and annotations of the pods"),
        Field::new("spec", Kind::Any, "the pods' specification"),
    ],
);

static POLICIES: Shape = Shape::new(
    "Policies",
    &[
        Field::new("backoffLimit", Kind::COUNT, "how many attempts may follow a failed first one").or("0"),
        Field::new("retryCount", Kind::Integer { min: -2, max: i32::MAX as i64 }, "retries by the class of the exit code, as OpenPAI counts them: −2 always, −1 until success, n unknown failures at most; instead of `backoffLimit`"),
        Field::new("gangRestarts", Kind::COUNT, "how often members lost to the platform may be replaced with a restart of all ranks").or("3"),
        Field::new("deadlineSeconds", Kind::SECONDS, "seconds after its start when the job is stopped and has failed").or("none"),
        Field::new("cleanUp", Kind::OneOf(&words::CLEAN_UP_NAMES), "which members are removed when the job has ended").or("All"),
        Field::new("ttlSecondsAfterFinished", Kind::SECONDS, "seconds after its end when the job itself is removed").or("never"),
        Field::new("suspend", Kind::Boolean, "whether the job waits until somebody resumes it").or("false"),
        Field::new("managedBy", Kind::FilledText, "who else manages the job; Unisono then leaves it alone"),
        Field::new("launcherStart", Kind::OneOf(&words::LAUNCHER_START_NAMES), "when the launch line's member is created; its command waits for every host in any case").or("AtOnce"),
        Field::new("gang", Kind::Object(&GANG), "all-or-nothing placement"),
    ],
);

static GANG: Shape = Shape::new(
    "Gang",
    &[
        Field::new("minMembers", Kind::COUNT, "how many members must fit at once")
            .or("all of them"),
        Field::new("queue", Kind::FilledText, "the queue the job waits in"),
        Field::new("priorityClass", Kind::FilledText, "the priority class"),
        Field::new(
            "minResources",
            Kind::Map(&Kind::Quantity),
            "resources that must be free for the gang",
        ),
        Field::new(
            "scheduleTimeoutSeconds",
            Kind::COUNT,
            "seconds the gang may wait for its place",
        )
        .or("no limit"),
    ],
);

const RUN: &[&str] = &["Launch", "LaunchOnFirst", "Command", "Ranks"];

static DNS_LABEL: Form = Form {
    name: "a DNS label (lower-case letters, digits and inner dashes, at most 63)",
    fits: is_dns_label,
    pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
};

/// Wider than a DNS label, because OpenPAI's task roles are: host names are made from it, it is not one itself.
static GROUP_NAME: Form = Form {
    name: "a group name (letters, digits and . _ ~ -, at most 63)",
    fits: is_group_name,
    pattern: "^[A-Za-z0-9._~-]{1,63}$",
};

pub(super) fn is_group_name(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"._~-".contains(&it))
}
