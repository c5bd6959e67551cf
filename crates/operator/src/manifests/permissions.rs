//! What the operator may do: exactly what it does. A test compares this table with the audit log of a real cluster.
//! And what people may do with jobs.

use serde_json::{Value, json};

use super::{NAME, Options};
use crate::resources::RESOURCES;

/// Group, resources and verbs.
type Grant = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What it does in the namespaces of jobs, besides what it does with the jobs themselves.
///
/// It gets an object by name only when that name is taken, to see whose it is. It lists no Secrets. Accounts and roles are those
/// that kube-batch promises its pods; a role can never allow more than the operator itself may do.
const WITH_JOBS: &[Grant] = &[
    ("", &["pods"], &["list", "watch", "get", "create", "patch", "delete", "deletecollection"]),
    // Those of another operator are marked when a job is taken over.
    ("batch", &["jobs"], &["list", "watch", "get", "create", "patch", "delete"]),
    // The oldest versions let one make their workers, and it would make them again.
    ("apps", &["statefulsets"], &["delete"]),
    ("batch", &["jobs/status"], &["patch"]),
    ("", &["configmaps"], &["get", "create", "patch"]),
    ("", &["secrets", "services", "serviceaccounts"], &["get", "create"]),
    ("rbac.authorization.k8s.io", &["roles"], &["get", "create", "patch"]),
    ("rbac.authorization.k8s.io", &["rolebindings"], &["get", "create"]),
    ("networking.k8s.io", &["networkpolicies"], &["get", "create"]),
    ("", &["events"], &["create"]),
    ("scheduling.x-k8s.io", &["podgroups"], &["get", "create", "patch", "delete"]),
    ("scheduling.volcano.sh", &["podgroups"], &["get", "create", "patch", "delete"]),
    ("scheduling.incubator.k8s.io", &["podgroups"], &["get", "create", "patch", "delete"]),
];

/// What it does in its own namespace.
const AT_HOME: &[Grant] = &[("coordination.k8s.io", &["leases"], &["get", "create", "update"])];

pub(super) fn objects(options: &Options) -> Vec<Value> {
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": super::labels()},
    })];
    let with_jobs: Vec<Value> = RESOURCES
        .iter()
        .flat_map(|resource| {
            let status = format!("{}/status", resource.plural);
            [
                json!({"apiGroups": [resource.group], "resources": [resource.plural], "verbs": ["list", "watch", "delete"]}),
                json!({"apiGroups": [resource.group], "resources": [status], "verbs": ["patch"]}),
            ]
        })
        .chain(WITH_JOBS.iter().map(rule))
        .collect();
    objects.extend(match &options.only_namespace {
        Some(namespace) => granted(options, "Role", Some(namespace), NAME, &with_jobs),
        None => granted(options, "ClusterRole", None, NAME, &with_jobs),
    });
    let at_home: Vec<Value> = AT_HOME.iter().map(rule).collect();
    let name = format!("{NAME}-lease");
    objects.extend(granted(options, "Role", Some(&options.namespace), &name, &at_home));
    // An installation for one namespace grants nothing beyond it.
    if options.only_namespace.is_none() {
        objects.extend(PEOPLE.iter().map(of_people));
    }
    objects
}

/// What people may do with jobs: the name of a role, the cluster's own roles that it becomes a part of, and its verbs.
type Role = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Whoever may edit a namespace may run jobs there, and whoever may view it may look at them.
const PEOPLE: &[Role] = &[
    (
        "unisono-jobs-edit",
        &["admin", "edit"],
        &["create", "delete", "deletecollection", "patch", "update"],
    ),
    ("unisono-jobs-view", &["admin", "edit", "view"], &["get", "list", "watch"]),
];

fn of_people((name, parts_of, verbs): &Role) -> Value {
    let mut labels = super::labels();
    for part_of in *parts_of {
        labels[format!("rbac.authorization.k8s.io/aggregate-to-{part_of}")] = "true".into();
    }
    let rules: Vec<Value> = RESOURCES
        .iter()
        .map(|resource| {
            let scales = resource.versions.iter().any(|version| version.scale.is_some());
            let scale = scales.then(|| format!("{}/scale", resource.plural));
            let resources: Vec<String> =
                [resource.plural.to_owned()].into_iter().chain(scale).collect();
            json!({"apiGroups": [resource.group], "resources": resources, "verbs": verbs})
        })
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
    })
}

/// A role and its binding to the operator's account.
fn granted(
    options: &Options,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    rules: &[Value],
) -> [Value; 2] {
    let mut metadata = json!({"name": name, "labels": super::labels()});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace}],
    });
    [role, binding]
}

fn rule((group, resources, verbs): &Grant) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}
