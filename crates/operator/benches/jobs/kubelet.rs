//! Ends the launchers of fake nodes: as soon as a launcher's command was let go, it has ended well.

use std::collections::HashSet;

use anyhow::Context;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// What an operator writes when it lets a command go.
pub(crate) const RELEASED: &str = "unisono.dev/released";

/// Ends so many launchers, each once, as they come, many at once.
pub(crate) async fn end_launchers(client: Client, jobs: u32) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let launchers = watcher::Config::default().labels("mpi-job-role=launcher");
    let mut seen = std::pin::pin!(watcher(pods.clone(), launchers).applied_objects());
    let mut begun = HashSet::new();
    let mut ending = FuturesUnordered::new();
    while begun.len() < usize::try_from(jobs)? {
        tokio::select! {
            pod = seen.next() => {
                let pod = pod.context("the watch has ended")??;
                if is_let_go(&pod) && begun.insert(pod.name_any()) {
                    ending.push(end(&pods, pod));
                }
            }
            Some(ended) = ending.next() => ended?,
        }
    }
    ending.try_collect().await
}

fn is_let_go(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    pod.annotations().contains_key(RELEASED) && phase == Some("Running")
}

async fn end(pods: &Api<Pod>, pod: Pod) -> anyhow::Result<()> {
    let name = pod.name_any();
    let pod: Value = serde_json::to_value(pod)?;
    let mut statuses = pod["status"]["containerStatuses"].clone();
    let began = statuses[0]["state"]["running"]["startedAt"].clone();
    statuses[0]["state"] = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": began,
    }});
    let patch = json!({"status": {"phase": "Succeeded", "containerStatuses": statuses}});
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}
