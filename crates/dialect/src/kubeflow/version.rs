//! Which version an object was written in. A cluster serves it in any version without changing it.

use unisono_job::Dialect;

use crate::kubernetes::{LAST_APPLIED, from_a_cluster};
use crate::tree::Node;

/// Keys of `spec` that only some versions have.
const TELLING: &[(&str, &[Dialect])] = {
    use Dialect::{
        KubeflowV1 as V1, KubeflowV1alpha1 as V1alpha1, KubeflowV1alpha2 as V1alpha2,
        KubeflowV2beta1 as V2beta1,
    };
    &[
        ("template", &[V1alpha1]),
        ("gpus", &[V1alpha1]),
        ("processingUnits", &[V1alpha1]),
        ("replicas", &[V1alpha1]),
        ("mpiReplicaSpecs", &[V1alpha2, V1, V2beta1]),
        ("backoffLimit", &[V1alpha1, V1alpha2]),
        ("activeDeadlineSeconds", &[V1alpha1, V1alpha2]),
        ("mpiDistribution", &[V1alpha2]),
        ("cleanPodPolicy", &[V1alpha2, V1]),
        ("mainContainer", &[V1alpha2, V1]),
        ("runPolicy", &[V1alpha2, V1, V2beta1]),
        ("mpiImplementation", &[V2beta1]),
        ("sshAuthMountPath", &[V2beta1]),
        ("launcherCreationPolicy", &[V2beta1]),
        ("runLauncherAsWorker", &[V2beta1]),
    ]
};

const VERSIONS: [Dialect; 4] = [
    Dialect::KubeflowV1alpha1,
    Dialect::KubeflowV1alpha2,
    Dialect::KubeflowV1,
    Dialect::KubeflowV2beta1,
];

/// The version with that `apiVersion`.
pub(crate) fn version(api_version: &str) -> Option<Dialect> {
    VERSIONS.into_iter().find(|it| super::api_version(*it) == api_version)
}

/// The version an object was written in: for a file what it says; for an object of a cluster what its fields tell,
/// else its managed fields, else the last-applied annotation, else what it says.
pub(crate) fn written_version(root: &Node, served: Dialect) -> Dialect {
    if !from_a_cluster(root) {
        return served;
    }
    let possible = by_shape(root);
    if let [only] = possible.as_slice() {
        return *only;
    }
    let fits = |version: &Dialect| possible.is_empty() || possible.contains(version);
    by_managed_fields(root)
        .filter(fits)
        .or_else(|| by_last_applied(root).filter(fits))
        .or_else(|| Some(served).filter(fits))
        .or_else(|| possible.last().copied())
        .unwrap_or(served)
}

/// The versions that have every telling key of the object; none when its keys contradict each other.
fn by_shape(root: &Node) -> Vec<Dialect> {
    let spec = root.get("spec").map(Node::entries).unwrap_or_default();
    let telling: Vec<&[Dialect]> = spec
        .iter()
        .filter_map(|entry| TELLING.iter().find(|(key, _)| *key == entry.key))
        .map(|(_, versions)| *versions)
        .collect();
    VERSIONS
        .into_iter()
        .filter(|version| telling.iter().all(|versions| versions.contains(version)))
        .collect()
}

/// The version through which whoever wrote the pods did so. A later edit of a single field does not count.
fn by_managed_fields(root: &Node) -> Option<Dialect> {
    let entries = root.at(&["metadata", "managedFields"])?.items();
    let writers = entries.iter().filter(|entry| {
        entry.get("subresource").is_none()
            && ["f:mpiReplicaSpecs", "f:template"]
                .iter()
                .any(|field| entry.at(&["fieldsV1", "f:spec", field]).is_some())
    });
    // Times are written so that the order of texts is the order of times.
    let first = writers.min_by_key(|entry| entry.get("time").and_then(Node::scalar_text))?;
    version(first.get("apiVersion")?.text()?)
}

/// The version of the file that `kubectl apply` was given.
fn by_last_applied(root: &Node) -> Option<Dialect> {
    let text = root.at(&["metadata", "annotations", LAST_APPLIED])?.text()?;
    let applied: serde_json::Value = serde_json::from_str(text).ok()?;
    version(applied.get("apiVersion")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::document_from_object;

    fn written(object: &Value) -> Dialect {
        let served = version(object["apiVersion"].as_str().unwrap()).unwrap();
        written_version(&document_from_object(object).root, served)
    }

    fn object(metadata: &Value, spec: &Value) -> Value {
        json!({"apiVersion": "kubeflow.org/v1", "metadata": metadata, "spec": spec})
    }

    fn manager(version: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": "m", "apiVersion": version, "time": time, "fieldsV1": {"f:spec": fields}})
    }

    #[test]
    fn a_file_is_what_it_says() {
        let spec = json!({"mpiReplicaSpecs": {}, "mpiImplementation": "Intel"});
        assert_eq!(written(&object(&json!({"name": "a"}), &spec)), Dialect::KubeflowV1);
    }

    #[test]
    fn fields_that_one_version_has_tell_it() {
        let cases = [
            (json!({"gpus": 8, "template": {}}), Dialect::KubeflowV1alpha1),
            (json!({"mpiReplicaSpecs": {}, "backoffLimit": 1}), Dialect::KubeflowV1alpha2),
            (json!({"mpiReplicaSpecs": {}, "mpiDistribution": "MPICH"}), Dialect::KubeflowV1alpha2),
            (json!({"mpiReplicaSpecs": {}, "sshAuthMountPath": "/x"}), Dialect::KubeflowV2beta1),
            (json!({"mpiReplicaSpecs": {}, "cleanPodPolicy": "All"}), Dialect::KubeflowV1),
        ];
        for (spec, version) in cases {
            assert_eq!(written(&object(&json!({"uid": "1"}), &spec)), version, "{spec}");
        }
    }

    #[test]
    fn else_the_managed_fields_of_the_first_writer_tell_it() {
        let pods = json!({"f:mpiReplicaSpecs": {"f:Launcher": {}}});
        let managed = json!([
            manager("kubeflow.org/v1", "2026-03-02T10:00:00Z", &pods),
            manager("kubeflow.org/v2beta1", "2026-03-01T10:00:00Z", &pods),
            manager("kubeflow.org/v1alpha2", "2026-02-01T10:00:00Z", &json!({"f:slotsPerWorker": {}})),
            {"apiVersion": "kubeflow.org/v1", "subresource": "status", "fieldsV1": {"f:spec": pods}},
        ]);
        let object = object(&json!({"managedFields": managed}), &json!({"mpiReplicaSpecs": {}}));
        assert_eq!(written(&object), Dialect::KubeflowV2beta1);
    }

    #[test]
    fn else_the_last_applied_file_tells_it() {
        let applied = r#"{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob"}"#;
        let metadata = json!({"uid": "1", "annotations": {LAST_APPLIED: applied}});
        let spec = json!({"mpiReplicaSpecs": {}});
        assert_eq!(written(&object(&metadata, &spec)), Dialect::KubeflowV2beta1);
        let garbled = json!({"uid": "1", "annotations": {LAST_APPLIED: "{"}});
        assert_eq!(written(&object(&garbled, &spec)), Dialect::KubeflowV1);
    }

    #[test]
    fn a_claim_that_the_fields_refute_does_not_count() {
        let applied = r#"{"apiVersion":"kubeflow.org/v2beta1"}"#;
        let metadata = json!({"uid": "1", "annotations": {LAST_APPLIED: applied}});
        let spec = json!({"mpiReplicaSpecs": {}, "mainContainer": "m"});
        assert_eq!(written(&object(&metadata, &spec)), Dialect::KubeflowV1);
        let contradiction = json!({"mpiReplicaSpecs": {}, "gpus": 1, "mpiImplementation": "Intel"});
        assert_eq!(written(&object(&metadata, &contradiction)), Dialect::KubeflowV2beta1);
    }
}
