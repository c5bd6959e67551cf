//! What is left of a job that is over, without what differs from one run to the next: two runs that ended alike are equal here.

use anyhow::Context;
use serde_json::{Value, json};

use crate::story::Story;

/// Keys whose values are made up anew in every run, or say where and when it was.
const FLEETING: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "observedGeneration",
    "clusterIP",
    "clusterIPs",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "nodeName",
    "containerID",
    "imageID",
    "unisono.dev/table",
    "unisono.dev/table-digest",
    "unisono.dev/released",
    "unisono.dev/job-uid",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
];

/// The job, and everything in its namespace that belongs to it, as it is now.
pub(crate) fn of(story: &Story<'_>, name: &str) -> anyhow::Result<Value> {
    let mut left = owned(story)?;
    left["status"] = story.get(name)?["status"].clone();
    left.sort_all_objects();
    shed(&mut left, story.namespace);
    Ok(left)
}

/// Everything in a namespace that belongs to a job, by what it is.
pub(crate) fn owned(story: &Story<'_>) -> anyhow::Result<Value> {
    let mut left = json!({});
    for (api, plural) in [
        ("/api/v1", "pods"),
        ("/api/v1", "services"),
        ("/api/v1", "configmaps"),
        ("/api/v1", "secrets"),
        ("/apis/batch/v1", "jobs"),
    ] {
        let list = story.cluster.api().get(&story.path(api, plural))?;
        let items = list["items"].as_array().context("no list")?;
        let own = items.iter().filter(|it| it["metadata"]["ownerReferences"].is_array());
        left[plural] = own.cloned().map(of_one).collect();
    }
    Ok(left)
}

/// Whether there is nothing of any kind.
pub(crate) fn is_nothing(left: &Value) -> bool {
    let kinds = left.as_object().into_iter().flat_map(|kinds| kinds.values());
    kinds.into_iter().all(|it| it.as_array().is_some_and(Vec::is_empty))
}

/// An object without what nobody decides but chance: keys, and how its containers went.
fn of_one(mut object: Value) -> Value {
    let is_secret = object.get("type").is_some();
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut).filter(|_| is_secret)
    {
        data.values_mut().for_each(|it| *it = json!("secret"));
    }
    if let Some(phase) = object.pointer("/status/phase").cloned() {
        object["status"] = json!({"phase": phase});
    }
    object
}

fn shed(value: &mut Value, namespace: &str) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !FLEETING.contains(&key.as_str()));
            fields.values_mut().for_each(|it| shed(it, namespace));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| shed(it, namespace)),
        Value::String(text) if is_moment(text) => "a moment".clone_into(text),
        Value::String(text) => *text = text.replace(namespace, "HERE"),
        // In milliseconds since 1970.
        Value::Number(number) if number.as_u64().is_some_and(|it| it > 1 << 40) => {
            *value = json!("a moment");
        }
        _ => {}
    }
}

fn is_moment(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.starts_with("20") && text.ends_with('Z')
}

/// The first place where two values differ, for a reader.
pub(crate) fn difference(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        _ if one == other => None,
        (Value::Object(ones), Value::Object(others)) => {
            let keys = ones.keys().chain(others.keys());
            keys.map(|key| (key, difference(&one[key], &other[key])))
                .find_map(|(key, differs)| Some(format!("{key}.{}", differs?)))
        }
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            ones.iter().zip(others).enumerate().find_map(|(index, (one, other))| {
                Some(format!("{index}.{}", difference(one, other)?))
            })
        }
        _ => Some(format!(": {one} became {other}")),
    }
}
