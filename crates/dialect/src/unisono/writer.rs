//! A job as `UnisonoJob` text: what equals its default is left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unisono_job::{
    Command, Dialect, EndRule, EnvVar, Extras, Gang, Group, Image, Job, Note, Policies,
    PortRequest, Quantity, Resources, RestartPolicy, Retry, RetryCount, Runs, Shell, is_dns_label,
    label_from,
};

use super::{
    NAME_ANNOTATION, SlotRule, default_rights, fields, group::default_end, inferred_mpi, words,
};
use crate::kubernetes::LAST_APPLIED;
use crate::write::Written;
use crate::{codes, to_yaml};

/// The job as text of this dialect, with what it could not carry.
pub(crate) fn write(job: &Job) -> Written {
    let mut notes = Vec::new();
    let object = json!({
        "apiVersion": fields::API_VERSION,
        "kind": fields::KIND,
        "metadata": Value::from(metadata(job)),
        "spec": Value::from(spec(job, &mut notes)),
    });
    Written { text: to_yaml(&object), notes }
}

/// Keys and values, without those that say nothing.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_filled(&mut self, key: &str, value: Value) {
        let is_empty = value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            self.put(key, value);
        }
    }

    fn put_word<T: Copy + PartialEq>(&mut self, key: &str, value: T, words: &[(&'static str, T)]) {
        self.put(key, words::word(words, value));
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

fn metadata(job: &Job) -> Object {
    let mut object = Object::default();
    let mut annotations = job.annotations.clone();
    annotations.remove(LAST_APPLIED);
    let name = job.name.as_str();
    if !is_dns_label(name) {
        annotations.insert(NAME_ANNOTATION.to_owned(), name.to_owned());
    }
    object.put("name", label_from(name, unisono_job::MAX_LABEL));
    object.put_some("namespace", job.namespace.clone());
    object.put_filled("labels", json!(job.labels));
    object.put_filled("annotations", json!(annotations));
    object
}

fn spec(job: &Job, notes: &mut Vec<Note>) -> Object {
    let mut object = Object::default();
    if job.dialect != Dialect::Unisono {
        object.put("writtenFor", job.dialect.name());
    }
    object.put_some("experiment", job.experiment.clone());
    if let Some(flavour) = job.mpi.flavour
        && inferred_mpi(&job.groups) != job.mpi
    {
        object.put_word("mpi", flavour, &words::MPI);
    }
    if job.launch_rights != default_rights(job.launching_group().is_some()) {
        object.put_word("launchRights", job.launch_rights, &words::LAUNCH_RIGHTS);
    }
    let rule = SlotRule::of(&job.groups);
    let groups: Vec<Value> = job.groups.iter().map(|it| group(it, &rule, notes).into()).collect();
    object.put("groups", groups);
    object.put_filled("policies", policies(&job.policies).into());
    object
}

fn group(group: &Group, rule: &SlotRule, notes: &mut Vec<Note>) -> Object {
    let mut object = Object::default();
    object.put("name", group_name(&group.name, notes));
    object.put("replicas", group.replicas);
    if rule.slots(group) != group.slots {
        object.put("slots", group.slots.count);
    }
    let (run, command) = match &group.runs {
        Runs::Launch(command) => ("Launch", Some(command)),
        Runs::LaunchOnFirst(command) => ("LaunchOnFirst", Some(command)),
        Runs::Own(command) => ("Command", Some(command)),
        Runs::Ranks(command) => ("Ranks", command.as_ref()),
    };
    object.put("run", run);
    put_command(&mut object, command);
    match &group.image {
        Some(Image::Container(image)) => object.put("image", image.clone()),
        Some(Image::AzureEnvironment(name)) => object.put("azureEnvironment", name.clone()),
        None => {}
    }
    object.put_filled("resources", resources(&group.resources).into());
    object.put_filled("env", group.env.iter().map(variable).collect());
    object.put_some("workingDir", group.working_dir.clone());
    object.put_some("code", group.code.as_ref().map(|code| code.path.clone()));
    object.put_filled("ports", group.ports.iter().map(port).collect());
    object.put_some("shmMiB", group.shm_mib);
    object.put_some("rdma", group.rdma.then_some(true));
    if group.end != default_end(&group.runs) {
        object.put("completion", completion(group.end));
    }
    if group.restart != RestartPolicy::Never {
        object.put_word("restartPolicy", group.restart, &words::RESTART);
    }
    if let Some(extras) = &group.extras {
        put_extras(&mut object, extras, &group.name, notes);
    }
    object
}

fn put_extras(object: &mut Object, extras: &Extras, group: &str, notes: &mut Vec<Note>) {
    match serde_json::from_str::<Value>(&extras.template) {
        Ok(template) => object.put("template", template),
        Err(_) => notes.push(Note::new(
            &codes::LOST,
            format!("the pod template of group `{group}` is not JSON"),
        )),
    }
    if extras.container != 0 {
        object.put("templateContainer", extras.container);
    }
    object.put_some("sshAuthMountPath", extras.ssh_auth_path.clone());
}

/// The name itself wherever a group may have it.
fn group_name(name: &str, notes: &mut Vec<Note>) -> String {
    if fields::is_group_name(name) {
        return name.to_owned();
    }
    let short = label_from(name, unisono_job::MAX_LABEL);
    let message = format!("group `{}` is written as `{short}`", crate::clipped(name));
    notes
        .push(Note::new(&codes::LOST, message).hint("give the group a name of at most 63 letters"));
    short
}

fn put_command(object: &mut Object, command: Option<&Command>) {
    match command {
        Some(Command::Words(words)) => object.put("command", json!(words)),
        Some(Command::Line { shell, text }) => {
            if *shell != Shell::Bash {
                object.put_word("shell", *shell, &words::SHELL);
            }
            object.put("script", text.clone());
        }
        Some(Command::ImageEntry(arguments)) => object.put("args", json!(arguments)),
        None => {}
    }
}

fn resources(resources: &Resources) -> Object {
    let mut object = Object::default();
    object.put_filled("limits", quantities(&resources.limits));
    object.put_filled("requests", quantities(&resources.requests));
    object
}

/// Whole numbers as numbers, everything else as the text it was written as.
fn quantities(quantities: &BTreeMap<String, Quantity>) -> Value {
    let value = |quantity: &Quantity| {
        quantity.as_str().parse::<i64>().map_or_else(|_| json!(quantity), Value::from)
    };
    quantities.iter().map(|(name, it)| (name.clone(), value(it))).collect::<Map<_, _>>().into()
}

fn variable(variable: &EnvVar) -> Value {
    let mut object = Object::default();
    object.put("name", variable.name.clone());
    object.put_some("value", variable.value.clone());
    object.into()
}

fn port(port: &PortRequest) -> Value {
    let mut object = Object::default();
    object.put("name", port.label.clone());
    object.put_some("first", port.begin_at);
    if port.count != 1 {
        object.put("count", port.count);
    }
    object.into()
}

fn completion(end: EndRule) -> Object {
    let mut object = Object::default();
    object.put_some("minFailed", end.min_failed);
    object.put_some("minSucceeded", end.min_succeeded);
    object
}

fn policies(policies: &Policies) -> Object {
    let defaults = Policies::default();
    let mut object = Object::default();
    match policies.retry {
        retry if retry == defaults.retry => {}
        Retry::Backoff { limit } => object.put("backoffLimit", limit),
        Retry::ByClass(RetryCount::Always) => object.put("retryCount", -2),
        Retry::ByClass(RetryCount::UntilSuccess) => object.put("retryCount", -1),
        Retry::ByClass(RetryCount::Limited(count)) => object.put("retryCount", count),
    }
    if policies.gang_restarts != defaults.gang_restarts {
        object.put("gangRestarts", policies.gang_restarts);
    }
    object.put_some("deadlineSeconds", policies.deadline_seconds);
    if policies.clean_up != defaults.clean_up {
        object.put_word("cleanUp", policies.clean_up, &words::CLEAN_UP);
    }
    object.put_some("ttlSecondsAfterFinished", policies.ttl_seconds);
    if policies.suspend {
        object.put("suspend", true);
    }
    object.put_some("managedBy", policies.managed_by.clone());
    if policies.launcher_start != defaults.launcher_start {
        object.put_word("launcherStart", policies.launcher_start, &words::LAUNCHER_START);
    }
    object.put_filled("gang", gang(&policies.gang).into());
    object
}

fn gang(gang: &Gang) -> Object {
    let mut object = Object::default();
    object.put_some("minMembers", gang.min_members);
    object.put_some("queue", gang.queue.clone());
    object.put_some("priorityClass", gang.priority_class.clone());
    object.put_filled("minResources", quantities(&gang.min_resources));
    object.put_some("scheduleTimeoutSeconds", gang.schedule_timeout_seconds);
    object
}
