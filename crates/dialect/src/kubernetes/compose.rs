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
    let (mut template, index, is_made) = with_container(group);
    if let (true, Some(container)) = (is_made, container_mut(&mut template, index)) {
        container.insert("image".to_owned(), json!(NO_IMAGE));
    }
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

/// The template that a group came with, with a container for what the group runs where it has none, and without what the group
/// itself says; one that has nothing else where it came with none.
pub fn bare_template(group: &Group) -> Value {
    with_container(group).0
}

/// The template, which of its containers counts, and whether that had to be made.
fn with_container(group: &Group) -> (Value, usize, bool) {
    let mut template = group.extras.as_ref().and_then(known_template).unwrap_or_default();
    let index = group.extras.as_ref().map_or(0, |it| it.container);
    let first = template.get("spec").and_then(|it| it.pointer("/containers/0"));
    if first.is_some_and(Value::is_object) {
        return (template.into(), index, false);
    }
    let name = label_from(&group.name, unisono_job::MAX_LABEL);
    let spec = template.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    spec["containers"] = json!([{"name": name}]);
    (template.into(), 0, true)
}

/// The template as it was written, without what servers write into it.
fn known_template(extras: &Extras) -> Option<Map<String, Value>> {
    let Value::Object(mut template) = serde_json::from_str(&extras.template).ok()? else {
        return None;
    };
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
        if metadata.is_empty() {
            template.shift_remove("metadata");
        }
    }
    Some(template)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The composed template of the one group that a UnisonoJob has.
    fn composed(template: &str) -> Value {
        let text = format!(
            "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: a}}\n\
             spec: {{groups: [{{name: node, run: Command, image: i, command: [x], template: {template}}}]}}\n"
        );
        let reading = crate::read(text.as_bytes(), &crate::Options::default()).remove(0);
        pod_template(&reading.job.expect("it is read").groups[0])
    }

    #[test]
    fn a_template_without_containers_keeps_the_rest_and_gets_the_groups_own() {
        let container = json!([{"name": "node", "image": "i", "command": ["x"]}]);
        for containers in ["", ", containers: []", ", containers: null"] {
            let template = composed(&format!(
                "{{metadata: {{labels: {{team: x}}}}, spec: {{nodeSelector: {{disk: fast}}{containers}}}}}"
            ));
            let wanted = json!({
                "metadata": {"labels": {"team": "x"}},
                "spec": {"nodeSelector": {"disk": "fast"}, "containers": container},
            });
            assert_eq!(template, wanted, "{containers}");
        }
        let labelled = composed("{metadata: {labels: {team: x}}}");
        assert_eq!(labelled["metadata"]["labels"]["team"], "x");
        assert_eq!(labelled["spec"]["containers"], container);
        for odd in ["{}", "{spec: 5}", "{spec: {containers: 5}}"] {
            assert_eq!(composed(odd)["spec"]["containers"], container, "{odd}");
        }
    }
}
