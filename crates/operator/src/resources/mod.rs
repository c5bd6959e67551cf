//! The kinds of job object that the operator serves, each with its versions: one table, from which definitions, policies,
//! permissions and watches are made.

mod kube_batch;
mod kubeflow;
mod unisono;

use unisono_dialect::{Field, Kind, Shape};
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
    /// Annotations that its definition needs.
    pub(crate) annotations: &'static [(&'static str, &'static str)],
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
    /// Where `kubectl scale` finds the number of workers, where there is one number.
    pub(crate) scale: Option<Scale>,
    /// What its status holds.
    pub(crate) status: &'static Shape,
    /// What objects must be, beyond the type of each field.
    pub(crate) rules: &'static [Rule],
    /// Whether an object that breaks a rule is refused; else it is only warned about, and says itself that it is invalid.
    pub(crate) refuses: bool,
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
    /// What a scaled job must be; `it` is the object's spec. A rule of the schema: policies do not see the object when it is scaled.
    pub(crate) rule: Rule,
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
pub(crate) static RESOURCES: &[Resource] =
    &[kubeflow::RESOURCE, unisono::RESOURCE, kube_batch::RESOURCE];

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

static CONDITION: Shape = Shape::open(
    "condition",
    &[
        Field::new(
            "type",
            Kind::Text,
            "Created, Running, Restarting, Suspended, Succeeded or Failed",
        ),
        Field::new("status", Kind::Text, "True or False"),
        Field::new("reason", Kind::Text, "why, as one word"),
        Field::new("message", Kind::Text, "why, as a sentence"),
        Field::new("lastUpdateTime", Kind::Text, "when it was last written"),
        Field::new("lastTransitionTime", Kind::Text, "when it last changed"),
    ],
);

static A_CONDITION: Kind = Kind::Object(&CONDITION);

const CONDITIONS: Field =
    Field::new("conditions", Kind::List(&A_CONDITION), "what holds and what does not");

const REMEMBERED: Field =
    Field::new("unisono", Kind::Any, "what the operator must remember, and why the job waits");
