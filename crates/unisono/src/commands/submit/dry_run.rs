//! What would be made: a submission enters, every object as YAML leaves, those that the operator would make included.

use serde_json::{Value, json};
use unisono_job::Secrets;
use unisono_k8s::{JobObject, Owner, Rendering};
use unisono_plan::lay_out;

use super::carry_out::config_map;
use super::prepare::{Item, Parcel, Submission};
use crate::cluster;
use crate::job_file::FIRST_GENERATION;
use crate::settings::Settings;

/// What stands where the API server will put a uid.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Every object, one YAML document each.
pub(super) fn text(submission: &Submission, settings: &Settings) -> String {
    let mut documents = Vec::new();
    for item in &submission.items {
        let mut objects = objects(item, settings);
        if let Some(job) = item.job.as_ref().filter(|job| !job.secrets.is_empty()) {
            objects.iter_mut().for_each(|object| hide(object, &job.secrets));
        }
        documents.extend(objects.iter().map(unisono_dialect::to_yaml));
    }
    documents.join("---\n")
}

fn objects(item: &Item, settings: &Settings) -> Vec<Value> {
    let mut object = item.object.clone();
    if object.pointer("/metadata/namespace").is_none() && item.job.is_some() {
        object["metadata"]["namespace"] = settings.namespace.value.as_str().into();
    }
    let mut objects = vec![object.clone()];
    if item.job.is_none() {
        return objects;
    }
    object["metadata"]["uid"] = NO_UID.into();
    for Parcel { name, packed } in &item.parcels {
        for (at, piece) in packed.pieces.iter().enumerate() {
            let mut map = config_map(name, at, &object, piece);
            // Megabytes that nobody reads.
            map["binaryData"] = json!({"piece": format!("({} bytes)", piece.len())});
            objects.push(map);
        }
    }
    if let Ok(object) = JobObject::new(object) {
        objects.extend(made_by_the_operator(&object, settings).unwrap_or_default());
    }
    objects
}

/// What the operator makes of a job: it reads the object, not the file.
fn made_by_the_operator(object: &JobObject, settings: &Settings) -> Option<Vec<Value>> {
    let reading = object.read(&cluster::reading(settings));
    let owner = Owner::of(object, object.resource(reading.dialect?)?);
    let engine = cluster::engine(settings);
    let plan = lay_out(&reading.job?, &object.facts(&engine), FIRST_GENERATION);
    Some(Rendering { plan: &plan, settings: &engine, owner: &owner }.preview())
}

/// Puts references in the place of secret values, wherever they stand.
fn hide(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => *text = secrets.hidden(text),
        Value::Array(items) => items.iter_mut().for_each(|it| hide(it, secrets)),
        Value::Object(entries) => entries.values_mut().for_each(|it| hide(it, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
