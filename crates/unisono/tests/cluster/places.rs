//! What settings say of a virtual cluster and of devices holds for the pods of a job.

use anyhow::{Context, ensure};
use serde_json::json;
use unisono_testcluster::{Cluster, Image};

use crate::desk::Desk;

/// Nodes of one label for a virtual cluster, and all three things that RDMA may need: a device, a folder of the node, locked memory.
const SETTINGS: &str = "\
[virtual_clusters.vc1]
node_selector = { lab = \"yes\" }
[rdma]
resources = { \"lab.test/hca\" = \"1\" }
mounts = [\"/var/log\"]
lock_memory = true
";

/// The 15th of the kernel's capabilities is the right to lock memory.
const COMMAND: &str = "grep -q ' /var/log ' /proc/mounts && \
    echo locks $((0x$(sed -n 's/CapEff:.//p' /proc/self/status) >> 14 & 1))";

pub(crate) fn as_set(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "places")?;
    let node = cluster.nodes().last().context("no node")?.name();
    let path = format!("/api/v1/nodes/{node}");
    cluster.api().merge(&path, &json!({"metadata": {"labels": {"lab": "yes"}}}))?;
    let devices = json!({"lab.test/hca": "2"});
    let status = json!({"status": {"capacity": devices, "allocatable": devices}});
    cluster.api().merge(&format!("{path}/status"), &status)?;
    desk.file("unisono.toml", SETTINGS)?;
    let job = json!({
        "jobName": "fast", "image": Image::OpenMpi4.reference(), "virtualCluster": "vc1",
        "jobEnvs": {"paiAzRDMA": true},
        "taskRoles": [{"name": "only", "taskNumber": 1, "memoryMB": 128, "command": COMMAND}],
    });
    desk.file("job.json", &job.to_string())?;
    desk.done(&["submit", "job.json"])?;
    let state = desk.ends("fast")?;
    let said = desk.done(&["logs", "fast", "--engine", "kubernetes"])?;
    ensure!(state == "succeeded" && said.contains("locks 1\n"), "{state}: {said}");
    let pods = cluster.api().get(&format!("/api/v1/namespaces/{}/pods", desk.namespace))?;
    let spec = &pods["items"][0]["spec"];
    ensure!(spec["nodeName"] == node && spec["nodeSelector"]["lab"] == "yes", "{spec}");
    ensure!(spec["containers"][0]["resources"]["limits"]["lab.test/hca"] == "1", "{spec}");
    Ok(())
}
