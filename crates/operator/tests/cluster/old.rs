//! A cluster that had another operator: its definition, with its objects, is taken over in place.

use anyhow::{Context, ensure};
use serde_json::json;
use unisono_testcluster::Cluster;

use crate::support::{install, job, jobs_path};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org";

/// Two operators left a definition behind, each with its one version.
pub(crate) fn taken_over(cluster: &Cluster) -> anyhow::Result<()> {
    forget(cluster)?;
    for version in ["v1", "v2beta1"] {
        define(cluster, version)?;
        let before = cluster.api().create(&jobs_path(version), &job(version, "older"))?;
        install(cluster)?;
        for served in ["v1alpha1", "v1alpha2", "v1", "v2beta1"] {
            let after = cluster.api().get(&format!("{}/older", jobs_path(served)))?;
            ensure!(after["spec"] == before["spec"], "{version} as {served}: {after}");
            ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew");
        }
        let definition = cluster.api().get(DEFINITION)?;
        let stored = definition["status"]["storedVersions"].as_array().context("none stored")?;
        ensure!(
            stored.contains(&version.into()) && stored.contains(&"v2beta1".into()),
            "{stored:?}"
        );
        let path = format!("{}/older/status", jobs_path(version));
        cluster.api().merge(&path, &json!({"status": {"conditions": []}}))?;
        forget(cluster)?;
    }
    install(cluster)
}

/// A definition as kustomize and `kubectl apply` leave it: a manager of their own owns every field.
fn define(cluster: &Cluster, version: &str) -> anyhow::Result<()> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "mpijobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "names": {"kind": "MPIJob", "listKind": "MPIJobList", "plural": "mpijobs", "singular": "mpijob"},
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    });
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("definition.json");
    std::fs::write(&path, definition.to_string())?;
    let path = path.to_str().context("a path that is text")?;
    cluster.kubectl(&["apply", "--filename", path])?;
    cluster.kubectl(&[
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "--filename",
        path,
    ])?;
    Ok(())
}

/// Removes the definition, and its objects with it.
fn forget(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.kubectl(&["delete", "crd", "mpijobs.kubeflow.org", "--ignore-not-found"]).map(|_| ())
}
