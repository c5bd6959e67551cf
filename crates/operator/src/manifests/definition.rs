//! The definition of a kind: its versions, each with the schema of its field table.

use serde_json::{Map, Value, json};
use unisono_dialect::{Field, Kind, SchemaStyle, Shape, schema, shape_of};

use crate::resources::{Column, Resource, Version};

/// The custom resource definition.
pub(super) fn definition(resource: &Resource) -> Value {
    let versions: Vec<Value> = resource.versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name(), "labels": super::labels()},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": format!("{}List", resource.kind),
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": resource.short_names,
            },
            "scope": "Namespaced",
            // Objects are stored as they were written, and read by the version that wrote them.
            "conversion": {"strategy": "None"},
            "preserveUnknownFields": false,
            "versions": versions,
        },
    })
}

fn version(version: &Version) -> Value {
    let age = json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the job was created.",
    });
    let columns: Vec<Value> = version.columns.iter().map(column).chain([age]).collect();
    json!({
        "name": version.name,
        "served": true,
        "storage": version.stored,
        "additionalPrinterColumns": columns,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": version.scale.wanted,
                "statusReplicasPath": version.scale.present,
            },
        },
        "schema": {"openAPIV3Schema": object_schema(version)},
    })
}

fn column(column: &Column) -> Value {
    let mut shown = json!({
        "name": column.name,
        "type": column.kind,
        "jsonPath": column.path,
        "description": column.about,
    });
    if column.wide {
        shown["priority"] = 1.into();
    }
    shown
}

/// The schema of whole objects. Metadata is the server's own affair, and the status is ours.
fn object_schema(version: &Version) -> Value {
    let shape = shape_of(version.dialect);
    let mut whole = schema(shape, SchemaStyle::Structural);
    if let Some(fields) = whole.as_object_mut() {
        fields.shift_remove("title");
        fields
            .insert("description".into(), format!("{}: a job that MPI starts.", shape.name).into());
    }
    if let Some(properties) = whole["properties"].as_object_mut() {
        properties.insert("metadata".into(), json!({"type": "object"}));
        properties.insert("apiVersion".into(), plain("The version of the object."));
        properties.insert("kind".into(), plain("The kind of object."));
        properties.insert("status".into(), status_schema());
    }
    whole
}

fn plain(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn status_schema() -> Value {
    let mut status = Map::new();
    status.insert("description".into(), "What became of the job; written by the operator.".into());
    if let Value::Object(fields) = schema(&STATUS, SchemaStyle::Structural) {
        status.extend(fields.into_iter().filter(|(key, _)| key != "title"));
    }
    status.into()
}

static STATUS: Shape = Shape::open(
    "status",
    &[
        Field::new(
            "conditions",
            Kind::List(&Kind::Object(&CONDITION)),
            "what holds and what does not",
        ),
        Field::new("replicaStatuses", Kind::Map(&Kind::Object(&REPLICAS)), "pods of each role"),
        Field::new("launcherStatus", Kind::Text, "Active, Succeeded or Failed; only in v1alpha1"),
        Field::new("workerReplicas", Kind::COUNT, "workers that are up; only in v1alpha1"),
        Field::new("startTime", Kind::Text, "when the job began; again when it was resumed"),
        Field::new("completionTime", Kind::Text, "when the job ended"),
        Field::new("unisono", Kind::Any, "what the operator must remember, and why the job waits"),
    ],
);

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

static REPLICAS: Shape = Shape::open(
    "replica status",
    &[
        Field::new("active", Kind::COUNT, "pods that are up"),
        Field::new("succeeded", Kind::COUNT, "pods that ended well"),
        Field::new("failed", Kind::COUNT, "pods that ended badly"),
    ],
);
