//! PodGroups of schedulers that are not there: objects that an API server knows, and that nobody acts on.

use serde_json::json;

use crate::cluster::Cluster;

/// A definition of PodGroups. It goes with this value: whoever looks for a scheduler of gangs by itself would take it for one.
#[derive(Debug)]
pub struct PodGroups<'cluster> {
    cluster: &'cluster Cluster,
    name: String,
}

impl Cluster {
    /// Makes the API server know PodGroups of this group and version.
    pub fn define_pod_groups(&self, group: &str, version: &str) -> anyhow::Result<PodGroups<'_>> {
        let name = format!("podgroups.{group}");
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                // Kubernetes' own groups want one.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": group,
                "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
                "scope": "Namespaced",
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.api().create(all, &definition)?;
        let made = PodGroups { cluster: self, name };
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", &made.name])?;
        Ok(made)
    }
}

impl Drop for PodGroups<'_> {
    fn drop(&mut self) {
        // One that stays behind goes with the cluster.
        self.cluster.kubectl(&["delete", "crd", &self.name]).ok();
    }
}
