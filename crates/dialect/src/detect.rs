//! Which dialect a document is written in, told from a few of its keys before anything else is looked at.

use unisono_job::{Dialect, Note};

use crate::scalar::Schema;
use crate::tree::{Node, Value};
use crate::{codes, kubeflow};

/// What a document is.
#[derive(Debug)]
pub(crate) enum Found<'tree> {
    /// A job of this dialect.
    Job(Dialect),
    /// A list of objects, each to be looked at by itself.
    List(&'tree [Node]),
    /// A Kubernetes object that Unisono does not read, and what to tell about it.
    OtherObject(Note),
    /// Something that we cannot or should not run, and why.
    Refused(Note),
}

/// Looks at the top keys of a document.
pub(crate) fn detect(root: &Node) -> Found<'_> {
    if !matches!(root.value, Value::Map(_)) {
        let message =
            format!("a job is a map of keys and values, but this document is {}", root.kind_name());
        return Found::Refused(unknown(message));
    }
    match (scalar(root, "apiVersion"), scalar(root, "kind")) {
        (Some(version), Some(kind)) => kubernetes_object(root, &version, &kind),
        (None, Some(kind)) => Found::Refused(
            unknown(format!("a Kubernetes object (kind {kind}) needs `apiVersion`"))
                .hint("for an MPIJob write `apiVersion: kubeflow.org/v2beta1`"),
        ),
        (_, None) => plain_document(root),
    }
}

/// The rules by which the dialect's own reader took plain scalars.
pub(crate) const fn schema(dialect: Dialect) -> Schema {
    if dialect.is_kubernetes_object() { Schema::Yaml11 } else { Schema::Yaml12 }
}

fn kubernetes_object<'tree>(root: &'tree Node, version: &str, kind: &str) -> Found<'tree> {
    match (version, kind) {
        ("scheduling.incubator.k8s.io/v1alpha1", "MPI") => Found::Job(Dialect::KubeBatch),
        ("unisono.dev/v1alpha1", "UnisonoJob") => Found::Job(Dialect::Unisono),
        (_, "List" | "MPIJobList" | "MPIList" | "UnisonoJobList") => {
            Found::List(root.get("items").map(Node::items).unwrap_or_default())
        }
        (version, "MPIJob") => match kubeflow::version(version) {
            Some(served) => Found::Job(kubeflow::written_version(root, served)),
            None => Found::Refused(
                unknown(format!("`{version}` is no version of MPIJob"))
                    .hint("the versions are kubeflow.org/v1alpha1, v1alpha2, v1 and v2beta1"),
            ),
        },
        (version, "MPI" | "UnisonoJob") => Found::Refused(
            unknown(format!("`{version}` is no version of {kind}"))
                .hint("write scheduling.incubator.k8s.io/v1alpha1 for MPI, unisono.dev/v1alpha1 for UnisonoJob"),
        ),
        (_, "PyTorchJob" | "TFJob" | "XGBoostJob" | "PaddleJob" | "JAXJob" | "MXJob" | "TrainJob" | "RayJob") => {
            Found::Refused(
                Note::new(&codes::OTHER_JOB, format!("{kind} does not start its processes by MPI"))
                    .hint("to run it by MPI, write an MPIJob whose launcher runs `mpirun … python …`"),
            )
        }
        (version, "Job") if version.starts_with(VOLCANO) => Found::OtherObject(
            Note::new(
                &codes::SKIPPED_DOCUMENT,
                "the Volcano Job in this file is skipped: Unisono does not read Volcano's jobs",
            )
            .hint("write its master as the Launcher and its workers as the Worker of an MPIJob (kubeflow.org/v2beta1)"),
        ),
        (_, other) => Found::OtherObject(
            Note::new(&codes::SKIPPED_DOCUMENT, format!("the {other} in this file is skipped"))
                .hint("apply it with kubectl if the job needs it"),
        ),
    }
}

/// The API group of Volcano's jobs, which are batch jobs of the same kind as Kubernetes' own.
const VOLCANO: &str = "batch.volcano.sh/";

fn plain_document<'tree>(root: &'tree Node) -> Found<'tree> {
    if root.get("apiVersion").is_some() {
        return Found::Refused(
            unknown("a Kubernetes object needs `kind`").hint("write `kind: MPIJob`"),
        );
    }
    if root.get("protocolVersion").is_some() {
        return Found::Job(Dialect::OpenPaiV2);
    }
    if root.get("taskRoles").is_some() || root.get("jobName").is_some() {
        let is_map = root.get("taskRoles").is_some_and(|it| matches!(it.value, Value::Map(_)));
        return Found::Job(if is_map { Dialect::OpenPaiV2 } else { Dialect::OpenPaiV1 });
    }
    let kind = scalar(root, "type").unwrap_or_default();
    match kind.to_ascii_lowercase().as_str() {
        "mpijob" => return Found::Job(Dialect::AzureMpiJob),
        "pytorchjob" | "tensorflowjob" => {
            return Found::Refused(
                Note::new(
                    &codes::OTHER_JOB,
                    format!("`type: {kind}` is an Azure ML job that does not start its processes by MPI"),
                )
                .hint("to run it by MPI, write `type: MpiJob` with the launch line (`mpirun -np N … python …`) as `launcher.spec.command`"),
            );
        }
        _ => {}
    }
    if root.get("distributed").is_some() {
        return Found::Job(Dialect::AzureFlat);
    }
    if root.get("distribution").is_some() {
        return Found::Job(Dialect::AzureCommand);
    }
    if root.get("command").is_some()
        && (root.get("environment").is_some() || root.get("compute").is_some())
    {
        return Found::Refused(
            Note::new(&codes::OTHER_JOB, "this Azure ML command job is not distributed")
                .hint("add `distribution: {type: mpi, process_count_per_instance: N}`"),
        );
    }
    Found::Refused(
        unknown("nothing tells which system this document belongs to")
            .hint("`unisono explain unknown-document` lists what Unisono reads"),
    )
}

fn unknown(message: impl Into<String>) -> Note {
    Note::new(&codes::UNKNOWN_DOCUMENT, message)
}

fn scalar(root: &Node, key: &str) -> Option<String> {
    root.get(key).and_then(Node::scalar_text).filter(|text| !text.is_empty())
}
