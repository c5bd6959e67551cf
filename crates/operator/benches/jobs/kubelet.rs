//! Ends the launchers of fake nodes: as soon as a launcher's command has begun, it has ended well.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use unisono_k8s::marks::{JOB_NAME, RELEASED};

/// When a launcher's command begins.
#[derive(Clone, Copy)]
pub(crate) enum Begun {
    /// As soon as so many workers run, too: `mpirun` would try until then.
    WithWorkers(u32),
    /// When its operator lets it go.
    WhenLetGo,
}

/// Ends so many launchers, each once, as they come, many at once.
pub(crate) async fn end_launchers(client: Client, jobs: u32, begun: Begun) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let roles = match begun {
        Begun::WithWorkers(_) => "bench-role",
        Begun::WhenLetGo => "bench-role=launcher",
    };
    let config = watcher::Config::default().labels(roles);
    let mut seen = std::pin::pin!(watcher(pods.clone(), config).applied_objects());
    let mut hosts = Hosts::default();
    let mut ending = FuturesUnordered::new();
    while hosts.begun.len() < usize::try_from(jobs)? {
        tokio::select! {
            pod = seen.next() => {
                let pod = pod.context("the watch has ended")??;
                if let Some(launcher) = hosts.whose_command_begins(pod, begun) {
                    ending.push(end(&pods, launcher));
                }
            }
            Some(ended) = ending.next() => ended?,
        }
    }
    ending.try_collect().await
}

/// The pods of jobs that run and whose commands have not begun.
#[derive(Default)]
struct Hosts {
    launchers: HashMap<String, Pod>,
    workers: HashMap<String, HashSet<String>>,
    begun: HashSet<String>,
}

impl Hosts {
    /// The launcher whose command begins now that this pod was seen.
    fn whose_command_begins(&mut self, pod: Pod, begun: Begun) -> Option<Pod> {
        let job = pod.labels().get(JOB_NAME)?.clone();
        if !runs(&pod) || self.begun.contains(&job) {
            return None;
        }
        if pod.labels().get("bench-role")? == "worker" {
            self.workers.entry(job.clone()).or_default().insert(pod.name_any());
        } else {
            self.launchers.insert(job.clone(), pod);
        }
        let is_ready = match begun {
            Begun::WithWorkers(count) => {
                self.workers.get(&job).map_or(0, HashSet::len) >= usize::try_from(count).ok()?
            }
            Begun::WhenLetGo => self.launchers.get(&job)?.annotations().contains_key(RELEASED),
        };
        if !is_ready {
            return None;
        }
        let launcher = self.launchers.remove(&job)?;
        self.begun.insert(job);
        Some(launcher)
    }
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
