//! What a dry run prints is what there is once the job runs: every object, and no other.

use anyhow::ensure;
use unisono_testcluster::{Cluster, Image};

use crate::desk::{Desk, KINDS};

const KUBEFLOW: &str = "\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: promised}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: c, image: IMAGE, command: [sleep, '600']}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: c, image: IMAGE}]}}}
";

const KUBE_BATCH: &str = "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: promised}
spec:
  job:
    completions: 2
    parallelism: 2
    template: {spec: {containers: [{name: c, image: IMAGE, command: [sleep, '600']}]}}
";

const OPENPAI: &str = "\
protocolVersion: 2
name: promised
type: job
prerequisites: [{protocolVersion: 2, name: mpi, type: dockerimage, uri: IMAGE}]
taskRoles:
  only:
    instances: 1
    dockerImage: mpi
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: [sleep 600]
";

pub(crate) fn kept(cluster: &Cluster) -> anyhow::Result<()> {
    for (namespace, text) in
        [("dry-kubeflow", KUBEFLOW), ("dry-kube-batch", KUBE_BATCH), ("dry-openpai", OPENPAI)]
    {
        let desk = Desk::new(cluster, namespace)?;
        desk.file("job.yaml", &text.replace("IMAGE", &Image::OpenMpi4.reference()))?;
        let before = desk.names(KINDS)?;
        let shown = desk.done(&["submit", "job.yaml", "--dry-run"])?;
        let mut promised: Vec<String> = shown.split("\n---\n").map(name_for_kubectl).collect();
        desk.done(&["submit", "job.yaml"])?;
        desk.runs("promised")?;
        let mut there = desk.names(KINDS)?;
        there.retain(|it| !before.contains(it));
        promised.sort();
        there.sort();
        ensure!(promised == there, "{namespace}: promised {promised:#?}, there {there:#?}");
    }
    Ok(())
}

/// The object of a YAML document as kubectl names it: `kind.group/name`.
fn name_for_kubectl(document: &str) -> String {
    let value = |key: &str| {
        let line = document.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim().to_owned()
    };
    let group = value("apiVersion:").split_once('/').map(|(group, _)| format!(".{group}"));
    let (kind, name) = (value("kind:").to_lowercase(), value("  name:"));
    format!("{kind}{}/{name}", group.unwrap_or_default())
}
