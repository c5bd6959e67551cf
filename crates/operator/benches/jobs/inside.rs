//! Clients of the administrator inside the cluster's network.

use std::future::Future;

use anyhow::{Context, anyhow};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};
use serde_json::Value;
use unisono_testcluster::Cluster;

/// Does something with a client, in a thread of its own.
pub(crate) fn inside<R: Send, F: Future<Output = anyhow::Result<R>>>(
    cluster: &Cluster,
    work: impl FnOnce(Client) -> F + Send,
) -> anyhow::Result<R> {
    let joined = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cluster.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let text = std::fs::read_to_string(cluster.kubeconfig())?;
                let config = kube::config::Kubeconfig::from_yaml(&text)?;
                let options = kube::config::KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(config, &options).await?;
                work(unisono_k8s::connect(config)?.build()).await
            })
        });
        thread.join()
    });
    joined.map_err(|_| anyhow!("a client panicked"))?
}

/// Jobs of a version.
pub(crate) fn jobs(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "kubeflow.org".to_owned(),
        version: version.to_owned(),
        api_version: format!("kubeflow.org/{version}"),
        kind: "MPIJob".to_owned(),
        plural: "mpijobs".to_owned(),
    };
    Api::default_namespaced_with(client.clone(), &resource)
}

/// Watches jobs until so many have a condition.
pub(crate) async fn all_have(
    jobs: Api<DynamicObject>,
    count: u32,
    condition: &str,
) -> anyhow::Result<()> {
    let mut found = std::collections::HashSet::new();
    let mut seen = std::pin::pin!(watcher(jobs, watcher::Config::default()).applied_objects());
    while let Some(job) = futures::StreamExt::next(&mut seen).await {
        let job = job?;
        let conditions = job.data["status"]["conditions"].as_array();
        let holds = |it: &Value| it["type"] == condition && it["status"] == "True";
        if conditions.is_some_and(|all| all.iter().any(holds)) {
            found.insert(job.metadata.name.context("no name")?);
        }
        if found.len() >= usize::try_from(count)? {
            return Ok(());
        }
    }
    Err(anyhow!("the watch has ended"))
}
