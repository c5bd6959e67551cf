//! Does what is wanted: creates by POST, changes by merge patch, deletes; many at once, and safe to repeat.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use kube::api::ApiResource;
use serde_json::{Map, Value, json};
use unisono_agent::table::TableError;
use unisono_plan::bind::Addresses;
use unisono_plan::{Incarnation, Plan, Want};

use crate::acts::{Acts, Known, acts, addresses, release};
use crate::children::{Before, Children, STATEFUL_SET};
use crate::engine::{EngineError, KubernetesEngine};
use crate::marks;
use crate::render::{self, MintError, Owner, Rendering};
use crate::slim::{Job, Pod};
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
        let (api, uid) =
            (engine.resource(plan)?.api_resource(), Some(engine.object.uid().to_owned()));
        let gone = writer.delete(&api, engine.object.name(), uid, Haste::Usual).await;
        return gone.map_err(|error| ApplyError::from(error).into());
    }
    let known = Known {
        prior: &engine.prior,
        status: &engine.status,
        children: &engine.children,
        seen: &engine.seen,
        is_settled: engine.is_settled,
    };
    let acts = acts(plan, want, &known);
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
        // First, and while their pods are still to be seen: a fault in between is made up for by the next look.
        if acts.drop_pod_group {
            self.drop_pod_group().await?;
        }
        if acts.refresh {
            self.refresh().await?;
        }
        if let Some((selected, workers)) = &acts.delete_all {
            writer.delete_all(&pods, selected).await?;
            self.engine.changed.extend(workers.iter().map(|pod| Before::of(pod)));
        }
        let deletions = acts
            .delete
            .iter()
            .map(|(pod, haste)| writer.delete(&pods, pod.name(), pod.metadata.uid.clone(), *haste));
        self.each(deletions.collect()).await?;
        let deleted = acts.delete.iter().filter(|(pod, _)| !pod.is_going());
        self.engine.changed.extend(deleted.map(|(pod, _)| Before::of(pod)));
        let sets = api("apps", "v1", STATEFUL_SET, "statefulsets");
        for (name, uid) in &acts.drop_sets {
            writer.delete(&sets, name, Some(uid.clone()), Haste::Usual).await?;
        }
        // The kubelet ends it at once, and the pod stays, with its log.
        let deadline = json!({"spec": {"activeDeadlineSeconds": 1}});
        self.change(acts.stop.iter().map(|pod| (pod, &deadline))).await?;
        let code = self.engine.status.end().map_or(0, |end| end.code);
        let over = json!({"metadata": {"annotations": {marks::END: code.to_string()}}});
        self.change(acts.end.iter().map(|pod| (pod, &over))).await?;
        if let Some((name, uid)) = &acts.drop_job {
            writer.delete(&jobs(), name, uid.clone(), Haste::Usual).await?;
        }
        if acts.share {
            self.share().await?;
        }
        self.create_pods(acts).await?;
        self.release(&acts.release).await?;
        if let Some((name, changes)) = &acts.job_status {
            let patch = json!({"status": changes});
            writer.patch(&jobs(), name, Part::Status, &patch).await?;
        }
        Ok(())
    }

    /// Makes what all pods of the job need before the first of them exists.
    async fn share(&mut self) -> Result<(), ApplyError> {
        let rendering = self.rendering();
        let secrets = rendering.secrets(&rendering.mint()?)?.into_iter();
        let mut objects: Vec<(ApiResource, Value)> =
            secrets.map(|it| (core("Secret", "secrets"), it)).collect();
        objects.push((core("ConfigMap", "configmaps"), rendering.config_map()));
        objects.extend(rendering.service().map(|it| (core("Service", "services"), it)));
        objects.extend(rendering.kube_batch_objects().into_iter().map(|it| (contract(&it), it)));
        let policy = rendering.network_policy();
        objects.extend(policy.map(|it| (contract(&it), it)));
        objects.extend(self.pod_group_api().zip(rendering.pod_group()));
        let writer = self.writer;
        let create = |(api, object)| async move {
            let made = writer.create(api, object).await?;
            let changes = matches!(api.kind.as_str(), "ConfigMap" | "PodGroup");
            Ok::<_, WriteError>(changes && matches!(made, Creation::Known))
        };
        // A binding is refused as long as its role is not there.
        let (last, first): (Vec<_>, Vec<_>) =
            objects.iter().map(|(api, it)| (api, it)).partition(|it| it.0.kind == "RoleBinding");
        let outdated = self.each(first.into_iter().map(create).collect()).await?;
        self.each(last.into_iter().map(create).collect()).await?;
        if outdated.contains(&true) {
            self.refresh().await?;
        }
        Ok(())
    }

    /// Brings what depends on the number of hosts up to date: the files that name them, and the size of the gang.
    async fn refresh(&self) -> Result<(), ApplyError> {
        if let Some(api) = self.pod_group_api() {
            let name = self.plan.names.pod_group();
            if let Some(uid) = self.writer.own_uid(&api, &name).await? {
                let spec = self.rendering().pod_group_spec();
                let size = json!({"metadata": {"uid": uid}, "spec": spec});
                self.writer.patch(&api, &name, Part::Whole, &size).await?;
            }
        }
        if self.rendering().is_kube_batch() {
            // It follows the addresses, not the plan.
            return Ok(());
        }
        let data = self.rendering().config_data();
        let (api, name) = (core("ConfigMap", "configmaps"), self.plan.names.config_map());
        Ok(self.writer.patch(&api, &name, Part::Whole, &json!({"data": data})).await?)
    }

    async fn create_pods(&mut self, acts: &Acts) -> Result<(), ApplyError> {
        let hosts: Vec<_> =
            acts.create.iter().filter_map(|member| self.plan.host(*member)).collect();
        let mut job_uid = None;
        if hosts.iter().any(|host| self.rendering().is_in_job(host)) {
            job_uid = Some(self.launcher_job().await?);
        }
        let Want { attempt, epoch, .. } = *self.want;
        let rendered: Vec<Value> = hosts
            .iter()
            .map(|host| {
                let uid = job_uid.as_deref().filter(|_| self.rendering().is_in_job(host));
                self.rendering().pod(host, attempt, epoch, uid)
            })
            .collect();
        let (writer, pods) = (self.writer, pods());
        let creations = rendered.iter().map(|pod| writer.create(&pods, pod));
        // A pod of ours that was there already is seen by the next look: as this try's, or as one to be removed first.
        for creation in self.each(creations.collect()).await? {
            if let Creation::Made(metadata) = creation {
                self.engine.children.take(Pod { metadata: *metadata, ..Pod::default() });
            }
        }
        Ok(())
    }

    /// The uid of the launcher Job, which is made if it is not there.
    async fn launcher_job(&mut self) -> Result<String, ApplyError> {
        if let Some(known) = self.engine.children.launcher_job(self.plan) {
            return self.own_job(known).await;
        }
        let Some(job) = self.rendering().launcher_job() else { return Ok(String::new()) };
        match self.writer.create(&jobs(), &job).await? {
            Creation::Made(metadata) => {
                let uid = metadata.uid.clone();
                self.engine.children.jobs.push(Job::made(*metadata).into());
                Ok(uid.unwrap_or_default())
            }
            Creation::Known => match self.writer.job(&self.plan.names.launcher_job()).await? {
                Some(found) if found.metadata.deletion_timestamp.is_none() => {
                    self.own_job(&found).await
                }
                // The one from before the suspension is still on its way out.
                Some(_) | None => Err(self.job_in_the_way()),
            },
        }
    }

    /// The uid of a launcher Job that is there. One that another operator made for this job goes first: its controller would
    /// remove our pods.
    async fn own_job(&self, job: &Job) -> Result<String, ApplyError> {
        let uid = job.metadata.uid.clone();
        if job.is_ours() {
            return Ok(uid.unwrap_or_default());
        }
        let name = self.plan.names.launcher_job();
        self.writer.delete(&jobs(), &name, uid, Haste::Usual).await?;
        Err(self.job_in_the_way())
    }

    fn job_in_the_way(&self) -> ApplyError {
        let (kind, name) = ("Job".to_owned(), self.plan.names.launcher_job());
        WriteError::Predecessor { kind, name }.into()
    }

    /// Lets commands go: their host table is what they wait for. Hosts that joined or moved later are told the same way.
    async fn release(&mut self, waiting: &[(Incarnation, Arc<Pod>)]) -> Result<(), ApplyError> {
        if waiting.is_empty() {
            return Ok(());
        }
        let plan = self.plan;
        let addresses = addresses(plan, &self.engine.children);
        let (large, now) = (render::is_large(plan), self.engine.clock.now());
        let rendering = self.rendering();
        let mut tables: BTreeMap<(&str, u32), (String, String)> = BTreeMap::new();
        let mut patches = Vec::new();
        for (incarnation, pod) in waiting {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let whose = (rendering.table_identity(uid), incarnation.epoch);
            let (table, digest) = match tables.entry(whose) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let (identity, epoch) = whose;
                    let attempt = self.want.attempt;
                    let table = render::table(plan, identity, attempt, epoch, &addresses)?;
                    let Some(table) = table else { return Ok(()) };
                    let digest = render::digest(&table);
                    place.insert((table, digest))
                }
            };
            if let Some(patch) = release(pod, table, digest, large, now.0) {
                patches.push((pod, patch));
            }
        }
        if patches.is_empty() {
            return Ok(());
        }
        // A table that is not its first one: hosts came or went. The mark of what was told is written last.
        if patches.iter().any(|(pod, _)| pod.annotation(marks::TABLE_DIGEST).is_some()) {
            self.refresh().await?;
        }
        if large {
            self.store(&tables).await?;
        }
        self.fill(&addresses).await?;
        let digest = tables.into_values().next().map(|(_, digest)| digest).unwrap_or_default();
        self.show_filled(&digest).await?;
        self.change(patches.iter().map(|(pod, patch)| (*pod, patch))).await
    }

    /// Changes pods, and remembers which.
    async fn change<'act>(
        &mut self,
        changes: impl Iterator<Item = (&'act Arc<Pod>, &'act Value)>,
    ) -> Result<(), ApplyError> {
        let writer = self.writer;
        let changed =
            self.each(changes.map(|(pod, patch)| writer.change(pod, patch)).collect()).await?;
        self.engine.changed.extend(changed.into_iter().flatten());
        Ok(())
    }

    /// Puts tables that are too long for annotations into the ConfigMap, in the place of those of earlier epochs.
    async fn store(
        &self,
        tables: &BTreeMap<(&str, u32), (String, String)>,
    ) -> Result<(), ApplyError> {
        let oldest = tables.keys().map(|(_, epoch)| *epoch).min().unwrap_or(0);
        let mut data: Map<String, Value> =
            (0..oldest).map(|epoch| (render::table_key(epoch), Value::Null)).collect();
        for ((_, epoch), (table, _)) in tables {
            data.insert(render::table_key(*epoch), table.as_str().into());
        }
        let (api, name) = (core("ConfigMap", "configmaps"), self.plan.names.config_map());
        Ok(self.writer.patch(&api, &name, Part::Whole, &json!({"data": data})).await?)
    }

    /// Fills in what the dialect's own objects tell about the hosts, once they have addresses.
    async fn fill(&self, addresses: &Addresses) -> Result<(), ApplyError> {
        let found = self.engine.children.incarnations(self.plan);
        let current = self.plan.hosts.iter().filter_map(|host| {
            Children::current(&found, host.member).map(|(_, pod)| pod.name().to_owned())
        });
        let names: Vec<String> = current.collect();
        let rendering = self.rendering();
        let fillings = rendering.kube_batch_fillings(&names, addresses);
        let writer = self.writer;
        let patches = fillings.iter().map(|filling| async move {
            let api = api_of(filling.kind);
            writer.patch(&api, &filling.name, Part::Whole, &filling.changes).await
        });
        Ok(self.each(patches.collect()).await.map(drop)?)
    }

    /// Has kubelets look at what was filled in, for the pods that only host ranks: they do at once where a pod changes, else up to a
    /// minute and a half later, when ranks have long begun. Before the command is let go, whose mark says that all this is done.
    async fn show_filled(&mut self, digest: &str) -> Result<(), ApplyError> {
        if !self.rendering().is_kube_batch() {
            return Ok(());
        }
        let found = self.engine.children.incarnations(self.plan);
        let hosts = self.plan.hosts.iter().filter(|host| !host.runs.launches());
        let pods: Vec<Arc<Pod>> = hosts
            .filter_map(|host| Children::current(&found, host.member))
            .filter(|(_, pod)| pod.annotation(marks::TABLE_DIGEST) != Some(digest))
            .map(|(_, pod)| Arc::clone(pod))
            .collect();
        let mark = json!({"metadata": {"annotations": {marks::TABLE_DIGEST: digest}}});
        self.change(pods.iter().map(|pod| (pod, &mark))).await
    }

    async fn drop_pod_group(&self) -> Result<(), ApplyError> {
        let Some(api) = self.pod_group_api() else { return Ok(()) };
        let name = self.plan.names.pod_group();
        if let Some(uid) = self.writer.own_uid(&api, &name).await? {
            self.writer.delete_unseen(&api, &name, Some(uid), Haste::Usual).await?;
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

/// The API of an object that a dialect's contract has.
fn contract(object: &Value) -> ApiResource {
    api_of(object.get("kind").and_then(Value::as_str).unwrap_or_default())
}

fn api_of(kind: &str) -> ApiResource {
    match kind {
        "Role" => api("rbac.authorization.k8s.io", "v1", kind, "roles"),
        "RoleBinding" => api("rbac.authorization.k8s.io", "v1", kind, "rolebindings"),
        "NetworkPolicy" => api("networking.k8s.io", "v1", kind, "networkpolicies"),
        "ServiceAccount" => core(kind, "serviceaccounts"),
        _ => core(kind, "configmaps"),
    }
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

#[cfg(test)]
mod tests;
