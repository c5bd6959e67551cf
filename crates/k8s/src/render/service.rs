//! The headless Service under which hosts have full names: v2beta1 promises it, and nothing here needs it.

use serde_json::{Value, json};
use unisono_job::Dialect;

use super::Rendering;
use super::template::object;
use crate::marks;

impl Rendering<'_> {
    /// The Service, where the dialect has one.
    pub fn service(&self) -> Option<Value> {
        if self.plan.job.dialect != Dialect::KubeflowV2beta1 {
            return None;
        }
        let job = &self.plan.names.job;
        let launcher_hosts_ranks = self.plan.launch_host().is_some_and(|host| host.slots > 0);
        let mut spec = json!({
            "clusterIP": "None",
            "selector": {
                "training.kubeflow.org/operator-name": "mpi-operator",
                marks::JOB_NAME: job,
            },
        });
        if launcher_hosts_ranks {
            object(&mut spec).insert("publishNotReadyAddresses".to_owned(), json!(true));
        }
        Some(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(&self.plan.names.service(), self.shared_labels()),
            "spec": spec,
        }))
    }
}
