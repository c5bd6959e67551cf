//! The five objects that the prototype `mpi-operator` printed.

use serde_json::{Value, json};

/// What the objects are made of.
pub(super) struct Params {
    pub(super) name: Value,
    pub(super) namespace: Value,
    pub(super) image: Value,
    pub(super) kubectl_delivery_image: Value,
    pub(super) gpus_per_node: String,
}

/// Definition, account, role, binding and deployment, in this order.
pub(super) fn objects(params: &Params) -> Vec<Value> {
    let Params { name, namespace, .. } = params;
    vec![
        definition(),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }),
        deployment(params),
    ]
}

fn definition() -> Value {
    let small = json!({"type": "integer", "enum": [1, 2, 4]});
    let large = json!({"type": "integer", "multipleOf": 8, "minimum": 8});
    let gpus = json!({"title": "GPUs of the whole job", "oneOf": [small, large]});
    let replicas = json!({"title": "Number of workers", "type": "integer", "minimum": 1});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "mpijobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "version": "v1alpha1",
            "scope": "Namespaced",
            "names": {
                "plural": "mpijobs", "singular": "mpijob", "kind": "MPIJob", "shortNames": ["mj", "mpij"],
            },
            "validation": {"openAPIV3Schema": {"properties": {"spec": {
                "title": "What an MPIJob needs: gpus or replicas, not both",
                "oneOf": [
                    {"properties": {"gpus": gpus}, "required": ["gpus"]},
                    {"properties": {"replicas": replicas}, "required": ["replicas"]},
                ],
            }}}},
        },
    })
}

/// Group, resources and verbs.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

const RULES: &[Rule] = &[
    ("", &["configmaps", "serviceaccounts"], &["create", "list", "watch"]),
    ("", &["pods"], &["get"]),
    ("", &["pods/exec"], &["create"]),
    ("", &["events"], &["create", "patch"]),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"], &["create", "list", "watch"]),
    ("apps", &["statefulsets"], &["create", "list", "update", "watch"]),
    ("batch", &["jobs"], &["create", "list", "update", "watch"]),
    ("policy", &["poddisruptionbudgets"], &["create", "list", "update", "watch"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"], &["create", "get"]),
    ("kubeflow.org", &["mpijobs"], &["*"]),
];

fn rule((group, resources, verbs): &Rule) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn deployment(params: &Params) -> Value {
    let Params { name, namespace, image, kubectl_delivery_image, gpus_per_node } = params;
    let labels = json!({"app": name});
    let arguments = json!([
        "-alsologtostderr",
        "--gpus-per-node",
        gpus_per_node,
        "--kubectl-delivery-image",
        kubectl_delivery_image,
    ]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "containers": [{
                        "name": "mpi-operator",
                        "image": image,
                        "args": arguments,
                        "imagePullPolicy": "Always",
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_objects_carry_the_parameters() {
        let objects = objects(&Params {
            name: "op".into(),
            namespace: "lab".into(),
            image: "lab/op:1".into(),
            kubectl_delivery_image: "lab/kubectl:1".into(),
            gpus_per_node: "4".into(),
        });
        let kinds: Vec<_> = objects.iter().map(|it| it["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "CustomResourceDefinition",
                "ServiceAccount",
                "ClusterRole",
                "ClusterRoleBinding",
                "Deployment"
            ]
        );
        assert_eq!(objects[2]["rules"].as_array().unwrap().len(), 10);
        let container = objects[4].pointer("/spec/template/spec/containers/0").unwrap();
        assert_eq!(
            container["args"],
            json!([
                "-alsologtostderr",
                "--gpus-per-node",
                "4",
                "--kubectl-delivery-image",
                "lab/kubectl:1"
            ])
        );
        assert_eq!(objects[3]["subjects"][0]["namespace"], "lab");
    }
}
