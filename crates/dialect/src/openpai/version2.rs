//! Protocol version 2: prerequisites, parameters, and a map of task roles.

use std::collections::BTreeSet;

use unisono_job::{
    Command, Dialect, EndRule, Gang, Job, JobName, Note, Policies, PortRequest, Retry, RetryCount,
    Secrets, Shell,
};

use super::codes::{BUILT_IN, UNKNOWN_PREREQUISITE, UNRESOLVED_REFERENCE};
use super::fields::MAX_ROLES;
use super::protocol::{PLUGINS, is_role_name};
use super::references;
use super::role::{Parts, Role, number};
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::{Entry, Node};
use crate::{clipped, codes, nearest};

/// The job of a document.
pub(super) fn lower(root: &Node, notebook: &mut Notebook<'_>) -> Option<Job> {
    let mut kept = Kept::default();
    check_prerequisites(root, notebook);
    check_deployment(root, notebook);
    let mut secrets = Secrets::default();
    let roles = roles(root, &mut kept, &mut secrets, notebook);
    keep(root, &mut kept, notebook);
    notebook.origin("name", root.at(&["name"]));
    notebook.origin("policies.retry", root.at(&["jobRetryCount"]));
    let name = JobName::new(root.at(&["name"])?.text()?).ok()?;
    let queue = root.at(&["defaults", "virtualCluster"]).and_then(Node::text);
    let queue = queue.filter(|text| !text.is_empty()).unwrap_or("default");
    let gang = Gang {
        queue: Some(queue.to_owned()),
        min_members: (!is_gang(root)).then_some(1),
        ..Gang::default()
    };
    let retries = number(root.at(&["jobRetryCount"])).unwrap_or(0);
    let retry = Retry::ByClass(RetryCount::Limited(retries));
    let policies = Policies { retry, gang, ..Policies::default() };
    let (dialect, env, code) = (Dialect::OpenPaiV2, Vec::new(), None);
    Some(Parts { dialect, name, roles, env, code, policies, kept, secrets }.into_job())
}

/// Tasks start together or not at all, unless the file says otherwise.
fn is_gang(root: &Node) -> bool {
    let stated = root.at(&["extras", "gangAllocation"]);
    let truth = stated.and_then(|node| node.boolean().or_else(|| node.text()?.parse().ok()));
    truth.unwrap_or(true)
}

fn prerequisites<'tree>(
    root: &'tree Node,
    kind: &str,
) -> impl Iterator<Item = (&'tree str, &'tree Node)> {
    let list = root.at(&["prerequisites"]).map_or(&[][..], Node::items);
    let of_kind = move |node: &&Node| node.at(&["type"]).and_then(Node::text) == Some(kind);
    let kind_only: Vec<&Node> = list.iter().filter(of_kind).collect();
    kind_only.into_iter().filter_map(|node| Some((node.at(&["name"])?.text()?, node)))
}

/// Of one type each name stands once, and each image says where it is.
fn check_prerequisites(root: &Node, notebook: &mut Notebook<'_>) {
    let mut seen = BTreeSet::new();
    for node in root.at(&["prerequisites"]).map_or(&[][..], Node::items) {
        let text = |key| node.at(&[key]).and_then(Node::text);
        let (Some(kind), Some(name)) = (text("type"), text("name")) else { continue };
        if !seen.insert((kind, name)) {
            let message = format!("a second {kind} prerequisite is called `{}`", clipped(name));
            let note = Note::new(&codes::INVALID, message).hint("give it another name");
            notebook.tell(note, node);
        }
        let uri = node.at(&["uri"]);
        if kind == "dockerimage" && uri.and_then(Node::text).is_none() {
            let note = Note::new(&codes::MISSING, "the image needs `uri`, one address")
                .hint("add `uri`: the image, such as `registry/name:tag`");
            notebook.tell(note, uri.unwrap_or(node));
        }
        if let Some(auth) = node.at(&["auth"]) {
            let note = Note::new(
                &codes::IGNORED,
                "registry credentials are not used: `auth` has no effect, and is not kept",
            )
            .hint("on Kubernetes give the service account an image pull secret");
            notebook.tell(note, auth);
        }
    }
}

fn check_deployment(root: &Node, notebook: &mut Notebook<'_>) {
    let Some(chosen) = root.at(&["defaults", "deployment"]) else { return };
    if let (Some(name), None) = (chosen.text(), deployment(root)) {
        let message = format!("no deployment is called `{}`", clipped(name));
        let note = Note::new(&codes::INVALID, message)
            .hint("add it to `deployments`, or remove this line");
        notebook.tell(note, chosen);
    }
}

/// The deployment that the defaults choose.
fn deployment(root: &Node) -> Option<&Node> {
    let chosen = root.at(&["defaults", "deployment"])?.text()?;
    let list = root.at(&["deployments"])?.items();
    list.iter().find(|node| node.at(&["name"]).and_then(Node::text) == Some(chosen))
}

fn roles(
    root: &Node,
    kept: &mut Kept,
    secrets: &mut Secrets,
    notebook: &mut Notebook<'_>,
) -> Vec<Role> {
    let Some(map) = root.at(&["taskRoles"]) else { return Vec::new() };
    let entries = map.entries();
    if entries.is_empty() {
        let note = Note::new(&codes::BAD_FORM, "the job needs at least one task role");
        notebook.tell(note, map);
    }
    if entries.len() > MAX_ROLES {
        let message = format!("the job has {} task roles: the most is {MAX_ROLES}", entries.len());
        notebook.tell(Note::new(&codes::OUT_OF_RANGE, message), map);
        return Vec::new();
    }
    let mut roles = Vec::new();
    for entry in entries {
        if !is_role_name(&entry.key) {
            let message = format!(
                "`{}` is not a role name (letters, digits and `_`, not a digit first)",
                clipped(&entry.key)
            );
            notebook.tell_key(Note::new(&codes::BAD_FORM, message), entry);
        }
        keep_role(root, entry, kept, notebook);
        roles.extend(role(root, entry, secrets, notebook));
    }
    roles
}

fn role(
    root: &Node,
    entry: &Entry,
    secrets: &mut Secrets,
    notebook: &mut Notebook<'_>,
) -> Option<Role> {
    let (name, node) = (&entry.key, &entry.node);
    let tasks = number(node.at(&["instances"])).unwrap_or(1);
    let resources = node.at(&["resourcePerInstance"]);
    let amount = |key| number(resources.and_then(|it| it.at(&[key]))).unwrap_or(0);
    let option = |key| node.at(&["extraContainerOptions", key]);
    for (key, place) in [
        ("replicas", node.at(&["instances"])),
        ("slots", resources.and_then(|it| it.at(&["gpu"]))),
        ("command", node.at(&["commands"])),
    ] {
        notebook.origin(format!("{name}.{key}"), place);
    }
    let image = reference(root, node, "dockerImage", "dockerimage", notebook);
    for (key, kind) in [("data", "data"), ("output", "output"), ("script", "script")] {
        reference(root, node, key, kind, notebook);
    }
    let infiniband =
        option("infiniband").and_then(|it| it.boolean().or_else(|| it.text()?.parse().ok()));
    Some(Role {
        name: name.clone(),
        tasks,
        cpus: amount("cpu"),
        memory_mib: amount("memoryMB"),
        gpus: amount("gpu"),
        shm_mib: number(option("shmMB")).unwrap_or(512),
        infiniband: infiniband.unwrap_or(false),
        ports: ports(resources.and_then(|it| it.at(&["ports"]))),
        image: image.and_then(|node| Some(node.at(&["uri"])?.text()?.to_owned())),
        command: command(root, entry, secrets, notebook)?,
        end: EndRule {
            min_failed: minimum(node.at(&["completion", "minFailedInstances"]), 1),
            min_succeeded: minimum(node.at(&["completion", "minSucceededInstances"]), tasks),
        },
    })
}

/// −1 means never; nothing, null and 0 mean the default.
fn minimum(node: Option<&Node>, default: u32) -> Option<u32> {
    match number::<i64>(node) {
        None | Some(0) => Some(default),
        Some(count) => u32::try_from(count).ok(),
    }
}

fn ports(map: Option<&Node>) -> Vec<PortRequest> {
    map.map_or(&[][..], Node::entries)
        .iter()
        .filter_map(|entry| {
            let count = number(Some(&entry.node))?;
            Some(PortRequest { label: entry.key.clone(), begin_at: None, count })
        })
        .collect()
}

/// The prerequisite that a role names.
fn reference<'tree>(
    root: &'tree Node,
    role: &Node,
    key: &str,
    kind: &str,
    notebook: &mut Notebook<'_>,
) -> Option<&'tree Node> {
    let node = role.at(&[key])?;
    let name = node.text()?;
    let found = prerequisites(root, kind).find(|(known, _)| *known == name);
    if found.is_none() {
        let message = format!("no {kind} prerequisite is called `{}`", clipped(name));
        let note = Note::new(&UNKNOWN_PREREQUISITE, message);
        let near = nearest(name, prerequisites(root, kind).map(|(known, _)| known));
        notebook.tell(
            note.hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add it: `- {{type: {kind}, name: {}, uri: …}}`", clipped(name)),
            }),
            node,
        );
    }
    found.map(|(_, node)| node)
}

/// The deployment's commands around the role's own, references replaced, joined to one script.
fn command(
    root: &Node,
    role: &Entry,
    secrets: &mut Secrets,
    notebook: &mut Notebook<'_>,
) -> Option<Command> {
    let commands = role.node.at(&["commands"])?;
    let around = |key| {
        let lines = deployment(root).and_then(|it| it.at(&["taskRoles", &role.key, key]));
        lines.map_or(&[][..], Node::items)
    };
    let lines = around("preCommands").iter().chain(commands.items()).chain(around("postCommands"));
    let mut found = references::Found { secrets: std::mem::take(secrets), ..Default::default() };
    let lines: Vec<String> = lines
        .filter_map(Node::text)
        .map(|line| references::substitute(line, root, &mut found))
        .collect();
    *secrets = found.secrets;
    for written in found.unresolved {
        let message = format!("`{}` has no value, and stays in the command", clipped(&written));
        let note =
            Note::new(&UNRESOLVED_REFERENCE, message).hint("add it to `parameters` or `secrets`");
        notebook.tell(note, commands);
    }
    Some(Command::Line { shell: Shell::StrictBash, text: lines.join("\n") })
}

/// What a role says and the neutral job has no place for.
fn keep_role(root: &Node, entry: &Entry, kept: &mut Kept, notebook: &mut Notebook<'_>) {
    for key in ["data", "output", "script", "prerequisites", "taskRetryCount"] {
        if let Some(node) = entry.node.at(&[key]) {
            kept.set(&["taskRoles", &entry.key, key], node.to_json());
        }
    }
    if let Some(node) = entry.node.at(&["taskRetryCount"]) {
        let message = if is_gang(root) {
            "with gang allocation a task is never tried again alone: `taskRetryCount` has no effect"
        } else {
            "ranks cannot outlive each other: the whole job is tried again, not one task"
        };
        notebook.tell(Note::new(&codes::IGNORED, message).hint("use `jobRetryCount`"), node);
    }
}

/// What the file says and the neutral job has no place for, told where somebody might expect an effect.
fn keep(root: &Node, kept: &mut Kept, notebook: &mut Notebook<'_>) {
    for key in ["version", "contributor", "description", "parameters", "deployments", "extras"] {
        if let Some(node) = root.at(&[key]) {
            kept.set(&[key], node.to_json());
        }
    }
    let others: Vec<serde_json::Value> = root
        .at(&["prerequisites"])
        .map_or(&[][..], Node::items)
        .iter()
        .filter(|node| node.at(&["type"]).and_then(Node::text) != Some("dockerimage"))
        .map(|node| without_auth(node.to_json()))
        .collect();
    if !others.is_empty() {
        kept.set(&["prerequisites"], others.into());
        if let Some(list) = root.at(&["prerequisites"]) {
            let message = "scripts, data and outputs are not fetched: their prerequisites are kept, without effect";
            notebook.tell(Note::new(&codes::IGNORED, message), list);
        }
    }
    if let (Some(list), None) = (root.at(&["deployments"]), deployment(root)) {
        let note =
            Note::new(&codes::IGNORED, "no deployment is chosen: `deployments` has no effect")
                .hint("choose one by `defaults: {deployment: NAME}`");
        notebook.tell(note, list);
    }
    keep_extras(root, notebook);
}

fn without_auth(mut prerequisite: serde_json::Value) -> serde_json::Value {
    if let Some(map) = prerequisite.as_object_mut() {
        map.shift_remove("auth");
    }
    prerequisite
}

fn keep_extras(root: &Node, notebook: &mut Notebook<'_>) {
    for (key, why) in [
        ("hivedScheduler", "the HiveD scheduler is not used"),
        ("storages", "storages are not mounted"),
    ] {
        if let Some(node) = root.at(&["extras", key]) {
            let message = format!("{why}: `{key}` is kept, without effect");
            notebook.tell(Note::new(&codes::IGNORED, message), node);
        }
    }
    for node in root.at(&["extras", PLUGINS]).map_or(&[][..], Node::items) {
        match node.at(&["plugin"]).and_then(Node::text) {
            Some("ssh") => {
                let message = "hosts reach each other, and commands wait for all of them, without the ssh plugin";
                notebook.tell(Note::new(&BUILT_IN, message), node);
            }
            Some(other) => {
                let message = format!("the plugin `{}` is kept, without effect", clipped(other));
                notebook.tell(Note::new(&codes::IGNORED, message), node);
            }
            None => {}
        }
    }
}
