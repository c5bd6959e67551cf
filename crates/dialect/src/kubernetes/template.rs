//! Lifts out of a pod template what every engine needs, and lists what only Kubernetes can use.

use std::collections::BTreeMap;

use unisono_job::{Command, EnvVar, Image, Quantity, Resources};

use crate::tree::Node;

/// What every engine needs of a pod template.
#[derive(Debug)]
pub(crate) struct Lifted {
    /// `command` and `args`; absent when both are.
    pub(crate) command: Option<Command>,
    pub(crate) image: Option<Image>,
    pub(crate) resources: Resources,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) working_dir: Option<String>,
    /// The size of a `/dev/shm` in memory, in MiB.
    pub(crate) shm_mib: Option<u64>,
    /// Paths that have no effect outside Kubernetes.
    pub(crate) kubernetes_only: Vec<String>,
}

/// The place of the container of that name; the first one counts when there is none.
pub(crate) fn container_named(template: &Node, name: &str) -> Option<usize> {
    containers(template).iter().position(|it| it.get("name").and_then(Node::text) == Some(name))
}

/// Reads one container of a template and what belongs to it.
pub(crate) fn lift(template: &Node, container: usize) -> Lifted {
    let null = Node { range: template.range, value: crate::Value::Null };
    let main = containers(template).get(container).unwrap_or(&null);
    let shm = shared_memory(template, main);
    Lifted {
        command: command(main),
        image: text(main, "image").map(Image::Container),
        resources: Resources {
            limits: quantities(main.at(&["resources", "limits"])),
            requests: quantities(main.at(&["resources", "requests"])),
        },
        env: main
            .get("env")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(variable)
            .collect(),
        working_dir: text(main, "workingDir"),
        shm_mib: shm.as_ref().map(|it| it.mib),
        kubernetes_only: kubernetes_only(template, container, shm.as_ref()),
    }
}

/// Amounts by name.
pub(crate) fn quantities(node: Option<&Node>) -> BTreeMap<String, Quantity> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| {
            Some((entry.key.clone(), Quantity::parse(&entry.node.scalar_text()?).ok()?))
        })
        .collect()
}

fn containers(template: &Node) -> &[Node] {
    template.at(&["spec", "containers"]).map(Node::items).unwrap_or_default()
}

fn command(container: &Node) -> Option<Command> {
    let words = |key: &str| -> Vec<String> {
        let items = container.get(key).map(Node::items).unwrap_or_default();
        items.iter().filter_map(Node::scalar_text).collect()
    };
    let (command, args) = (words("command"), words("args"));
    match (command.is_empty(), args.is_empty()) {
        (false, _) => Some(Command::Words([command, args].concat())),
        (true, false) => Some(Command::ImageEntry(args)),
        (true, true) => None,
    }
}

fn variable(node: &Node) -> Option<EnvVar> {
    let name = text(node, "name")?;
    let value = match node.at(&["valueFrom"]) {
        Some(_) => None,
        None => Some(text(node, "value").unwrap_or_default()),
    };
    Some(EnvVar { name, value })
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::text).filter(|it| !it.is_empty()).map(str::to_owned)
}

/// A volume in memory, mounted at `/dev/shm`.
struct SharedMemory {
    volume: String,
    mib: u64,
}

fn shared_memory(template: &Node, container: &Node) -> Option<SharedMemory> {
    const MIB: u64 = 1024 * 1024;
    let mounts = container.get("volumeMounts").map(Node::items)?;
    let mount = mounts.iter().find(|it| is_shm(it))?;
    let volume = text(mount, "name")?;
    let volumes = template.at(&["spec", "volumes"]).map(Node::items)?;
    let directory = volumes
        .iter()
        .find(|it| text(it, "name").as_deref() == Some(&volume))?
        .at(&["emptyDir"])?;
    if text(directory, "medium").as_deref() != Some("Memory") {
        return None;
    }
    let limit = Quantity::parse(&directory.at(&["sizeLimit"])?.scalar_text()?).ok()?;
    Some(SharedMemory { volume, mib: limit.whole().div_ceil(MIB) })
}

fn is_shm(mount: &Node) -> bool {
    text(mount, "mountPath").is_some_and(|path| path.trim_end_matches('/') == "/dev/shm")
}

/// Keys of the container that counts which are lifted, or mean nothing by themselves.
const LIFTED: &[&str] =
    &["name", "image", "imagePullPolicy", "command", "args", "env", "workingDir"];

/// More paths than any template has that people write: pods and containers have some forty fields each.
const MOST_PATHS: usize = 100;

/// What only Kubernetes can use, by path; a template that is made to have very many of them is told as a whole.
fn kubernetes_only(template: &Node, main: usize, shm: Option<&SharedMemory>) -> Vec<String> {
    let paths = all_kubernetes_only(template, main, shm);
    if paths.len() <= MOST_PATHS {
        return paths.iter().map(|path| crate::clipped(path)).collect();
    }
    vec!["metadata".to_owned(), "spec".to_owned()]
}

fn all_kubernetes_only(template: &Node, main: usize, shm: Option<&SharedMemory>) -> Vec<String> {
    let mut paths = Vec::new();
    for key in ["labels", "annotations"] {
        let held = template.get("metadata").and_then(|it| it.get(key));
        if held.is_some_and(says_something) {
            paths.push(format!("metadata.{key}"));
        }
    }
    let entries = template.get("spec").map(Node::entries).unwrap_or_default();
    for entry in entries.iter().filter(|entry| says_something(&entry.node)) {
        match entry.key.as_str() {
            "restartPolicy" => {}
            "containers" => {
                for (index, container) in entry.node.items().iter().enumerate() {
                    if index == main {
                        paths.extend(container_paths(container, index, shm));
                    } else {
                        paths.push(format!("spec.containers[{index}]"));
                    }
                }
            }
            "volumes" => {
                let others = entry
                    .node
                    .items()
                    .iter()
                    .any(|it| text(it, "name").as_deref() != shm.map(|it| it.volume.as_str()));
                paths.extend(others.then(|| "spec.volumes".to_owned()));
            }
            key => paths.push(format!("spec.{key}")),
        }
    }
    paths
}

fn container_paths(container: &Node, index: usize, shm: Option<&SharedMemory>) -> Vec<String> {
    let counts = |key: &str, node: &Node| match key {
        "resources" => node.at(&["claims"]).is_some_and(says_something),
        "volumeMounts" => node.items().iter().any(|it| shm.is_none() || !is_shm(it)),
        key => !LIFTED.contains(&key),
    };
    container
        .entries()
        .iter()
        .filter(|entry| says_something(&entry.node) && counts(&entry.key, &entry.node))
        .map(|entry| format!("spec.containers[{index}].{}", entry.key))
        .collect()
}

/// Whether a value is more than an empty map, an empty list or nothing.
fn says_something(node: &Node) -> bool {
    match &node.value {
        crate::Value::Null => false,
        crate::Value::List(items) => !items.is_empty(),
        crate::Value::Map(entries) => !entries.is_empty(),
        crate::Value::Plain(_)
        | crate::Value::Boolean(_)
        | crate::Value::Integer(_)
        | crate::Value::Number(..)
        | crate::Value::Text(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_from_object;

    fn lifted(template: &serde_json::Value, container: usize) -> Lifted {
        lift(&document_from_object(template).root, container)
    }

    #[test]
    fn command_and_arguments_are_joined_word_by_word() {
        let template = serde_json::json!({"spec": {"containers": [
            {"name": "a", "command": ["/bin/bash", "-c"], "args": ["mpirun a b"]},
            {"name": "b", "args": ["x"]},
            {"name": "c"},
        ]}});
        let words = ["/bin/bash", "-c", "mpirun a b"].map(str::to_owned).to_vec();
        assert_eq!(lifted(&template, 0).command, Some(Command::Words(words)));
        let entry = Command::ImageEntry(vec!["x".to_owned()]);
        assert_eq!(lifted(&template, 1).command, Some(entry));
        assert_eq!(lifted(&template, 2).command, None);
        assert_eq!(lifted(&template, 3).command, None, "a container that is not there");
        let root = document_from_object(&template).root;
        assert_eq!((container_named(&root, "b"), container_named(&root, "z")), (Some(1), None));
    }

    #[test]
    fn variables_that_only_kubernetes_knows_have_no_value() {
        let template = serde_json::json!({"spec": {"containers": [{"env": [
            {"name": "A", "value": "1"},
            {"name": "B"},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]}]}});
        let env = lifted(&template, 0).env;
        let values: Vec<_> = env.iter().map(|it| it.value.as_deref()).collect();
        assert_eq!(values, [Some("1"), Some(""), None]);
    }

    #[test]
    fn shared_memory_is_a_memory_volume_at_dev_shm() {
        let template = |medium: &str| {
            serde_json::json!({"spec": {
                "containers": [{"volumeMounts": [{"name": "m", "mountPath": "/dev/shm/"}]}],
                "volumes": [{"name": "m", "emptyDir": {"medium": medium, "sizeLimit": "1.5Gi"}}],
            }})
        };
        assert_eq!(lifted(&template("Memory"), 0).shm_mib, Some(1536));
        assert_eq!(lifted(&template("Memory"), 0).kubernetes_only, Vec::<String>::new());
        assert_eq!(lifted(&template(""), 0).shm_mib, None);
        assert_eq!(lifted(&template(""), 0).kubernetes_only.len(), 2);
    }

    #[test]
    fn a_template_of_very_many_parts_is_told_as_a_whole() {
        let containers = |count| vec![serde_json::json!({"name": "a"}); count];
        let template = |count| serde_json::json!({"spec": {"containers": containers(count)}});
        assert_eq!(lifted(&template(MOST_PATHS + 1), 0).kubernetes_only.len(), MOST_PATHS);
        assert_eq!(lifted(&template(MOST_PATHS + 2), 0).kubernetes_only, ["metadata", "spec"]);
        let long = serde_json::json!({"spec": {"x".repeat(10_000): 1}});
        assert!(lifted(&long, 0).kubernetes_only[0].len() < 200);
    }

    #[test]
    fn what_only_kubernetes_can_use_is_listed() {
        let template = serde_json::json!({
            "metadata": {"creationTimestamp": null, "labels": {"team": "x"}, "annotations": {}},
            "spec": {
                "nodeSelector": {"disk": "fast"},
                "securityContext": {},
                "restartPolicy": "Never",
                "containers": [
                    {"name": "a", "image": "b", "resources": {"limits": {"cpu": 1}}, "tty": true},
                    {"name": "side", "image": "c"},
                ],
            },
        });
        assert_eq!(
            lifted(&template, 0).kubernetes_only,
            [
                "metadata.labels",
                "spec.nodeSelector",
                "spec.containers[0].tty",
                "spec.containers[1]"
            ]
        );
    }
}
