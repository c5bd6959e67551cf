//! What exists of one job.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, Patch};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use unisono_plan::{Incarnation, Member, Plan};

use crate::marks;
use crate::object::JobObject;
use crate::slim::{Job, Pod};
use crate::writes::parameters;

/// The labels by which operators for MPIJobs have named a child's job, the one that watches know first.
const NAMES: [&str; 3] = [marks::JOB_NAME, "mpi-job-name", "mpi_job_name"];

/// The label by which watches know that an operator for MPIJobs made a child.
const OPERATOR: &str = "training.kubeflow.org/operator-name";

/// The labels by which they have named a pod's role.
const ROLES: [&str; 4] = [
    marks::ROLE,
    "mpi_role_type",
    "training.kubeflow.org/job-role",
    "training.kubeflow.org/replica-type",
];

/// The kind of object that made the workers of the oldest versions.
pub(crate) const STATEFUL_SET: &str = "StatefulSet";

/// The objects of one job, as a watch or a list saw them last. They may be out of date; nothing relies on them being fresh.
#[derive(Clone, Debug, Default)]
pub struct Children {
    /// Its pods, older tries included.
    pub pods: Vec<Arc<Pod>>,
    /// Its launcher Job, and none of anybody else.
    pub jobs: Vec<Arc<Job>>,
    /// What the API server refused to make when it was last asked, in its own words.
    pub refused: Option<String>,
}

/// Why children could not be listed or marked.
#[derive(Debug, thiserror::Error)]
#[error("find the {what} of the job")]
pub struct ListError {
    what: &'static str,
    source: kube::Error,
}

impl Children {
    /// Lists what exists, for those who keep no store.
    ///
    /// # Errors
    ///
    /// When the API server does not answer, or refuses.
    pub async fn list(client: &Client, object: &JobObject) -> Result<Self, ListError> {
        let own = ListParams::default().labels(&format!("{}={}", marks::JOB_UID, object.uid()));
        let pods: Api<Pod> = Api::namespaced(client.clone(), object.namespace());
        let jobs: Api<Job> = Api::namespaced(client.clone(), object.namespace());
        let (pods, jobs) = futures::try_join!(
            async { pods.list(&own).await.map_err(|source| ListError { what: "pods", source }) },
            async { jobs.list(&own).await.map_err(|source| ListError { what: "Jobs", source }) },
        )?;
        Ok(Self {
            pods: pods.items.into_iter().map(Arc::new).collect(),
            jobs: jobs.items.into_iter().map(Arc::new).collect(),
            refused: None,
        })
    }

    /// Marks what another operator made for this job as the job's, so that watches and lists find it from now on; the uids of its pods
    /// and Jobs leave. To be called for an object that has a status and none of ours ([`JobObject::is_inherited`]).
    ///
    /// # Errors
    ///
    /// When the API server does not answer, or refuses.
    pub async fn adopt(client: &Client, object: &JobObject) -> Result<Vec<String>, ListError> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), object.namespace());
        let jobs: Api<Job> = Api::namespaced(client.clone(), object.namespace());
        let fault = |source| ListError { what: "Jobs", source };
        // v2beta1's operator labels the pods of its Job, and of the Job itself only tells the application.
        let launcher = format!("{}-launcher", object.name());
        let mut own_jobs = Vec::from_iter(jobs.get_opt(&launcher).await.map_err(fault)?);
        for label in NAMES {
            let named = ListParams::default().labels(&format!("{label}={}", object.name()));
            own_jobs.extend(jobs.list(&named).await.map_err(fault)?);
        }
        own_jobs.retain(|job| is_owned(job, object, &[]));
        own_jobs.sort_by_key(|job| job.uid());
        own_jobs.dedup_by_key(|job| job.uid());
        let mut uids = Vec::new();
        for job in &own_jobs {
            adopt_one(&jobs, job, object).await.map_err(fault)?;
            uids.extend(job.uid());
        }
        let (own_jobs, fault) = (uids.clone(), |source| ListError { what: "pods", source });
        for label in NAMES {
            let named = ListParams::default().labels(&format!("{label}={}", object.name()));
            for pod in pods.list(&named).await.map_err(fault)? {
                if is_owned(&pod, object, &own_jobs) {
                    adopt_one(&pods, &pod, object).await.map_err(fault)?;
                    uids.extend(pod.uid());
                }
            }
        }
        Ok(uids)
    }

    /// Whether something of each of these uids is among them.
    pub fn have(&self, uids: &[String]) -> bool {
        if uids.is_empty() {
            return true;
        }
        // Once for all: there may be thousands of either.
        let pods = self.pods.iter().filter_map(|pod| pod.metadata.uid.as_ref());
        let jobs = self.jobs.iter().filter_map(|job| job.metadata.uid.as_ref());
        let known: HashSet<&String> = pods.chain(jobs).collect();
        uids.iter().all(|uid| known.contains(uid))
    }

    /// Whether any of these pods is still shown as it was before it was changed.
    pub fn show_any(&self, changed: &[Before]) -> bool {
        if changed.is_empty() {
            return false;
        }
        let shown: HashSet<Before> = self.pods.iter().map(|pod| Before::of(pod)).collect();
        changed.iter().any(|before| shown.contains(before))
    }

    /// The job's launcher Job that is not being deleted.
    pub(crate) fn launcher_job(&self, plan: &Plan) -> Option<&Arc<Job>> {
        let name = plan.names.launcher_job();
        self.jobs.iter().find(|job| {
            job.metadata.name.as_deref() == Some(&name) && job.metadata.deletion_timestamp.is_none()
        })
    }

    /// Pods by what they are an incarnation of; of several, the one that is not being deleted.
    pub(crate) fn incarnations(&self, plan: &Plan) -> BTreeMap<Incarnation, &Arc<Pod>> {
        let mut found: BTreeMap<Incarnation, &Arc<Pod>> = BTreeMap::new();
        for pod in &self.pods {
            if let Some(incarnation) = incarnation(plan, pod) {
                let kept = found.entry(incarnation).or_insert(pod);
                if kept.is_going() && !pod.is_going() {
                    *kept = pod;
                }
            }
        }
        found
    }

    /// The youngest incarnation of a member.
    pub(crate) fn current<'found>(
        found: &BTreeMap<Incarnation, &'found Arc<Pod>>,
        member: Member,
    ) -> Option<(Incarnation, &'found Arc<Pod>)> {
        let of_member = Incarnation { member, epoch: 0 }..=Incarnation { member, epoch: u32::MAX };
        found.range(of_member).next_back().map(|(incarnation, pod)| (*incarnation, *pod))
    }

    /// Takes in an object that was just written, so that what follows sees it before any watch does.
    pub(crate) fn take(&mut self, pod: Pod) {
        let uid = pod.uid();
        self.pods.retain(|known| known.metadata.uid != uid);
        self.pods.push(Arc::new(pod));
    }
}

/// A pod as it was before it was changed. Whoever still sees it so does not know of the change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Before {
    uid: Option<String>,
    version: Option<String>,
}

impl Before {
    /// The pod as it is now.
    pub fn of(pod: &Pod) -> Self {
        Self::of_metadata(&pod.metadata)
    }

    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Self {
        Self { uid: metadata.uid.clone(), version: metadata.resource_version.clone() }
    }
}

/// Whether a child of the job's name is its own, and not that of an earlier job: directly, or through the Job or the StatefulSet that
/// made it. The oldest operators let a StatefulSet make their workers.
fn is_owned(child: &impl kube::ResourceExt, object: &JobObject, jobs: &[String]) -> bool {
    let set = format!("{}-worker", object.name());
    child.owner_references().iter().any(|owner| {
        owner.uid == object.uid()
            || jobs.contains(&owner.uid)
            || (owner.kind == STATEFUL_SET && owner.name == set)
    })
}

async fn adopt_one<K>(api: &Api<K>, found: &K, object: &JobObject) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + fmt::Debug + kube::Resource,
{
    let (name, known) = (found.name_any(), found.labels());
    let mut labels = Map::new();
    let [job_name, ..] = NAMES;
    for (label, value) in
        [(marks::JOB_UID, object.uid()), (OPERATOR, "mpi-operator"), (job_name, object.name())]
    {
        // Which of its operators made it, and for whom, may stand there already.
        if !known.contains_key(label) {
            labels.insert(label.to_owned(), value.into());
        }
    }
    if labels.is_empty() {
        return Ok(());
    }
    let label = json!({"metadata": {"labels": labels}});
    match api.patch(&name, &parameters(), &Patch::Merge(&label)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        patched => patched.map(drop),
    }
}

/// What a pod is an incarnation of: its labels say so, or, where another operator made it, its place in the job.
pub(crate) fn incarnation(plan: &Plan, pod: &Pod) -> Option<Incarnation> {
    if let Some(member) = pod.label(marks::MEMBER) {
        let epoch = pod.label(marks::EPOCH).and_then(|text| text.parse().ok())?;
        return Some(Incarnation { member: member.parse().ok()?, epoch });
    }
    let host = plan.hosts.iter().find(|host| match host.runs.launches() {
        true => ROLES.iter().any(|role| pod.label(role) == Some("launcher")),
        false => plan.pod_name(host, 0) == pod.name(),
    })?;
    Some(Incarnation { member: host.member, epoch: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Server;

    const PODS: &str = "/api/v1/namespaces/lab/pods";
    const JOBS: &str = "/apis/batch/v1/namespaces/lab/jobs";

    fn object() -> JobObject {
        let metadata = json!({"name": "pi", "namespace": "lab", "uid": "1"});
        JobObject::new(json!({"metadata": metadata})).unwrap()
    }

    #[tokio::test]
    async fn a_launcher_whose_job_tells_only_its_application_is_taken_over_with_its_pod() {
        let server = Server::default();
        let owners = |kind: &str, uid: &str| json!([{"apiVersion": "x", "kind": kind, "name": "x", "uid": uid}]);
        let labels = json!({
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi", "training.kubeflow.org/job-role": "launcher",
        });
        server.store().put(JOBS, json!({"metadata": {
            "name": "pi-launcher", "uid": "7", "labels": {"app": "pi"}, "ownerReferences": owners("MPIJob", "1"),
        }}));
        server.store().put(PODS, json!({"metadata": {
            "name": "pi-launcher-abcde", "uid": "8", "labels": labels, "ownerReferences": owners("Job", "7"),
        }}));
        let uids = Children::adopt(&server.client(), &object()).await.unwrap();
        assert_eq!(uids, ["7", "8"]);
        let children = Children::list(&server.client(), &object()).await.unwrap();
        assert!(children.have(&uids), "{children:?}");
        let store = server.store();
        let job = store.get(&format!("{JOBS}/pi-launcher")).unwrap();
        assert_eq!(job["metadata"]["labels"][OPERATOR], "mpi-operator", "watches find it");
    }

    #[tokio::test]
    async fn a_launcher_job_of_somebody_else_is_left_alone() {
        let server = Server::default();
        let owners = json!([{"apiVersion": "x", "kind": "MPIJob", "name": "pi", "uid": "another"}]);
        server
            .store()
            .put(JOBS, json!({"metadata": {"name": "pi-launcher", "ownerReferences": owners}}));
        assert!(Children::adopt(&server.client(), &object()).await.unwrap().is_empty());
        assert_eq!(server.store().writes(), [""; 0]);
    }
}
