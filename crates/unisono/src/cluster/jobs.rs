//! Jobs of a cluster: names enter, job objects with their plans and statuses leave.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use unisono_job::{Dialect, Note};
use unisono_k8s::slim::Pod;
use unisono_k8s::{Children, JobObject, Resource, marks, prior, told_why};
use unisono_plan::conditions::first_failure;
use unisono_plan::{Member, Plan, Status, lay_out};

use super::{Applied, Cluster};
use crate::error::Error;
use crate::report::HostView;

/// The kinds of job there are, each in the version it is asked for; what is stored is what was written, whatever is asked.
const KINDS: [Dialect; 3] = [Dialect::KubeflowV2beta1, Dialect::Unisono, Dialect::KubeBatch];

/// What could not be done where jobs are asked for in vain.
const UNLISTED: &str = "jobs cannot be listed";

/// Jobs of a cluster.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// The jobs, the newest last.
    pub(crate) jobs: Vec<ClusterJob>,
    /// Kinds whose jobs may not be seen.
    hidden: Vec<&'static str>,
}

impl Jobs {
    /// What there is to warn of.
    pub(crate) fn warning(&self) -> Option<String> {
        let kinds = self.hidden.join(" and ");
        (!kinds.is_empty())
            .then(|| format!("you may not list {kinds}: jobs of that kind are left out"))
    }
}

/// A job of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterJob {
    /// Its object.
    pub(crate) object: JobObject,
    /// Its plan; none when it holds no job that could run.
    pub(crate) plan: Option<Plan>,
    /// What there is to tell about the object.
    pub(crate) notes: Vec<Note>,
    /// Where it is in its life.
    pub(crate) status: Status,
    /// Why it waits, as the operator wrote it down last.
    pub(crate) why: Vec<String>,
}

impl ClusterJob {
    /// Whether an operator has looked at it.
    pub(crate) fn is_looked_at(&self) -> bool {
        let status = self.object.status();
        status.get("unisono").is_some() || status.get("conditions").is_some()
    }

    /// What failed first, as a sentence.
    pub(crate) fn first_failure(&self) -> Option<String> {
        first_failure(self.plan.as_ref()?, &self.status)
    }

    /// What names the object in requests.
    pub(crate) fn reference(&self) -> Value {
        let object = self.object.as_json();
        json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {"name": self.object.name(), "namespace": self.object.namespace()},
        })
    }

    /// The resource through which it is asked for.
    pub(super) fn resource(&self) -> Result<Resource, Error> {
        self.object.own_resource().ok_or_else(|| no_job(self.object.name()))
    }

    /// When the object was made, in milliseconds since 1970.
    pub(crate) fn created(&self) -> u64 {
        let text = self.object.as_json().pointer("/metadata/creationTimestamp");
        text.and_then(Value::as_str).and_then(milliseconds).unwrap_or_default()
    }
}

impl Cluster {
    /// The job that an object holds.
    pub(super) fn read(&self, object: &DynamicObject) -> Option<ClusterJob> {
        let object = JobObject::from_dynamic(object).ok()?;
        let reading = object.read(&self.reading);
        let facts = object.facts(&self.engine);
        let plan = reading.job.as_ref().map(|job| lay_out(job, &facts, object.generation()));
        let status = plan.as_ref().map(|it| prior(it, &object, &Children::default()));
        Some(ClusterJob {
            plan,
            notes: reading.notes,
            status: status.unwrap_or_default(),
            why: told_why(&object),
            object,
        })
    }

    /// All jobs of the usual namespace, or of all. Somebody may have the right to see some kinds only.
    pub(crate) async fn jobs(&self, everywhere: bool) -> Result<Jobs, Error> {
        let namespace = (!everywhere).then_some(self.namespace.as_str());
        let (mut jobs, mut known_kinds, mut refusals) = (Vec::new(), 0, Vec::new());
        for resource in KINDS.into_iter().filter_map(Resource::of) {
            let api = self.api(&resource.api_resource(), namespace);
            match api.list(&ListParams::default()).await {
                Ok(list) => {
                    known_kinds += 1;
                    jobs.extend(list.items.into_iter().filter_map(|mut object| {
                        // Items of a list do not say what they are.
                        object.types = Some(kube::core::TypeMeta {
                            api_version: resource.api_version(),
                            kind: resource.kind.to_owned(),
                        });
                        self.read(&object)
                    }));
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    refusals.push((resource.plural, kube::Error::Api(status)));
                }
                Err(error) => return Err(self.failed(UNLISTED, error)),
            }
        }
        if known_kinds == 0 {
            let refusal = refusals.into_iter().next();
            return Err(refusal.map_or_else(no_operator, |(_, it)| self.failed(UNLISTED, it)));
        }
        jobs.sort_by_key(ClusterJob::created);
        Ok(Jobs { jobs, hidden: refusals.into_iter().map(|(plural, _)| plural).collect() })
    }

    /// The job of that name in the usual namespace; the newest there without a name. With it leaves what there is to warn of.
    pub(crate) async fn find_job(
        &self,
        name: Option<&str>,
    ) -> Result<(Option<ClusterJob>, Option<String>), Error> {
        let mut found = self.jobs(false).await?;
        let is_it = |job: &ClusterJob| {
            let of_file = job.plan.as_ref().map(|plan| plan.job.name.as_str());
            name.is_none_or(|name| job.object.name() == name || of_file == Some(name))
        };
        let at = found.jobs.iter().rposition(is_it);
        let warning = found.warning();
        Ok((at.map(|at| found.jobs.swap_remove(at)), warning))
    }

    /// Whether a namespace is gone or on its way. Whoever may not ask is told nothing of it.
    pub(crate) async fn namespace_goes(&self, name: &str) -> bool {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        match namespaces.get_metadata_opt(name).await {
            Ok(Some(namespace)) => namespace.metadata.deletion_timestamp.is_some(),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// The pods of a job.
    pub(crate) async fn pods(&self, job: &ClusterJob) -> Result<Vec<Pod>, Error> {
        let parameters = ListParams::default().labels(&selector(job));
        let pods = self.pod_api(job).list(&parameters).await;
        let pods = pods.map_err(|error| self.failed("pods cannot be listed", error))?;
        Ok(pods.items)
    }

    /// The hosts of a job that have pods: since when, and how they are.
    pub(crate) async fn hosts(
        &self,
        job: &ClusterJob,
    ) -> Result<BTreeMap<String, HostView>, Error> {
        let pods = self.pods(job).await?;
        let mut hosts = BTreeMap::new();
        for pod in &pods {
            let host = job.plan.as_ref().zip(member(pod)).and_then(|(plan, it)| plan.host(it));
            let Some(host) = host else { continue };
            let started = pod.status.start_time.as_ref();
            let node = pod.spec.node_name.as_deref();
            let node = node.map(|node| format!(" on {node}")).unwrap_or_default();
            let view = HostView {
                reached: started.and_then(|it| u64::try_from(it.0.as_millisecond()).ok()),
                lost: Some(format!("{}{node}", pod.status.phase.to_lowercase())),
                ..HostView::default()
            };
            hosts.insert(host.name.clone(), view);
        }
        Ok(hosts)
    }

    /// The job that an object is which was just given to the cluster.
    pub(super) fn job_of(&self, applied: &Applied) -> Result<ClusterJob, Error> {
        let object: Option<DynamicObject> = serde_json::from_value(applied.object.clone()).ok();
        object.and_then(|it| self.read(&it)).ok_or_else(|| no_job(&applied.name))
    }

    pub(super) fn pod_api(&self, job: &ClusterJob) -> Api<Pod> {
        Api::namespaced(self.client.clone(), job.object.namespace())
    }
}

/// What selects the pods of a job.
pub(super) fn selector(job: &ClusterJob) -> String {
    format!("{}={}", marks::JOB_UID, job.object.uid())
}

/// Which member of the job a pod is.
pub(crate) fn member(pod: &Pod) -> Option<Member> {
    pod.metadata.labels.as_ref()?.get(marks::MEMBER)?.parse().ok()
}

fn milliseconds(text: &str) -> Option<u64> {
    let time: k8s_openapi::jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

fn no_job(name: &str) -> Error {
    Error::Run {
        message: format!("what the cluster has as {name} is no job"),
        hint: Some("`unisono list --engine kubernetes` shows the jobs of the cluster".to_owned()),
        source: None,
    }
}

fn no_operator() -> Error {
    Error::Run {
        message: "the cluster knows no kind of MPI job".to_owned(),
        hint: Some(
            "no Unisono operator is installed there: `unisono operator install` does it".to_owned(),
        ),
        source: None,
    }
}
