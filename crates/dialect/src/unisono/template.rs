//! A group's pod template: kept whole, with a list of what has no effect outside Kubernetes.

use unisono_job::Extras;

use super::group::number;
use super::text;
use crate::kubernetes::lift;
use crate::tree::Node;

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
        kubernetes_only: template.map(|it| lift(it, container).kubernetes_only).unwrap_or_default(),
        container,
        ssh_auth_path,
    })
}
