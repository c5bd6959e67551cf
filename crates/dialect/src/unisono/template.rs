//! A group's pod template: kept whole, with a list of what has no effect outside Kubernetes.

use unisono_job::Extras;

use super::group::number;
use super::text;
use crate::tree::Node;

/// What the neutral model has fields for; the group's own fields say it again and win.
const LIFTED: [&str; 7] = ["name", "image", "command", "args", "env", "resources", "workingDir"];

/// What only Kubernetes can use of a group.
pub(super) fn extras(group: &Node) -> Option<Extras> {
    let template = group.at(&["template"]);
    let ssh_auth_path = group.at(&["sshAuthMountPath"]).and_then(text);
    if template.is_none() && ssh_auth_path.is_none() {
        return None;
    }
    let container = number(group.at(&["templateContainer"])).unwrap_or(0);
    Some(Extras {
        template: template.map_or_else(|| "{}".to_owned(), |it| it.to_json().to_string()),
        kubernetes_only: template.map(|it| kubernetes_only(it, container)).unwrap_or_default(),
        container,
        ssh_auth_path,
    })
}

/// Paths that only Kubernetes acts on, in document order.
fn kubernetes_only(template: &Node, container: usize) -> Vec<String> {
    let mut paths = Vec::new();
    for part in template.entries() {
        for field in part.node.entries() {
            let path = format!("{}.{}", part.key, field.key);
            if path == "spec.containers" {
                push_containers(field.node.items(), container, &mut paths);
            } else {
                paths.push(path);
            }
        }
    }
    paths
}

fn push_containers(containers: &[Node], main: usize, paths: &mut Vec<String>) {
    for (index, container) in containers.iter().enumerate() {
        if index != main {
            paths.push(format!("spec.containers[{index}]"));
            continue;
        }
        let own = container.entries().iter().filter(|it| !LIFTED.contains(&it.key.as_str()));
        paths.extend(own.map(|entry| format!("spec.containers[{index}].{}", entry.key)));
    }
}
