//! The null operator: a client that sends the least that jobs need, and decides nothing. It is the ceiling. It has two arms: with the
//! bare pods that a user writes and that go with their job, and with pods as Unisono makes them, which cost every part of a cluster more.

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
use unisono_k8s::marks::{JOB_NAME, RELEASED};
use unisono_k8s::{JobObject, Owner, Rendering, Resource, Settings, slim};
use unisono_plan::lay_out;
use unisono_testcluster::{Cluster, usage};

use crate::arms::{V1, clear, job, last_pod, template, workers_are_gone};
use crate::inside::{inside, jobs};
use crate::kubelet::{Begun, end_launchers};
use crate::{AT_ONCE, Cost, Size};

/// What stands for a job's name and uid in its pods before there is a job.
const JOB: &str = "the-job";
const UID: &str = "the-uid";

/// A job's pods, a ConfigMap and a Service, what lets its command go, three writes of its status and three events, and one delete of
/// all workers. The job itself is its user's.
fn requests(size: Size) -> u64 {
    u64::from(size.jobs) * (u64::from(size.workers) + 1 + 2 + 1 + 3 + 3 + 1)
}

/// With pods as they stand in the file.
pub(crate) fn with_bare_pods(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    let pod = |name: String, role: &str| json!({"metadata": owned(JOB, UID, &name, role), "spec": template(role)["spec"]});
    let workers = (0..size.workers).map(|at| pod(format!("{JOB}-worker-{at}"), "worker"));
    let pods = std::iter::once(pod(format!("{JOB}-launcher"), "launcher")).chain(workers);
    run(cluster, size, &pods.collect::<Vec<Value>>())
}

/// With pods as Unisono makes them.
pub(crate) fn with_same_pods(cluster: &Cluster, size: Size) -> anyhow::Result<Cost> {
    let mut object = job(V1, 0, size.workers);
    let known = json!({"name": JOB, "namespace": "default", "uid": UID});
    object["metadata"] = known;
    let object = JobObject::new(object)?;
    let read = object.read(&unisono_dialect::Options::default());
    let resource = read.dialect.and_then(Resource::of).context("no resource")?;
    let settings = Settings::new("lab/unisono:1");
    let plan = lay_out(&read.job.context("no job")?, &object.facts(&settings), 1);
    let owner = Owner::of(&object, resource);
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    let mut pods = rendering.preview();
    pods.retain(|object| object["kind"] == "Pod");
    for pod in &mut pods {
        let name = pod["metadata"]["name"].as_str().context("no name")?;
        let role = if name.ends_with("launcher") { "launcher" } else { "worker" };
        let Value::Object(labels) = metadata(JOB, name, role)["labels"].take() else { continue };
        pod["metadata"]["labels"].as_object_mut().context("no labels")?.extend(labels);
    }
    run(cluster, size, &pods)
}

/// Creates jobs and what they would have, lets their commands go when all pods run, and writes their ends.
fn run(cluster: &Cluster, size: Size, pods: &[Value]) -> anyhow::Result<Cost> {
    let pods = serde_json::to_string(pods)?;
    let (mark, revision) = (cluster.audit_mark()?, cluster.etcd_revision()?);
    let begun = Instant::now();
    let processor = std::thread::scope(|scope| -> anyhow::Result<Duration> {
        let end = |client| end_launchers(client, size.jobs, Begun::WhenLetGo);
        let ends = scope.spawn(move || inside(cluster, end));
        let processor = inside(cluster, async |client| {
            all(client, size, &pods).await?;
            usage::of_this_thread()
        })?;
        ends.join().map_err(|_| anyhow!("the launchers' thread panicked"))??;
        Ok(processor)
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    workers_are_gone(cluster)?;
    let revisions = cluster.etcd_revision()? - revision;
    let pods = last_pod(cluster, mark)?;
    for kind in ["pods", "services", "configmaps", "events"] {
        let own = format!("/api/v1/namespaces/default/{kind}?labelSelector=bench%3Dnull");
        cluster.api().delete(&own)?;
    }
    clear(cluster, V1)?;
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
async fn all(client: Client, size: Size, of_job: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let own = watcher::Config::default().labels("bench=null");
    let watched: Api<slim::Pod> = Api::default_namespaced(client.clone());
    let mut seen = std::pin::pin!(watcher(watched, own).applied_objects());
    let begin = |job| begin(client.clone(), job, size.workers, of_job);
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
                let name = pod.labels().get(JOB_NAME).context("no job")?.clone();
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
    let labels = json!({"bench": "null", JOB_NAME: job, "bench-role": role});
    json!({"name": name, "labels": labels})
}

/// Metadata of what goes with its job.
fn owned(job: &str, uid: &str, name: &str, role: &str) -> Value {
    let mut metadata = metadata(job, name, role);
    metadata["ownerReferences"] = json!([{"apiVersion": format!("kubeflow.org/{V1}"), "kind": "MPIJob", "name": job, "uid": uid, "controller": true}]);
    metadata
}

/// A job, its objects and its pods.
async fn begin(client: Client, number: u32, workers: u32, pods: &str) -> anyhow::Result<()> {
    let parameters = PostParams::default();
    let object: DynamicObject = serde_json::from_value(job(V1, number, workers))?;
    let name = object.name_any();
    let uid = jobs(&client, V1).create(&parameters, &object).await?.uid().context("no uid")?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata = owned(&name, &uid, &name, "job");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata}))?;
    maps.create(&parameters, &map).await?;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": metadata, "spec": {"clusterIP": "None"}});
    services.create(&parameters, &serde_json::from_value(service)?).await?;

    let pods = pods.replace(JOB, &name).replace(UID, &uid);
    let all: Vec<Pod> = serde_json::from_str(&pods)?;
    let pods: Api<Pod> = Api::default_namespaced(client);
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
    let all = jobs(&client, V1);
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
    let own = ListParams::default().labels(&format!("{JOB_NAME}={name},bench-role=worker"));
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.delete_collection(&DeleteParams::default(), &own).await?;
    Ok(1)
}
