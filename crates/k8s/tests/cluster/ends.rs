//! Ends that are not good, and pauses: failures, lost workers, suspension, a second job of the same name.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_plan::{EndReason, Stage, Verdict};
use unisono_testcluster::Cluster;

use crate::story::{Story, tell};
use crate::versions::{LINE, job};

pub(crate) fn exit_3(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "exit-3", async |story: &Story<'_>| {
        let mut job = job("bad", "echo these are its last words; exit 3");
        job["spec"]["runPolicy"]["backoffLimit"] = json!(1);
        story.submit(&job)?;
        let status = story.finish("bad").await?;
        let end = status.end().context("no end")?;
        ensure!(
            (end.verdict, end.reason, end.code)
                == (Verdict::Failed, EndReason::RetriesExhausted, 3),
            "{end:?}"
        );
        let failure = status.first_failure.as_ref().context("no failure")?;
        ensure!(
            failure.ended.last_lines.iter().any(|line| line.contains("last words")),
            "{failure:?}"
        );
        // Both tries stay, for their logs; the workers that were still there are cleaned up.
        ensure!(
            story.pod_names()? == ["bad-launcher", "bad-launcher-try-1"],
            "{:?}",
            story.pod_names()?
        );
        story.kubectl(&["wait", "--for=condition=failed", "job/bad-launcher", "--timeout=10s"])?;
        let object = story.object("bad").await?.as_json().clone();
        let failed = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failed = failed.iter().find(|it| it["type"] == "Failed").context("no condition")?;
        ensure!(failed["message"].as_str().unwrap_or_default().contains("exit code 3"), "{failed}");
        Ok(())
    })
}

pub(crate) fn worker_killed(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "killed", async |story: &Story<'_>| {
        // The first try would wait for ever; later ones have a later table.
        let line = format!("grep -q '\"epoch\":0' /etc/unisono/agent/table && sleep 600; {LINE}");
        story.submit(&job("lossy", &line))?;
        story.drive("lossy", |status| status.running_since.is_some()).await?;
        story.kubectl(&["delete", "pod", "lossy-worker-1", "--now"])?;
        let status = story.finish("lossy").await?;
        ensure!(status.end().map(|end| end.verdict) == Some(Verdict::Succeeded), "{status:?}");
        ensure!(status.gang_restarts == 1 && status.counted_failures == 0, "{status:?}");
        Ok(())
    })
}

pub(crate) fn suspended(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "suspended", async |story: &Story<'_>| {
        story.submit(&job("pause", "sleep 600"))?;
        story.drive("pause", |status| status.running_since.is_some()).await?;
        let path =
            format!("/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs/pause", story.namespace);
        let suspend = |yes: bool| {
            story.cluster.api().merge(&path, &json!({"spec": {"runPolicy": {"suspend": yes}}}))
        };
        suspend(true)?;
        let status = story.drive("pause", |status| {
            let nobody = status.groups.iter().all(|group| group.existing == 0);
            status.stage == Stage::Suspended && nobody
        });
        let status = status.await?;
        let is_over =
            |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        ensure!(
            story.pods()?.iter().all(is_over),
            "pods run while the job is suspended: {status:?}"
        );
        ensure!(story.kubectl(&["get", "jobs", "--output=name"])?.is_empty(), "a Job is left");
        let object = story.object("pause").await?.as_json().clone();
        ensure!(object["status"]["replicaStatuses"]["Launcher"]["active"].is_null(), "{object}");

        // It is resumed with another command: everything is built anew, from what the job says now.
        let template =
            json!({"spec": {"containers": [crate::versions::container(&["sh", "-c", LINE])]}});
        story.cluster.api().merge(
            &path,
            &json!({"spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}}}}),
        )?;
        suspend(false)?;
        let status = story.finish("pause").await?;
        ensure!(status.end().map(|end| end.verdict) == Some(Verdict::Succeeded), "{status:?}");
        ensure!(status.failed_launches == 0 && status.gang_restarts == 0, "{status:?}");
        Ok(())
    })
}
