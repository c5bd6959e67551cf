//! `UnisonoJob`: the neutral job, with as many kinds of member as it needs.

use unisono_dialect::{Field, Kind, Shape};
use unisono_job::Dialect;

use super::{COMPLETED, CONDITIONS, Column, REMEMBERED, Resource, Rule, STARTED, Version};

/// `UnisonoJob`.
pub(super) const RESOURCE: Resource = Resource {
    group: "unisono.dev",
    kind: "UnisonoJob",
    plural: "unisonojobs",
    singular: "unisonojob",
    short_names: &["uj"],
    annotations: &[],
    versions: &[Version {
        name: "v1alpha1",
        dialect: Dialect::Unisono,
        stored: true,
        columns: &[
            Column {
                name: "Phase",
                kind: "string",
                path: ".status.phase",
                about: "Where the job is in its life.",
                wide: false,
            },
            Column {
                name: "Attempt",
                kind: "integer",
                path: ".status.attempt",
                about: "How many attempts went before this one.",
                wide: false,
            },
            STARTED,
            COMPLETED,
            Column {
                name: "Why",
                kind: "string",
                path: ".status.unisono.why[0]",
                about: "What the job waits for.",
                wide: true,
            },
        ],
        // Groups are a list, and such paths cannot point into one.
        scale: None,
        status: &STATUS,
        rules: &[
            HAS_GROUPS,
            GROUPS_DIFFER,
            ONE_LAUNCH_LINE,
            SOMEBODY_LAUNCHES,
            ONE_LAUNCHER,
            RETRIES_ONE_WAY,
            KEEPS_MANAGER,
        ],
        refuses: true,
    }],
};

const HAS_GROUPS: Rule = Rule {
    holds: "it.?spec.?groups.orValue([]).size() > 0",
    message: "spec.groups needs at least one group",
};
const GROUPS_DIFFER: Rule = Rule {
    holds: "it.?spec.?groups.orValue([]).all(one, \
            it.spec.groups.exists_one(other, other.?name.orValue('') == one.?name.orValue('')))",
    message: "every group of spec.groups needs a name of its own",
};
const ONE_LAUNCH_LINE: Rule = Rule {
    holds: "it.?spec.?groups.orValue([])\
            .filter(group, group.?run.orValue('') in ['Launch', 'LaunchOnFirst']).size() <= 1",
    message: "only one group may have run: Launch or run: LaunchOnFirst; a job has one launch line",
};
const SOMEBODY_LAUNCHES: Rule = Rule {
    holds: "it.?spec.?groups.orValue([])\
            .exists(group, group.?run.orValue('') in ['Launch', 'LaunchOnFirst']) || \
            it.?spec.?groups.orValue([]).all(group, group.?run.orValue('') == 'Command')",
    message: "one group needs run: Launch or run: LaunchOnFirst with the mpirun line, or every group run: Command",
};
const ONE_LAUNCHER: Rule = Rule {
    holds: "it.?spec.?groups.orValue([])\
            .all(group, group.?run.orValue('') != 'Launch' || group.?replicas.orValue(1) == 1)",
    message: "a group with run: Launch has one member; with run: LaunchOnFirst the first of several launches",
};
const RETRIES_ONE_WAY: Rule = Rule {
    holds: "!(it.?spec.?policies.?backoffLimit.hasValue() && it.?spec.?policies.?retryCount.hasValue())",
    message: "spec.policies takes backoffLimit or retryCount, not both",
};
const KEEPS_MANAGER: Rule = Rule {
    holds: "request.operation == 'CREATE' || \
            object.?spec.?policies.?managedBy == oldObject.?spec.?policies.?managedBy",
    message: "spec.policies.managedBy cannot change while the job exists",
};

static STATUS: Shape = Shape::open(
    "status",
    &[
        Field::new(
            "phase",
            Kind::Text,
            "Pending, Suspended, Starting, Running, Succeeded, Failed or Stopped",
        ),
        CONDITIONS,
        Field::new("groups", Kind::Map(&Kind::Object(&MEMBERS)), "members of each group"),
        Field::new("attempt", Kind::COUNT, "how many attempts went before this one"),
        Field::new("startTime", Kind::Text, "when the job began; again when it was resumed"),
        Field::new("completionTime", Kind::Text, "when the job ended"),
        Field::new("exitCode", CODE, "the exit code of the job, once it has ended"),
        REMEMBERED,
    ],
);

const CODE: Kind = Kind::Integer { min: i32::MIN as i64, max: i32::MAX as i64 };

static MEMBERS: Shape = Shape::open(
    "members of a group",
    &[
        Field::new("replicas", Kind::COUNT, "members that are wanted"),
        Field::new("active", Kind::COUNT, "members that exist and have not ended"),
        Field::new("ready", Kind::COUNT, "members that are up"),
        Field::new("succeeded", Kind::COUNT, "members that ended well"),
        Field::new("failed", Kind::COUNT, "members that ended badly"),
    ],
);
