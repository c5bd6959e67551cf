//! An object that holds no job gets a condition that says what is wrong with it, and nothing else happens to it.

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use unisono_job::Note;
use unisono_k8s::{JobObject, Resource, marks};
use unisono_plan::Time;
use unisono_plan::conditions::Happening;

/// The condition's type. Not `Failed`: once the object is mended, the job runs.
const INVALID: &str = "Invalid";

/// The reason, which operators before this one gave such an event.
const REASON: &str = "ValidationError";

/// Messages longer than this are cut, as those operators did.
const LONGEST_MESSAGE: usize = 1024;

/// Writes the condition, unless it is there; what to tell leaves.
pub(crate) async fn refuse(
    client: &Client,
    object: &JobObject,
    resource: &Resource,
    notes: &[Note],
    now: Time,
) -> Result<Option<Happening>, kube::Error> {
    let message = message(notes);
    if says_already(object.status(), &message) {
        return Ok(None);
    }
    let resource = resource.api_resource();
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), object.namespace(), &resource);
    let condition = json!({
        "type": INVALID, "status": "True", "reason": REASON, "message": message,
        "lastUpdateTime": now.to_string(), "lastTransitionTime": now.to_string(),
    });
    let old = object.status()["conditions"].as_array().cloned().unwrap_or_default();
    let is_new = old.is_empty();
    let others = old.into_iter().filter(|it| it["type"] != INVALID);
    let conditions: Vec<Value> = others.chain([condition]).collect();
    let mut status = json!({
        "metadata": {"resourceVersion": object.resource_version()},
        "status": {"conditions": conditions},
    });
    // Says that nobody has begun with the job: once it is mended it is new, not taken over.
    if is_new && object.status().get("unisono").is_none() {
        status["status"]["unisono"] = json!({});
    }
    let parameters = PatchParams {
        field_manager: Some(marks::FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    api.patch_status(object.name(), &parameters, &Patch::Merge(&status)).await?;
    Ok(Some(Happening { is_warning: true, reason: REASON.to_owned(), message }))
}

fn says_already(status: &Value, message: &str) -> bool {
    status["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|it| it["type"] == INVALID && it["message"] == message)
    })
}

/// Every fault with its place and advice.
fn message(notes: &[Note]) -> String {
    let faults = notes.iter().filter(|note| note.is_fault()).map(|note| {
        let place =
            note.place.as_ref().map(|place| place.path.as_str()).filter(|it| !it.is_empty());
        let place = place.map(|path| format!("{path}: ")).unwrap_or_default();
        let hint = note.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{place}{}{hint}", note.message)
    });
    let mut message = faults.collect::<Vec<_>>().join("; ");
    if message.len() > LONGEST_MESSAGE {
        let mut at = LONGEST_MESSAGE - "…".len();
        while !message.is_char_boundary(at) {
            at -= 1;
        }
        message.truncate(at);
        message.push('…');
    }
    message
}
