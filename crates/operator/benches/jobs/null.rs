//! The null operator: a client that sends the least that jobs need, and looks at nothing. It is the ceiling.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use unisono_testcluster::Cluster;

use crate::{Row, template};

/// How many jobs, and how many pods of a job, are sent at once.
const AT_ONCE: usize = 16;

/// Creates what the jobs would have, and removes their workers.
pub(crate) fn run(cluster: &Cluster, jobs: u32, workers: u32) -> anyhow::Result<Row> {
    let revision = cluster.etcd_revision()?;
    let begun = Instant::now();
    let requests = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cluster.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(all(cluster, jobs, workers))
        });
        thread.join()
    });
    let requests = requests.map_err(|_| anyhow!("the null operator panicked"))??;
    let seconds = begun.elapsed().as_secs_f64();
    let revisions = cluster.etcd_revision()? - revision;
    cluster.kubectl(&["delete", "pods,services,configmaps,events", "--selector=bench=null"])?;
    let (arm, processor, peak) = ("null", Duration::ZERO, 0);
    Ok(Row { jobs, workers, arm, seconds, requests, revisions, processor, peak })
}

async fn all(cluster: &Cluster, jobs: u32, workers: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(cluster.kubeconfig())?;
    let config = kube::config::Kubeconfig::from_yaml(&text)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
    let client = kube::Client::try_from(config)?;
    let sent = stream::iter(0..jobs).map(|job| one(client.clone(), job, workers));
    let sent: Vec<anyhow::Result<u64>> = sent.buffer_unordered(AT_ONCE).collect().await;
    sent.into_iter().sum()
}

/// A job's objects, three status writes, three events, and one delete of all workers; how many requests that were.
async fn one(client: kube::Client, job: u32, workers: u32) -> anyhow::Result<u64> {
    let parameters = PostParams::default();
    let name = format!("null-{job}");
    let metadata = |name: &str, role: &str| json!({"name": name, "labels": {"bench": "null", "job": format!("null-{job}"), "role": role}});
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata(&name, "job")}))?;
    maps.create(&parameters, &map).await?;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": metadata(&name, "job"), "spec": {"clusterIP": "None"}});
    services.create(&parameters, &serde_json::from_value(service)?).await?;

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = |name: String, role: &str| -> anyhow::Result<Pod> {
        let spec: Value = template()["spec"].take();
        Ok(serde_json::from_value(json!({"metadata": metadata(&name, role), "spec": spec}))?)
    };
    let mut all = vec![pod(format!("{name}-launcher"), "launcher")?];
    for worker in 0..workers {
        all.push(pod(format!("{name}-worker-{worker}"), "worker")?);
    }
    let made = stream::iter(&all).map(|pod| pods.create(&parameters, pod));
    let made: Vec<_> = made.buffer_unordered(AT_ONCE).collect().await;
    for pod in made {
        pod?;
    }
    // In place of the job's status, which nobody serves here.
    for written in 0..3 {
        let patch = json!({"data": {"status": written.to_string()}});
        maps.patch(&name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&patch))
            .await?;
    }
    let events: Api<Event> = Api::default_namespaced(client);
    for told in 0..3 {
        let event = json!({
            "metadata": metadata(&format!("{name}.{told}"), "job"), "reason": "Bench", "type": "Normal",
            "involvedObject": {"kind": "ConfigMap", "name": name, "namespace": "default"},
        });
        events.create(&parameters, &serde_json::from_value(event)?).await?;
    }
    let own = ListParams::default().labels(&format!("job={name},role=worker"));
    pods.delete_collection(&DeleteParams::default(), &own).await?;
    Ok(u64::from(workers) + 1 + 2 + 3 + 3 + 1)
}
