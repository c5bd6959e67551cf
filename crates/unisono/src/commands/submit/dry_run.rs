//! What would be made: a submission enters, every object as YAML leaves, those that the operator would make included.

use serde_json::{Value, json};
use unisono_job::Secrets;
use unisono_k8s::{JobObject, Owner, Rendering};
use unisono_plan::lay_out;
use unisono_plan::notes::codes::WITHOUT_GANG;

use super::carry_out::config_map;
use super::prepare::{Item, Parcel, Submission};
use crate::cluster;
use crate::job_file::FIRST_GENERATION;
use crate::settings::Settings;

/// What stands where the API server will put a uid.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// What would be made.
pub(super) struct Preview {
    /// Every object, one YAML document each.
    pub(super) text: String,
    /// Whether a job asks to be placed as one. What the operator makes for that is not shown: it follows from the operator's flags.
    pub(super) asks_for_gang: bool,
}

/// Objects of one job, or one other object.
#[derive(Default)]
struct Made {
    objects: Vec<Value>,
    asks_for_gang: bool,
}

/// Shows all of a submission.
pub(super) fn preview(submission: &Submission, settings: &Settings) -> Preview {
    let namespace = cluster::usual_namespace(settings);
    let (mut documents, mut asks_for_gang) = (Vec::new(), false);
    for item in &submission.items {
        let mut made = objects(item, &namespace, settings);
        asks_for_gang |= made.asks_for_gang;
        if let Some(job) = item.job.as_ref().filter(|job| !job.secrets.is_empty()) {
            made.objects.iter_mut().for_each(|object| hide(object, &job.secrets));
        }
        documents.extend(made.objects.iter().map(unisono_dialect::to_yaml));
    }
    Preview { text: documents.join("---\n"), asks_for_gang }
}

fn objects(item: &Item, namespace: &str, settings: &Settings) -> Made {
    let mut object = item.object.clone();
    if object.pointer("/metadata/namespace").is_none() && item.job.is_some() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let mut objects = vec![object.clone()];
    if item.job.is_none() {
        return Made { objects, asks_for_gang: false };
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
    let object = JobObject::new(object).ok();
    let made = object.and_then(|it| made_by_the_operator(&it, settings)).unwrap_or_default();
    objects.extend(made.objects);
    Made { objects, ..made }
}

/// What the operator makes of a job: it reads the object, not the file.
fn made_by_the_operator(object: &JobObject, settings: &Settings) -> Option<Made> {
    let reading = object.read(&cluster::reading(settings));
    let owner = Owner::of(object, object.resource(reading.dialect?)?);
    let engine = cluster::engine(settings);
    let plan = lay_out(&reading.job?, &object.facts(&engine), FIRST_GENERATION);
    Some(Made {
        objects: Rendering { plan: &plan, settings: &engine, owner: &owner }.preview(),
        asks_for_gang: plan.notes.iter().any(|note| *note.code == WITHOUT_GANG),
    })
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
