//! What would be made: a submission enters, every object as YAML leaves, those that the operator would make included.

use serde_json::{Value, json};
use unisono_k8s::{JobObject, Owner, Rendering, Settings};
use unisono_plan::lay_out;

use super::carry_out::config_map;
use super::prepare::{Item, Submission};
use crate::job_file::FIRST_GENERATION;

/// What stands where the API server will put a uid.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Every object, one YAML document each.
pub(super) fn text(submission: &Submission, engine: &Settings, namespace: &str) -> String {
    let mut documents = Vec::new();
    for item in &submission.items {
        documents.extend(objects(item, engine, namespace).iter().map(unisono_dialect::to_yaml));
    }
    documents.join("---\n")
}

fn objects(item: &Item, engine: &Settings, namespace: &str) -> Vec<Value> {
    let mut object = item.object.clone();
    if object.pointer("/metadata/namespace").is_none() && item.job.is_some() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let mut objects = vec![object.clone()];
    let Some(owner) = owner(&mut object) else { return objects };
    for (name, parcel) in &item.parcels {
        for (at, piece) in parcel.pieces.iter().enumerate() {
            let mut map = config_map(name, at, &object, piece);
            // Megabytes that nobody reads.
            map["binaryData"] = json!({"piece": format!("({} bytes)", piece.len())});
            objects.push(map);
        }
    }
    // The operator reads the object, not the file.
    let read = JobObject::new(object).map(|it| it.read(&unisono_dialect::Options::default()));
    if let Some(job) = read.ok().and_then(|reading| reading.job) {
        let facts = engine.facts(job.namespace.as_deref().unwrap_or(namespace));
        let plan = lay_out(&job, &facts, FIRST_GENERATION);
        let rendering = Rendering { plan: &plan, settings: engine, owner: &owner };
        objects.extend(rendering.preview());
    }
    objects
}

/// The owner that a job object will be; none for other objects.
fn owner(object: &mut Value) -> Option<Owner> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (api_version, kind) = (text(&object["apiVersion"])?, text(&object["kind"])?);
    if !["MPIJob", "MPI", "UnisonoJob"].contains(&kind.as_str()) {
        return None;
    }
    object["metadata"]["uid"] = NO_UID.into();
    // Queues know jobs by one version, whatever version an object was written in.
    let api_version =
        if kind == "MPIJob" { "kubeflow.org/v2beta1".to_owned() } else { api_version };
    Some(Owner { api_version, kind, name: text(&object["metadata"]["name"])?, uid: NO_UID.into() })
}
