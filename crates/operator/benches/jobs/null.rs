//! The null operator: a client that sends the least that jobs need, and decides nothing. It is the ceiling.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use unisono_k8s::slim;
use unisono_testcluster::{Cluster, usage};

use crate::arms::{OWN, clear, job, last_pod, template, workers_are_gone};
use crate::inside::{inside, jobs};
use crate::kubelet::{RELEASED, end_launchers};
use crate::{AT_ONCE, Cost, Size};

/// A job's pods, a ConfigMap and a Service, what lets its command go, three writes of its status and three events, and one delete of
/// all workers. The job itself is its user's.
fn requests(size: Size) -> u64 {
    u64::from(size.jobs) * (u64::from(size.workers) + 1 + 2 + 1 + 3 + 3 + 1)
}

/// Creates jobs and what they would have, lets their commands go when all pods run, and writes their ends.
pub(crate) fn run(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    let (mark, revision) = (cluster.audit_mark()?, cluster.etcd_revision()?);
    let begun = Instant::now();
    let processor = std::thread::scope(|scope| -> anyhow::Result<Duration> {
        let ends = scope.spawn(|| inside(cluster, |client| end_launchers(client, size.jobs)));
        let processor = inside(cluster, async |client| {
            all(client, size).await?;
            usage::of_this_thread()
        })?;
        ends.join().map_err(|_| anyhow!("the launchers' thread panicked"))??;
        Ok(processor)
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    workers_are_gone(cluster)?;
    let revisions = cluster.etcd_revision()? - revision;
    let pods = last_pod(cluster, mark)?;
    cluster.kubectl(&["delete", "pods,services,configmaps,events", "--selector=bench=null"])?;
    clear(cluster, OWN.version())?;
    Ok(Cost { pods, seconds, requests: requests(size), revisions, processor, peak: None })
}

/// How far a job is.
#[derive(Default)]
struct Life {
    running: u32,
    is_let_go: bool,
    has_ended: bool,
}

/// Runs all jobs to their ends.
async fn all(client: Client, size: Size) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let own = watcher::Config::default().labels("bench=null");
    let watched: Api<slim::Pod> = Api::default_namespaced(client.clone());
    let mut seen = std::pin::pin!(watcher(watched, own).applied_objects());
    let begin = |job| begin(client.clone(), job, size.workers);
    let mut beginning = stream::iter(0..size.jobs).map(begin).buffer_unordered(AT_ONCE);
    let mut acts: FuturesUnordered<BoxFuture<'_, anyhow::Result<u32>>> = FuturesUnordered::new();
    let mut phases: HashMap<String, String> = HashMap::new();
    let mut lives: HashMap<String, Life> = HashMap::new();
    let mut ended = 0;
    while ended < size.jobs {
        tokio::select! {
            Some(begun) = beginning.next() => begun?,
            Some(acted) = acts.next() => ended += acted?,
            pod = seen.next() => {
                let pod = pod.context("the watch has ended")??;
                let name = pod.labels().get("job").context("no job")?.clone();
                let life = lives.entry(name.clone()).or_default();
                let phase = pod.status.phase.clone();
                let is_new = phases.insert(pod.name_any(), phase.clone()).as_ref() != Some(&phase);
                if is_new && phase == "Running" {
                    life.running += 1;
                }
                if life.running == size.workers + 1 && !std::mem::replace(&mut life.is_let_go, true) {
                    acts.push(let_go(pods.clone(), name.clone()).boxed());
                }
                if phase == "Succeeded" && !std::mem::replace(&mut life.has_ended, true) {
                    acts.push(end(client.clone(), name).boxed());
                }
            }
        }
    }
    Ok(())
}

fn metadata(job: &str, name: &str, role: &str) -> Value {
    let labels = json!({"bench": "null", "job": job, "bench-role": role, "mpi-job-role": role});
    json!({"name": name, "labels": labels})
}

/// A job, its objects and its pods.
async fn begin(client: Client, number: u32, workers: u32) -> anyhow::Result<()> {
    let parameters = PostParams::default();
    let object: DynamicObject = serde_json::from_value(job(OWN.version(), number, workers))?;
    let name = object.name_any();
    jobs(&client, OWN.version()).create(&parameters, &object).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": metadata(&name, &name, "job")}))?;
    maps.create(&parameters, &map).await?;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": metadata(&name, &name, "job"), "spec": {"clusterIP": "None"}});
    services.create(&parameters, &serde_json::from_value(service)?).await?;

    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = |of: String, role: &str| -> anyhow::Result<Pod> {
        let spec: Value = template(role)["spec"].take();
        Ok(serde_json::from_value(json!({"metadata": metadata(&name, &of, role), "spec": spec}))?)
    };
    let mut all = vec![pod(format!("{name}-launcher"), "launcher")?];
    for worker in 0..workers {
        all.push(pod(format!("{name}-worker-{worker}"), "worker")?);
    }
    let made = stream::iter(&all).map(|pod| pods.create(&parameters, pod));
    made.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
    Ok(())
}

/// Lets a launcher's command go; no job has ended by that.
async fn let_go(pods: Api<Pod>, job: String) -> anyhow::Result<u32> {
    let patch = json!({"metadata": {"annotations": {RELEASED: "yes"}}});
    let launcher = format!("{job}-launcher");
    pods.patch(&launcher, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(0)
}

/// Three status writes, three events, and one delete of all workers; one job has ended by that.
async fn end(client: Client, name: String) -> anyhow::Result<u32> {
    let all = jobs(&client, OWN.version());
    for written in 0..3 {
        let patch = json!({"status": {"replicaStatuses": {"Launcher": {"active": written}}}});
        all.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    let events: Api<Event> = Api::default_namespaced(client.clone());
    for told in 0..3 {
        let event = json!({
            "metadata": metadata(&name, &format!("{name}.{told}"), "job"), "reason": "Bench", "type": "Normal",
            "involvedObject": {"kind": "MPIJob", "name": name, "namespace": "default"},
        });
        events.create(&PostParams::default(), &serde_json::from_value(event)?).await?;
    }
    let own = ListParams::default().labels(&format!("job={name},bench-role=worker"));
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.delete_collection(&DeleteParams::default(), &own).await?;
    Ok(1)
}
