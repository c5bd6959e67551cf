//! Jobs that another operator began: they go on, and nothing of them starts again.

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_k8s::Children;
use unisono_plan::{Stage, Verdict};
use unisono_testcluster::{Cluster, Image, wait};

use crate::story::{PATIENCE, Story, tell};
use crate::versions::job;

/// A container as another operator leaves it: no agent.
fn container(script: &str) -> Value {
    json!({
        "name": "main",
        "image": Image::Busybox.reference(),
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
    })
}

fn labels(role: &str, index: Option<&str>) -> Value {
    let mut labels = json!({
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "old",
        "training.kubeflow.org/job-role": role,
    });
    if let Some(index) = index {
        labels["training.kubeflow.org/replica-index"] = json!(index);
    }
    labels
}

pub(crate) fn running(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "upgrade", async |story: &Story<'_>| {
        story.submit(&job("old", "true"))?;
        let uid = story.object("old").await?.uid().to_owned();
        let owners = json!([{
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "old", "uid": uid, "controller": true,
        }]);
        for index in ["0", "1"] {
            let metadata = json!({
                "name": format!("old-worker-{index}"), "labels": labels("worker", Some(index)), "ownerReferences": owners,
            });
            let spec = json!({"restartPolicy": "Never", "containers": [container("sleep 600")]});
            story.create("/api/v1", "pods", &json!({"metadata": metadata, "spec": spec}))?;
        }
        // That operator labels the pods of its Job, and the Job itself only with the application.
        let metadata =
            json!({"name": "old-launcher", "labels": {"app": "old"}, "ownerReferences": owners});
        let template = json!({
            "metadata": {"labels": labels("launcher", None)},
            "spec": {"restartPolicy": "OnFailure", "containers": [container("until test -e /tmp/go; do sleep 0.1; done")]},
        });
        story.create(
            "/apis/batch/v1",
            "jobs",
            &json!({"metadata": metadata, "spec": {"template": template}}),
        )?;
        wait::until(PATIENCE, "the old operator's pods", || {
            let pods = story.pods()?;
            let up = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
            Ok((up == 3).then_some(()))
        })?;
        let at = "2026-01-01T12:00:00Z";
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": format!("MPIJob{kind}"), "message": "m",
                "lastUpdateTime": at, "lastTransitionTime": at,
            })
        };
        let path =
            format!("/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs/old/status", story.namespace);
        let status =
            json!({"startTime": at, "conditions": [condition("Created"), condition("Running")]});
        story.cluster.api().merge(&path, &json!({"status": status}))?;

        let object = story.object("old").await?;
        ensure!(object.is_inherited());
        Children::adopt(&story.client, &object).await?;
        let before = story.pod_names()?;
        let (_, next, _) = story.tick("old").await?;
        ensure!(next.status.stage == Stage::Running, "{:?}", next.status);
        story.kubectl(&["exec", "job/old-launcher", "--", "touch", "/tmp/go"])?;
        let status = story.finish("old").await?;
        ensure!(status.end().map(|end| end.verdict) == Some(Verdict::Succeeded), "{status:?}");
        ensure!(status.epoch == 0 && status.failed_launches == 0, "{status:?}");
        // The workers are cleaned up as the job says; no pod was ever made.
        let after = story.pod_names()?;
        ensure!(after.len() == 1 && before.contains(&after[0]), "{before:?} became {after:?}");
        Ok(())
    })
}
