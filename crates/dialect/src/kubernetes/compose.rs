//! A group as a pod template: the one it came with, brought in line with the group, or one made for it.

use serde_json::{Map, Value, json};
use unisono_job::{Command, EnvVar, Extras, Group, Image, label_from};

use super::template::{Lifted, lift};
use crate::document_from_object;

/// What stands where an image is needed and none is known.
pub(crate) const NO_IMAGE: &str = "name-an-image-here";

/// The pod template of a group: the one it came with, as it was written, brought in line with the group where that says
/// something else; one made for it where it came with none.
pub fn pod_template(group: &Group) -> Value {
    compose(group, group.runs.command())
}

/// The template of a group whose members run that command.
pub(crate) fn compose(group: &Group, command: Option<&Command>) -> Value {
    let known = group.extras.as_ref().and_then(known_template);
    let index = group.extras.as_ref().map_or(0, |it| it.container);
    let (mut template, index) = match known {
        Some(template) => (template, index),
        None => {
            let name = label_from(&group.name, unisono_job::MAX_LABEL);
            (json!({"spec": {"containers": [{"name": name, "image": NO_IMAGE}]}}), 0)
        }
    };
    let lifted = lift(&document_from_object(&template).root, index);
    if let Some(container) = container_mut(&mut template, index) {
        bring_in_line(container, &lifted, group, command);
    }
    if let (Some(mib), true) = (group.shm_mib, group.shm_mib != lifted.shm_mib) {
        add_shared_memory(&mut template, index, mib);
    }
    template
}

/// Puts the container with that index first.
pub(crate) fn put_first(template: &mut Value, index: usize) {
    let containers = template.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    if let Some(containers) = containers.filter(|it| index < it.len()) {
        let main = containers.remove(index);
        containers.insert(0, main);
    }
}

/// The name of the container with that index.
pub(crate) fn container_name(template: &Value, index: usize) -> Option<&str> {
    template.pointer(&format!("/spec/containers/{index}/name"))?.as_str()
}

/// The template as it was written, without what servers write into it.
fn known_template(extras: &Extras) -> Option<Value> {
    let mut template: Value = serde_json::from_str(&extras.template).ok()?;
    let object = template.as_object_mut()?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
        if metadata.is_empty() {
            object.shift_remove("metadata");
        }
    }
    let has_container = template.pointer("/spec/containers/0").is_some_and(Value::is_object);
    has_container.then_some(template)
}

fn container_mut(template: &mut Value, index: usize) -> Option<&mut Map<String, Value>> {
    template.pointer_mut(&format!("/spec/containers/{index}"))?.as_object_mut()
}

/// Writes what the group says where the template says something else.
fn bring_in_line(
    container: &mut Map<String, Value>,
    lifted: &Lifted,
    group: &Group,
    command: Option<&Command>,
) {
    if lifted.image != group.image
        && let Some(Image::Container(image)) = &group.image
    {
        container.insert("image".to_owned(), json!(image));
    }
    if lifted.command.as_ref() != command {
        container.shift_remove("command");
        container.shift_remove("args");
        match command {
            Some(Command::ImageEntry(args)) if args.is_empty() => {}
            Some(Command::ImageEntry(args)) => {
                container.insert("args".to_owned(), json!(args));
            }
            Some(command) => {
                container.insert("command".to_owned(), json!(command.argv().unwrap_or_default()));
            }
            None => {}
        }
    }
    if lifted.working_dir != group.working_dir {
        match &group.working_dir {
            Some(folder) => container.insert("workingDir".to_owned(), json!(folder)),
            None => container.shift_remove("workingDir"),
        };
    }
    if lifted.env != group.env {
        let env = variables(container.get("env"), &group.env);
        container.insert("env".to_owned(), env);
    }
    if lifted.resources != group.resources {
        let resources = container.entry("resources").or_insert_with(|| json!({}));
        for (key, amounts) in
            [("limits", &group.resources.limits), ("requests", &group.resources.requests)]
        {
            if let Some(resources) = resources.as_object_mut() {
                resources.shift_remove(key);
                if !amounts.is_empty() {
                    resources.insert(key.to_owned(), json!(amounts));
                }
            }
        }
    }
}

/// The variables, each as the template had it where only Kubernetes knows its value.
fn variables(known: Option<&Value>, env: &[EnvVar]) -> Value {
    let known = known.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    env.iter()
        .filter_map(|variable| match &variable.value {
            Some(value) => Some(json!({"name": variable.name, "value": value})),
            None => known.iter().find(|it| it["name"] == variable.name.as_str()).cloned(),
        })
        .collect()
}

fn add_shared_memory(template: &mut Value, index: usize, mib: u64) {
    let mounts = container_mut(template, index).map(|it| list_in(it, "volumeMounts"));
    if let Some(mounts) = mounts.flatten() {
        mounts.retain(|it| it["mountPath"] != "/dev/shm");
        mounts.push(json!({"name": "shared-memory", "mountPath": "/dev/shm"}));
    }
    let volumes = template.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(volumes) = volumes.and_then(|it| list_in(it, "volumes")) {
        let limit = format!("{mib}Mi");
        volumes.push(json!({
            "name": "shared-memory",
            "emptyDir": {"medium": "Memory", "sizeLimit": limit},
        }));
    }
}

fn list_in<'object>(
    object: &'object mut Map<String, Value>,
    key: &str,
) -> Option<&'object mut Vec<Value>> {
    object.entry(key).or_insert_with(|| json!([])).as_array_mut()
}
