//! Ends the launchers of fake nodes: as soon as a launcher's command was let go, it has ended well.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, wait};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Ends so many launchers, each once, as they come.
pub(crate) fn end_launchers(cluster: &Cluster, jobs: u32) -> anyhow::Result<()> {
    let mut ended = 0;
    wait::until(Duration::from_secs(300), "all launchers to be let go", || {
        let list = cluster.api().get(&format!("{PODS}?labelSelector=mpi-job-role%3Dlauncher"))?;
        let pods = list["items"].as_array().context("no list")?;
        for pod in pods.iter().filter(|pod| is_let_go(pod)) {
            let name = pod["metadata"]["name"].as_str().context("no name")?;
            cluster.api().merge(&format!("{PODS}/{name}/status"), &end(pod))?;
            ended += 1;
        }
        Ok((ended >= jobs).then_some(()))
    })
}

fn is_let_go(pod: &Value) -> bool {
    let released = !pod["metadata"]["annotations"]["unisono.dev/released"].is_null();
    released && pod["status"]["phase"] == "Running"
}

fn end(pod: &Value) -> Value {
    let mut statuses = pod["status"]["containerStatuses"].clone();
    let began = statuses[0]["state"]["running"]["startedAt"].clone();
    statuses[0]["state"] = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": began,
    }});
    json!({"status": {"phase": "Succeeded", "containerStatuses": statuses}})
}
