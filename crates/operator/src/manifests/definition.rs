//! The definition of a kind: its versions, each with the schema of its field table.

use serde_json::{Map, Value, json};
use unisono_dialect::{SchemaStyle, Shape, schema, served_shape};

use super::policy::about;
use crate::resources::{Column, Resource, Version};

/// The custom resource definition.
pub(super) fn definition(resource: &Resource) -> Value {
    let versions: Vec<Value> = resource.versions.iter().map(version).collect();
    let mut metadata = json!({"name": resource.full_name(), "labels": super::labels()});
    for (name, value) in resource.annotations {
        metadata["annotations"][name] = (*value).into();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
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
    let mut subresources = json!({"status": {}});
    if let Some(scale) = &version.scale {
        subresources["scale"] = json!({
            "specReplicasPath": scale.wanted,
            "statusReplicasPath": scale.present,
        });
    }
    json!({
        "name": version.name,
        "served": true,
        "storage": version.stored,
        "additionalPrinterColumns": columns,
        "subresources": subresources,
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
    let shape = served_shape(version.dialect);
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
        properties.insert("status".into(), status_schema(version.status));
    }
    if let Some(policy) = whole.pointer_mut("/properties/spec/properties/runPolicy")
        && policy.pointer("/properties/managedBy").is_some()
    {
        policy["x-kubernetes-validations"] = json!([KEEPS_MANAGER.as_json()]);
    }
    if let Some(scale) = &version.scale
        && let Some(spec) = whole.pointer_mut("/properties/spec")
    {
        // What was broken before may be changed in any other way, and may get a status.
        let of = |spec: &str| about(scale.rule.holds, spec);
        let rule = format!("{} || !({})", of("self"), of("oldSelf"));
        spec["x-kubernetes-validations"] = json!([{"rule": rule, "message": scale.rule.message}]);
    }
    whole
}

/// A rule of the schema itself.
struct SchemaRule {
    holds: &'static str,
    message: &'static str,
}

/// True in every version that has the field, and about nothing but it: whoever may write runs the rule.
const KEEPS_MANAGER: SchemaRule = SchemaRule {
    holds: "has(self.managedBy) == has(oldSelf.managedBy) && \
            (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",
    message: "managedBy cannot change while the job exists",
};

impl SchemaRule {
    fn as_json(&self) -> Value {
        json!({"rule": self.holds, "message": self.message})
    }
}

fn plain(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn status_schema(shape: &'static Shape) -> Value {
    let mut status = Map::new();
    status.insert("description".into(), "What became of the job; written by the operator.".into());
    if let Value::Object(fields) = schema(shape, SchemaStyle::Structural) {
        status.extend(fields.into_iter().filter(|(key, _)| key != "title"));
    }
    status.into()
}
