//! Fake nodes by kwok: their pods are scheduled, become Running and are deleted, and nothing runs. For tests
//! of scale.

use anyhow::Context;
use serde_json::json;

use crate::binaries;
use crate::cluster::Cluster;

/// What a pod must tolerate to be scheduled to a fake node, so that no real pod ends up there.
pub const FAKE_NODE_TAINT: &str = "kwok.x-k8s.io/node";

/// How their pods live.
const STAGES: &str = include_str!("../../scripts/kwok.yaml");

/// The name of the fake node with this number, counted from 1.
pub fn fake_node_name(number: u32) -> String {
    format!("fake-{number}")
}

impl Cluster {
    /// Sees to it that there are so many fake nodes, with room for `pods` pods each and for any request, and waits until they are
    /// ready. Their pods select the label `type=kwok` and tolerate [`FAKE_NODE_TAINT`].
    pub fn add_fake_nodes(&self, count: u32, pods: u32) -> anyhow::Result<()> {
        if !self.has_part("kwok") {
            self.start_kwok()?;
        }
        for number in 1..=count {
            let path = format!("/api/v1/nodes/{}", fake_node_name(number));
            if self.api().find(&path)?.is_some() {
                continue;
            }
            self.api()
                .create("/api/v1/nodes", &fake_node(&fake_node_name(number), pods))
                .with_context(|| format!("add fake node {number}"))?;
        }
        self.wait_for_parts("the fake nodes", || {
            for number in 1..=count {
                if !self.is_ready(&fake_node_name(number))? {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
    }

    fn start_kwok(&self) -> anyhow::Result<()> {
        let kubeconfig = self.write_kubeconfig("kwok")?;
        let stages = self.write_file("kwok.yaml", STAGES)?;
        self.start_part(
            "kwok",
            &binaries::KWOK.build()?.join("kwok"),
            &[
                format!("--kubeconfig={kubeconfig}"),
                format!("--config={stages}"),
                format!("--manage-nodes-with-annotation-selector={FAKE_NODE_TAINT}=fake"),
                "--cidr=10.128.0.1/10".to_owned(),
                "--node-ip=10.128.0.1".to_owned(),
                // The controller manager waits 8 s for a sign of life.
                "--node-lease-duration-seconds=8".to_owned(),
                "--server-address=127.0.0.1:10247".to_owned(),
            ],
        )
    }
}

fn fake_node(name: &str, pods: u32) -> serde_json::Value {
    let resources = json!({ "cpu": "100k", "memory": "100Ti", "pods": pods });
    json!({
        "metadata": {
            "name": name,
            "annotations": { FAKE_NODE_TAINT: "fake", "node.alpha.kubernetes.io/ttl": "0" },
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": { "taints": [{ "key": FAKE_NODE_TAINT, "value": "fake", "effect": "NoSchedule" }] },
        "status": { "allocatable": resources, "capacity": resources },
    })
}
