//! Object metadata: an object's name, namespace, labels and annotations; and what only a server sets.

use std::collections::BTreeMap;

use unisono_job::{JobName, Note};

use crate::codes;
use crate::shape::{Field, Form, Kind, Shape};
use crate::tree::{Document, Node};

/// Who an object is.
pub(crate) struct Identity {
    /// Its name; absent when a fault stands in its way.
    pub(crate) name: Option<JobName>,
    /// Its namespace.
    pub(crate) namespace: Option<String>,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Its annotations, without the one that repeats the whole object.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The annotation in which `kubectl apply` keeps the file it was given.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A DNS subdomain: what objects may be called.
static SUBDOMAIN: Form = Form {
    name: "a name that Kubernetes takes (lower-case letters, digits, `-` and `.`, at most 253, starting and ending with a letter or digit)",
    fits: is_subdomain,
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
};

static NAMESPACE: Form = Form {
    name: "a namespace (lower-case letters, digits and inner dashes, at most 63)",
    fits: unisono_job::is_dns_label,
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
};

/// Metadata of an object that stands for itself.
static METADATA: Shape = Shape::new(
    "metadata",
    &[
        Field::new("name", Kind::Form(&SUBDOMAIN), "the job's name; pods are named after it"),
        Field::new(
            "generateName",
            Kind::FilledText,
            "the beginning of a name that the server completes when there is no `name`",
        ),
        Field::new("namespace", Kind::Form(&NAMESPACE), "the namespace the job runs in")
            .or("the one that is current"),
        Field::new("labels", Kind::Map(&Kind::Text), "labels of the job object"),
        Field::new("annotations", Kind::Map(&Kind::Text), "annotations of the job object"),
        Field::new("finalizers", Kind::Any, "who must let go before the object is deleted"),
        Field::new("ownerReferences", Kind::Any, "objects with which this one is deleted"),
        Field::new("uid", Kind::Any, "set by the server"),
        Field::new("resourceVersion", Kind::Any, "set by the server"),
        Field::new("generation", Kind::Any, "set by the server"),
        Field::new("creationTimestamp", Kind::Any, "set by the server"),
        Field::new("deletionTimestamp", Kind::Any, "set by the server"),
        Field::new("deletionGracePeriodSeconds", Kind::Any, "set by the server"),
        Field::new("managedFields", Kind::Any, "set by the server"),
        Field::new("selfLink", Kind::Any, "set by old servers"),
        Field::new("clusterName", Kind::Any, "set by old servers"),
    ],
);

/// Metadata of an object inside another one: only labels and annotations have an effect, the rest is taken as it comes.
pub(crate) static METADATA_OF_A_PART: Shape = Shape::open(
    "metadata",
    &[
        Field::new("labels", Kind::Map(&Kind::Text), "labels of the pods"),
        Field::new("annotations", Kind::Map(&Kind::Text), "annotations of the pods"),
    ],
);

/// The keys that every job object has: `kind` is told to be this kind, `spec` has this shape.
pub(crate) const fn object(kind: &'static str, spec: &'static Shape) -> [Field; 5] {
    [
        Field::new("apiVersion", Kind::FilledText, "the version of the object").required(),
        Field::new("kind", Kind::FilledText, kind).required(),
        Field::new("metadata", Kind::Object(&METADATA), "name, namespace, labels and annotations")
            .required(),
        Field::new("spec", Kind::Object(spec), "the job").required(),
        Field::new("status", Kind::Any, "what became of the job; written by the operator"),
    ]
}

/// Reads who the object is. A name that `METADATA` refuses is told by the check, an absent one here.
pub(crate) fn identity(document: &Document<'_>) -> (Identity, Option<Note>) {
    let metadata = document.root.get("metadata");
    let text = |key: &str| metadata.and_then(|it| it.at(&[key])).and_then(Node::text);
    let generated = text("generateName").map(|it| it.trim_end_matches(['-', '.']));
    let name = text("name").or(generated);
    let mut annotations = texts(metadata, "annotations");
    annotations.remove(LAST_APPLIED);
    let identity = Identity {
        name: name.and_then(|name| JobName::new(name).ok()),
        namespace: text("namespace").map(str::to_owned),
        labels: texts(metadata, "labels"),
        annotations,
    };
    let unnamed = metadata.is_some_and(|it| it.get("name").is_none_or(Node::is_null))
        && identity.name.is_none();
    let fault = unnamed.then(|| {
        let fault = Note::new(&codes::MISSING, "metadata needs `name`")
            .hint("add `name`: the job's name; pods are named after it");
        document.note(fault, metadata.unwrap_or(&document.root))
    });
    (identity, fault)
}

/// Whether the object comes out of a cluster, so that its `apiVersion` is the one it was asked for in.
pub(crate) fn from_a_cluster(root: &Node) -> bool {
    let marks = ["uid", "resourceVersion", "managedFields"];
    root.get("metadata").is_some_and(|it| marks.iter().any(|key| it.at(&[key]).is_some()))
}

/// Whether text is a DNS label as RFC 1035 has it: it begins with a letter.
pub(crate) fn is_dns_1035_label(text: &str) -> bool {
    unisono_job::is_dns_label(text) && text.starts_with(|it: char| it.is_ascii_lowercase())
}

/// Whether text is a DNS subdomain: what objects may be called.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

fn texts(node: Option<&Node>, key: &str) -> BTreeMap<String, String> {
    let entries = node.and_then(|it| it.get(key)).map(Node::entries).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), entry.node.text()?.to_owned())))
        .collect()
}
