//! A pod template as raw JSON: changed where it must be, never decoded, so that what this program does not know stays.

use serde_json::{Map, Value, json};
use unisono_dialect::pod_template;
use unisono_job::Group;

type Object = Map<String, Value>;

/// A pod template on its way to a pod.
pub(super) struct Template {
    value: Value,
    main: usize,
}

impl Template {
    pub(super) fn of(group: &Group) -> Self {
        let main = group.extras.as_ref().map_or(0, |extras| extras.container);
        Self { value: pod_template(group), main }
    }

    pub(super) fn spec(&mut self) -> &mut Object {
        object_in(object(&mut self.value), "spec")
    }

    pub(super) fn metadata(&mut self) -> &mut Object {
        object_in(object(&mut self.value), "metadata")
    }

    /// The container that counts.
    pub(super) fn container(&mut self) -> &mut Object {
        let main = self.main;
        let containers = list_in(self.spec(), "containers");
        while containers.len() <= main {
            containers.push(json!({}));
        }
        // The loop above made the place.
        match containers.get_mut(main) {
            Some(container) => object(container),
            None => unreachable!("a list has the places it was filled up to"),
        }
    }

    pub(super) fn container_name(&mut self) -> String {
        self.container().get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Where the container leaves its last words.
    pub(super) fn termination_message_path(&mut self) -> String {
        let stated = self.container().get("terminationMessagePath").and_then(Value::as_str);
        stated.unwrap_or("/dev/termination-log").to_owned()
    }

    /// Whether the pod spec says yes to something.
    pub(super) fn says(&mut self, key: &str) -> bool {
        self.spec().get(key) == Some(&Value::Bool(true))
    }

    /// Sets a key of the spec, unless the template says something there.
    pub(super) fn default(&mut self, key: &str, value: Value) {
        let slot = self.spec().entry(key).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }

    /// Adds a volume; one of that name goes.
    pub(super) fn add_volume(&mut self, volume: Value) {
        let volumes = list_in(self.spec(), "volumes");
        volumes.retain(|known| known.get("name") != volume.get("name"));
        volumes.push(volume);
    }

    /// Mounts a volume in the container that counts; what was mounted at that path goes.
    pub(super) fn mount(&mut self, mount: Value) {
        let mounts = list_in(self.container(), "volumeMounts");
        mounts.retain(|known| known.get("mountPath") != mount.get("mountPath"));
        mounts.push(mount);
    }

    /// Sets a variable of the container that counts, in the place of one of that name.
    pub(super) fn set_variable(&mut self, variable: Value) {
        let env = list_in(self.container(), "env");
        match env.iter_mut().find(|known| known.get("name") == variable.get("name")) {
            Some(known) => *known = variable,
            None => env.push(variable),
        }
    }

    /// Adds init containers before all others.
    pub(super) fn add_init(&mut self, containers: Vec<Value>) {
        let known = list_in(self.spec(), "initContainers");
        known.splice(0..0, containers);
    }

    pub(super) fn into_json(self) -> Value {
        self.value
    }
}

/// The object that a value is; made one when it is none.
pub(super) fn object(value: &mut Value) -> &mut Object {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("it was just made one"),
    }
}

/// The object under a key, made when there is none.
pub(super) fn object_in<'object>(parent: &'object mut Object, key: &str) -> &'object mut Object {
    object(parent.entry(key).or_insert(Value::Null))
}

/// The list under a key, made when there is none.
pub(super) fn list_in<'object>(parent: &'object mut Object, key: &str) -> &'object mut Vec<Value> {
    let value = parent.entry(key).or_insert(Value::Null);
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("it was just made one"),
    }
}
