//! The operator's own pods, and the budget that keeps one of them up.

use serde_json::{Value, json};

use super::{NAME, Options, PORT};

pub(super) fn objects(options: &Options) -> [Value; 2] {
    [deployment(options), budget(options)]
}

fn deployment(options: &Options) -> Value {
    let selector = json!({"app.kubernetes.io/name": NAME});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": super::labels()},
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": super::labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65534,
                        "runAsGroup": 65534,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": selector},
                    }],
                    "containers": [container(options)],
                },
            },
        },
    })
}

fn container(options: &Options) -> Value {
    let mut arguments = vec![
        "operator".to_owned(),
        "run".to_owned(),
        format!("--image={}", options.image),
        format!("--listen=0.0.0.0:{PORT}"),
        "--log=json".to_owned(),
    ];
    arguments.extend(options.only_namespace.iter().map(|it| format!("--namespace={it}")));
    arguments.extend(options.arguments.iter().cloned());
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}});
    let from = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    json!({
        "name": "operator",
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/unisono"],
        "args": arguments,
        "env": [
            {"name": "POD_NAME", "valueFrom": from("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": from("metadata.namespace")},
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

fn budget(options: &Options) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": super::labels()},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
        },
    })
}
