//! Ends the launchers of fake nodes: as soon as a launcher's command has begun, it has ended well.

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

/// When a launcher's command begins.
#[derive(Clone, Copy)]
pub(crate) enum Begun {
    /// With its pod. Whether there are workers nobody asks, which flatters such an operator.
    AtOnce,
    /// When its operator lets it go.
    WhenLetGo,
}

/// Ends so many launchers, each once, as they come, many at once.
pub(crate) async fn end_launchers(client: Client, jobs: u32, begun: Begun) -> anyhow::Result<()> {
    let has_begun = |pod: &Pod| match begun {
        Begun::AtOnce => runs(pod),
        Begun::WhenLetGo => runs(pod) && pod.annotations().contains_key(RELEASED),
    };
    let pods: Api<Pod> = Api::default_namespaced(client);
    let launchers = watcher::Config::default().labels("bench-role=launcher");
    let mut seen = std::pin::pin!(watcher(pods.clone(), launchers).applied_objects());
    let mut known = HashSet::new();
    let mut ending = FuturesUnordered::new();
    while known.len() < usize::try_from(jobs)? {
        tokio::select! {
            pod = seen.next() => {
                let pod = pod.context("the watch has ended")??;
                if has_begun(&pod) && known.insert(pod.name_any()) {
                    ending.push(end(&pods, pod));
                }
            }
            Some(ended) = ending.next() => ended?,
        }
    }
    ending.try_collect().await
}

fn runs(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running")
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
