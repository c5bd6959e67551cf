//! Does what is wanted: creates by POST, changes by merge patch, deletes; many at once, and safe to repeat.

use std::future::Future;

use futures::{StreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use unisono_agent::table::TableError;
use unisono_plan::{Plan, Want};

use crate::acts::{Acts, acts, addresses, release};
use crate::engine::{EngineError, KubernetesEngine};
use crate::observe::observe;
use crate::render::{self, MintError, Owner, Rendering};
use crate::slim::{Job, Pod};
use crate::target::Resource;
use crate::writes::{Creation, Haste, Part, WriteError, Writer};

/// Why something wanted could not be done. The next tick tries again.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// An object could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Keys could not be made.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// The host table could not be made.
    #[error("make the host table")]
    Table(#[from] TableError),
}

/// Does everything that is wanted.
pub(crate) async fn apply(
    engine: &mut KubernetesEngine,
    plan: &Plan,
    want: &Want,
    owner: &Owner,
) -> Result<(), EngineError> {
    let (client, namespace) = (engine.client.clone(), engine.object.namespace().to_owned());
    let writer = Writer { client: &client, namespace: &namespace, owner };
    if want.remove_job {
        let dialect = plan.job.dialect;
        let resource = Resource::of(dialect).ok_or(EngineError::NoObject(dialect.name()))?;
        let (api, uid) = (resource.api_resource(), Some(engine.object.uid().to_owned()));
        let gone = writer.delete(&api, engine.object.name(), uid, Haste::Usual).await;
        return gone.map_err(|error| ApplyError::from(error).into());
    }
    let seen = observe(plan, &engine.object, &engine.children).seen;
    let acts = acts(plan, want, &engine.prior, &engine.status, &engine.children, &seen);
    Doing { engine, plan, want, writer }.all(&acts).await.map_err(EngineError::from)
}

struct Doing<'tick> {
    engine: &'tick mut KubernetesEngine,
    plan: &'tick Plan,
    want: &'tick Want,
    writer: Writer<'tick>,
}

impl Doing<'_> {
    async fn all(&mut self, acts: &Acts) -> Result<(), ApplyError> {
        let writer = self.writer;
        let pods = pods();
        let deletions = acts
            .delete
            .iter()
            .map(|(pod, haste)| writer.delete(&pods, pod.name(), pod.metadata.uid.clone(), *haste));
        self.each(deletions.collect()).await?;
        // The kubelet ends it at once, and the pod stays, with its log.
        let deadline = json!({"spec": {"activeDeadlineSeconds": 1}});
        let stops =
            acts.stop.iter().map(|pod| writer.patch(&pods, pod.name(), Part::Whole, &deadline));
        self.each(stops.collect()).await?;
        if let Some((name, uid)) = &acts.drop_job {
            writer.delete(&jobs(), name, uid.clone(), Haste::Usual).await?;
        }
        if acts.drop_pod_group {
            self.drop_pod_group().await?;
        }
        if acts.share {
            self.share().await?;
        }
        if acts.refresh {
            self.refresh_config().await?;
        }
        self.create_pods(acts).await?;
        for (incarnation, pod) in &acts.release {
            self.release(*incarnation, pod).await?;
        }
        if let Some((name, changes)) = &acts.job_status {
            let patch = json!({"status": changes});
            writer.patch(&jobs(), name, Part::Status, &patch).await?;
        }
        Ok(())
    }

    /// Makes what all pods of the job need before the first of them exists.
    async fn share(&mut self) -> Result<(), ApplyError> {
        let rendering = self.rendering();
        let secret = rendering.secret(&rendering.mint()?)?;
        let config_map = rendering.config_map();
        let mut objects = vec![
            (core("Secret", "secrets"), secret),
            (core("ConfigMap", "configmaps"), config_map),
        ];
        objects.extend(rendering.service().map(|it| (core("Service", "services"), it)));
        objects.extend(self.pod_group_api().zip(rendering.pod_group()));
        let writer = self.writer;
        let creations = objects.iter().map(|(api, object)| async move {
            let made = writer.create::<DynamicObject>(api, object).await?;
            Ok::<_, WriteError>(api.kind == "ConfigMap" && matches!(made, Creation::Known(_)))
        });
        let known_config = self.each(creations.collect()).await?;
        if known_config.contains(&true) {
            self.refresh_config().await?;
        }
        Ok(())
    }

    /// Brings the files that name all hosts up to date.
    async fn refresh_config(&self) -> Result<(), ApplyError> {
        let data = self.rendering().config_data();
        let (api, name) = (core("ConfigMap", "configmaps"), self.plan.names.config_map());
        Ok(self.writer.patch(&api, &name, Part::Whole, &json!({"data": data})).await?)
    }

    async fn create_pods(&mut self, acts: &Acts) -> Result<(), ApplyError> {
        let hosts: Vec<_> =
            acts.create.iter().filter_map(|member| self.plan.host(*member)).collect();
        let mut job_uid = None;
        if hosts.iter().any(|host| host.runs.launches()) && self.rendering().has_launcher_job() {
            job_uid = Some(self.launcher_job().await?);
        }
        let Want { attempt, epoch, .. } = *self.want;
        let rendered: Vec<Value> = hosts
            .iter()
            .map(|host| {
                let uid = job_uid.as_deref().filter(|_| host.runs.launches());
                self.rendering().pod(host, attempt, epoch, uid)
            })
            .collect();
        let (writer, pods) = (self.writer, pods());
        let creations = rendered.iter().map(|pod| writer.create::<Pod>(&pods, pod));
        // A pod of ours that was there already is seen by the next look: as this try's, or as one to be removed first.
        for creation in self.each(creations.collect()).await? {
            if let Creation::Made(pod) = creation {
                self.engine.children.take(pod);
            }
        }
        Ok(())
    }

    /// The uid of the launcher Job, which is made if it is not there.
    async fn launcher_job(&mut self) -> Result<String, ApplyError> {
        let known = self.engine.children.launcher_job(self.plan);
        if let Some(uid) = known.and_then(|job| job.metadata.uid.clone()) {
            return Ok(uid);
        }
        let Some(job) = self.rendering().launcher_job() else { return Ok(String::new()) };
        let metadata = match self.writer.create::<Job>(&jobs(), &job).await? {
            Creation::Made(job) => {
                let metadata = job.metadata.clone();
                self.engine.children.jobs.push(job.into());
                metadata
            }
            // The one from before the suspension is still on its way out.
            Creation::Known(metadata) if metadata.deletion_timestamp.is_some() => {
                let (kind, name) = ("Job".to_owned(), self.plan.names.launcher_job());
                return Err(WriteError::Predecessor { kind, name }.into());
            }
            Creation::Known(metadata) => *metadata,
        };
        Ok(metadata.uid.unwrap_or_default())
    }

    /// Lets a launch go: its host table is what it waits for. Hosts that joined or moved later are told the same way.
    async fn release(
        &self,
        incarnation: unisono_plan::Incarnation,
        pod: &Pod,
    ) -> Result<(), ApplyError> {
        let plan = self.plan;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let addresses = addresses(plan, &self.engine.children);
        let attempt = self.want.attempt;
        let Some(table) = render::table(plan, uid, attempt, incarnation.epoch, &addresses)? else {
            return Ok(());
        };
        let digest = render::digest(&table);
        let large = render::is_large(plan);
        let now = self.engine.clock.now();
        let Some(patch) = release(pod, &table, &digest, large, now.0) else { return Ok(()) };
        if large {
            let (api, name) = (core("ConfigMap", "configmaps"), plan.names.config_map());
            let data = json!({"data": {render::TABLE_KEY: table}});
            self.writer.patch(&api, &name, Part::Whole, &data).await?;
        }
        Ok(self.writer.patch(&pods(), pod.name(), Part::Whole, &patch).await?)
    }

    async fn drop_pod_group(&self) -> Result<(), ApplyError> {
        if let Some(api) = self.pod_group_api() {
            let name = self.plan.names.pod_group();
            self.writer.delete(&api, &name, None, Haste::Usual).await?;
        }
        Ok(())
    }

    fn pod_group_api(&self) -> Option<ApiResource> {
        let (group, version) = self.engine.settings.gang.api()?;
        Some(api(group, version, "PodGroup", "podgroups"))
    }

    fn rendering(&self) -> Rendering<'_> {
        Rendering { plan: self.plan, settings: &self.engine.settings, owner: self.writer.owner }
    }

    /// Does all of these, some at a time; the first fault is told when all are done.
    async fn each<T, E>(&self, acts: Vec<impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
        let done: Vec<Result<T, E>> = stream::iter(acts)
            .buffer_unordered(self.engine.settings.in_flight.max(1))
            .collect()
            .await;
        done.into_iter().collect()
    }
}

fn pods() -> ApiResource {
    core("Pod", "pods")
}

fn jobs() -> ApiResource {
    api("batch", "v1", "Job", "jobs")
}

fn core(kind: &str, plural: &str) -> ApiResource {
    api("", "v1", kind, plural)
}

fn api(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
