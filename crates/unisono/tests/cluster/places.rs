//! Where a job runs and its code lies: what settings and options say holds for its pods.

use anyhow::{Context, ensure};
use serde_json::json;
use unisono_testcluster::{Cluster, Image, wait};

use crate::desk::{Desk, PATIENCE};
use crate::dialects::pretend_devices;

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
    let label = json!({"metadata": {"labels": {"lab": "yes"}}});
    cluster.api().merge(&format!("/api/v1/nodes/{node}"), &label)?;
    pretend_devices(cluster, node, &json!({"lab.test/hca": "2"}))?;
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

/// The queue that settings name for a virtual cluster is that of the job's PodGroup, where the scheduler of gangs has queues. The cluster
/// has none of these schedulers: the PodGroup is made, and nobody places the pods.
pub(crate) fn queued(cluster: &Cluster) -> anyhow::Result<()> {
    for (gang, namespace, group, version) in [
        ("volcano", "queue-of-volcano", "scheduling.volcano.sh", "v1beta1"),
        ("kube-batch", "queue-of-kube-batch", "scheduling.incubator.k8s.io", "v1alpha1"),
    ] {
        let _definition = cluster.define_pod_groups(group, version)?;
        let desk = Desk::with_flags(cluster, namespace, &["--gang", gang])?;
        desk.file("unisono.toml", "virtual_clusters.vc1.queue = \"gold\"\n")?;
        let job = json!({
            "jobName": "waits", "image": Image::OpenMpi4.reference(), "virtualCluster": "vc1",
            "taskRoles": [{"name": "only", "taskNumber": 2, "memoryMB": 128, "command": "true"}],
        });
        desk.file("job.json", &job.to_string())?;
        desk.done(&["submit", "job.json"])?;
        let path = format!("/apis/{group}/{version}/namespaces/{namespace}/podgroups/waits");
        let found = wait::until(PATIENCE, "the PodGroup", || cluster.api().find(&path))?;
        ensure!(found["spec"]["queue"] == "gold" && found["spec"]["minMember"] == 2, "{found}");
        wait::until(PATIENCE, "both pods", || Ok((desk.names("pods")?.len() == 2).then_some(())))?;
        desk.cluster.kubectl(&["delete", "uj", "waits", "--namespace", namespace])?;
        wait::until(PATIENCE, "the PodGroup to be gone", || {
            Ok(cluster.api().find(&path)?.is_none().then_some(()))
        })?;
    }
    Ok(())
}

/// A job whose code lies in a folder of a volume; every host starts there.
const IN_VOLUME: &str = "\
name: large
type: MpiJob
launcher: {spec: {command: mpirun -np 2 ls -d busybox-static, code: {path: src}, environment: 'azureml:m:1'}}
worker: {spec: {environment: 'azureml:m:1'}}
compute: {type: AmlCompute, target: local, instance_count: 2}
";

/// Code that is too large to travel is found in a volume that has it: here a folder of the nodes.
pub(crate) fn code_in_a_volume(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "volumes")?;
    let size = json!({"storage": "1Mi"});
    let volume = json!({
        "metadata": {"name": "code-of-the-lab"},
        "spec": {
            "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "",
            "hostPath": {"path": "/usr/share"},
            "claimRef": {"namespace": desk.namespace, "name": "code"},
        },
    });
    cluster.api().create("/api/v1/persistentvolumes", &volume)?;
    let claim = json!({
        "metadata": {"name": "code"},
        "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "",
            "resources": {"requests": size}, "volumeName": "code-of-the-lab",
        },
    });
    let claims = format!("/api/v1/namespaces/{}/persistentvolumeclaims", desk.namespace);
    cluster.api().create(&claims, &claim)?;
    let image = Image::OpenMpi4.reference();
    desk.file("unisono.toml", &format!("environments.\"azureml:m\" = \"{image}\"\n"))?;
    desk.file("src/train.py", "pass")?;
    desk.file("job.yaml", IN_VOLUME)?;
    desk.done(&["submit", "job.yaml", "--code-volume", "code/doc"])?;
    let state = desk.ends("large")?;
    let said = desk.done(&["logs", "large", "--engine", "kubernetes"])?;
    ensure!(state == "succeeded", "{state}: {said}");
    ensure!(said.matches("busybox-static").count() == 2, "{said}");
    cluster.api().delete("/api/v1/persistentvolumes/code-of-the-lab").map(|_| ())
}
