//! The null operator: a client that sends the least that jobs need, and decides nothing. It is the ceiling.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use unisono_testcluster::Cluster;

use crate::{Row, template};

/// How many jobs, and how many pods of a job, are sent at once.
const AT_ONCE: usize = 16;

/// How often it looks whether all pods run.
const PAUSE: Duration = Duration::from_millis(50);

/// Creates what the jobs would have and, when all pods run, writes their ends and removes their workers.
pub(crate) fn run(cluster: &Cluster, jobs: u32, workers: u32) -> anyhow::Result<Row> {
    let revision = cluster.etcd_revision()?;
    let begun = Instant::now();
    let pods = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cluster.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(all(cluster, jobs, workers))
        });
        thread.join()
    });
    let pods = pods.map_err(|_| anyhow!("the null operator panicked"))??;
    let seconds = begun.elapsed().as_secs_f64();
    let revisions = cluster.etcd_revision()? - revision;
    cluster.kubectl(&["delete", "pods,services,configmaps,events", "--selector=bench=null"])?;
    let requests = u64::from(jobs) * (u64::from(workers) + 1 + 2 + 3 + 3 + 1);
    let (arm, processor, peak) = ("null", Duration::ZERO, 0);
    Ok(Row { jobs, workers, arm, pods, seconds, requests, revisions, processor, peak })
}

/// Sends everything; the seconds until all pods existed leave.
async fn all(cluster: &Cluster, jobs: u32, workers: u32) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(cluster.kubeconfig())?;
    let config = kube::config::Kubeconfig::from_yaml(&text)?;
    let options = kube::config::KubeConfigOptions::default();
    let client = Client::try_from(kube::Config::from_custom_kubeconfig(config, &options).await?)?;
    let begun = Instant::now();
    let begin = |job| begin(client.clone(), job, workers);
    stream::iter(0..jobs).map(begin).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let pods = begun.elapsed().as_secs_f64();
    while !all_run(&client).await? {
        tokio::time::sleep(PAUSE).await;
    }
    let end = |job| end(client.clone(), job);
    stream::iter(0..jobs).map(end).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(pods)
}

async fn all_run(client: &Client) -> anyhow::Result<bool> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let list = pods.list(&ListParams::default().labels("bench=null")).await?;
    let runs = |pod: &Pod| {
        pod.status.as_ref().and_then(|it| it.phase.as_deref()).is_some_and(|it| it == "Running")
    };
    Ok(list.items.iter().all(runs))
}

fn metadata(job: u32, name: &str, role: &str) -> Value {
    json!({"name": name, "labels": {"bench": "null", "job": format!("null-{job}"), "role": role}})
}

/// A job's objects and its pods.
async fn begin(client: Client, job: u32, workers: u32) -> anyhow::Result<()> {
    let parameters = PostParams::default();
    let name = format!("null-{job}");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata(job, &name, "job")}))?;
    maps.create(&parameters, &map).await?;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": metadata(job, &name, "job"), "spec": {"clusterIP": "None"}});
    services.create(&parameters, &serde_json::from_value(service)?).await?;

    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = |name: String, role: &str| -> anyhow::Result<Pod> {
        let spec: Value = template()["spec"].take();
        Ok(serde_json::from_value(json!({"metadata": metadata(job, &name, role), "spec": spec}))?)
    };
    let mut all = vec![pod(format!("{name}-launcher"), "launcher")?];
    for worker in 0..workers {
        all.push(pod(format!("{name}-worker-{worker}"), "worker")?);
    }
    let made = stream::iter(&all).map(|pod| pods.create(&parameters, pod));
    made.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
    Ok(())
}

/// Three status writes, three events, and one delete of all workers.
async fn end(client: Client, job: u32) -> anyhow::Result<()> {
    let name = format!("null-{job}");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    // In place of the job's status, which nobody serves here.
    for written in 0..3 {
        let patch = json!({"data": {"status": written.to_string()}});
        maps.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    let events: Api<Event> = Api::default_namespaced(client.clone());
    for told in 0..3 {
        let event = json!({
            "metadata": metadata(job, &format!("{name}.{told}"), "job"), "reason": "Bench", "type": "Normal",
            "involvedObject": {"kind": "ConfigMap", "name": name, "namespace": "default"},
        });
        events.create(&PostParams::default(), &serde_json::from_value(event)?).await?;
    }
    let own = ListParams::default().labels(&format!("job={name},role=worker"));
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.delete_collection(&DeleteParams::default(), &own).await?;
    Ok(())
}
