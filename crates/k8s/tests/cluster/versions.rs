//! A job of each version of the API runs to its end, with everything that its version promises.

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_plan::Verdict;
use unisono_testcluster::{Cluster, Image};

use crate::story::{Story, tell};

/// Says where each rank runs, then sums over all of them.
const LINE: &str = "mpirun /programs/openmpi4/hello && mpirun /programs/openmpi4/allreduce";

/// A container of the Open MPI 4 image.
pub(crate) fn container(command: &[&str]) -> Value {
    let mut container = json!({
        "name": "main",
        "image": Image::OpenMpi4.reference(),
        "imagePullPolicy": "Never",
    });
    if !command.is_empty() {
        container["command"] = json!(command);
    }
    container
}

/// A v2beta1 job of two workers with two slots each.
pub(crate) fn job(name: &str, line: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 2,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [container(&["sh", "-c", line])]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [container(&[])]}}},
            },
        },
    })
}

/// Ranks 0 and 1 ran on the first worker, 2 and 3 on the second, and the sum was right.
pub(crate) fn ranks_are_placed(said: &str, name: &str) -> anyhow::Result<()> {
    for rank in 0..4 {
        let expected = format!("rank {rank} of 4 on {name}-worker-{}", rank / 2);
        ensure!(said.contains(&expected), "no {expected:?} in {said:?}");
    }
    Ok(())
}

pub(crate) fn v2beta1(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "v2beta1", async |story: &Story<'_>| {
        story.submit(&job("pi", LINE))?;
        let status = story.finish("pi").await?;
        ensure!(status.end().map(|end| end.verdict) == Some(Verdict::Succeeded), "{status:?}");
        ranks_are_placed(&story.kubectl(&["logs", "job/pi-launcher"])?, "pi")?;
        ensure!(story.pod_names()? == ["pi-launcher"], "{:?}", story.pod_names()?);
        Ok(())
    })
}
