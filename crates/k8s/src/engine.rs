//! The engine: three acts on the objects of one job. It decides nothing.

use kube::api::{DynamicObject, Patch};
use kube::core::Request;
use kube::{Client, Resource as _};
use serde_json::{Value, json};
use unisono_engine::{Clock, Engine, Recorded, SystemClock};
use unisono_plan::{Next, Observed, Plan, Seen, Status, Want, Why};

use crate::apply::{self, ApplyError};
use crate::children::{Before, Children};
use crate::object::JobObject;
use crate::observe::observe;
use crate::render::Owner;
use crate::settings::Settings;
use crate::status;
use crate::target::Resource;
use crate::writes::parameters;

/// Carries out one job as Kubernetes objects. Made for one tick, from what is known then.
pub struct KubernetesEngine {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) object: JobObject,
    pub(crate) children: Children,
    /// What was observed.
    pub(crate) seen: Vec<Seen>,
    /// The status that was read.
    pub(crate) prior: Status,
    /// The status that holds now: the one that was read, or the one that was written since.
    pub(crate) status: Status,
    /// Whether all that followed from that status is known to have been done.
    pub(crate) is_settled: bool,
    /// The pods that the tick has changed or deleted.
    pub(crate) changed: Vec<Before>,
    pub(crate) clock: Box<dyn Clock + Send + Sync>,
}

/// Why an act failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The dialect's jobs are no objects of a cluster.
    #[error("jobs of {0} are no objects of a cluster")]
    NoObject(&'static str),
    /// The status could not be written.
    #[error("write the status of the job")]
    Record(#[source] kube::Error),
    /// What was wanted could not be done.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl KubernetesEngine {
    /// An engine for one job and what exists of it.
    pub fn new(client: Client, settings: Settings, object: JobObject, children: Children) -> Self {
        let clock = Box::new(SystemClock);
        let (prior, status) = (Status::default(), Status::default());
        let (seen, changed, is_settled) = (Vec::new(), Vec::new(), false);
        Self { client, settings, object, children, seen, prior, status, is_settled, changed, clock }
    }

    /// Says that an earlier tick went through, so that what it did need not be looked for.
    #[must_use]
    pub fn settled(self, is_settled: bool) -> Self {
        Self { is_settled, ..self }
    }

    /// The job object as it is after the tick.
    pub fn object(&self) -> &JobObject {
        &self.object
    }

    /// What exists of the job after the tick, as far as its own writes told.
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// The pods that the tick has changed or deleted, as they were before.
    pub fn changed(&self) -> &[Before] {
        &self.changed
    }

    pub(crate) fn owner(&self, plan: &Plan) -> Result<Owner, EngineError> {
        Ok(Owner::of(&self.object, self.resource(plan)?))
    }

    /// The resource through which the job object is written.
    pub(crate) fn resource(&self, plan: &Plan) -> Result<Resource, EngineError> {
        let dialect = plan.job.dialect;
        self.object.resource(dialect).ok_or(EngineError::NoObject(dialect.name()))
    }
}

impl Engine for KubernetesEngine {
    type Error = EngineError;

    async fn observe(&mut self, plan: &Plan) -> Result<Observed, EngineError> {
        self.prior = status::prior(plan, &self.object, &self.children);
        self.status = self.prior.clone();
        let observed = observe(plan, &self.object, &self.children);
        self.seen.clone_from(&observed.seen);
        Ok(observed)
    }

    fn has_told(&self, why: &[Why]) -> bool {
        let told = status::told_why(&self.object);
        told.len() == why.len() && told.iter().zip(why).all(|(told, why)| *told == why.to_string())
    }

    async fn record(&mut self, plan: &Plan, next: &Next) -> Result<Recorded, EngineError> {
        self.status = next.status.clone();
        let Some(changes) = status::patch(plan, &self.object, next) else {
            return Ok(Recorded::Written);
        };
        let patch = json!({
            "metadata": {"resourceVersion": self.object.resource_version()},
            "status": changes,
        });
        let resource = self.resource(plan)?.api_resource();
        let path = DynamicObject::url_path(&resource, Some(self.object.namespace()));
        let request = Request::new(path)
            .patch_subresource("status", self.object.name(), &parameters(), &Patch::Merge(&patch))
            .map_err(|error| EngineError::Record(kube::Error::BuildRequest(error)))?;
        match self.client.request::<Value>(request).await {
            Ok(written) => {
                if let Ok(object) = JobObject::new(written) {
                    self.object = object;
                }
                Ok(Recorded::Written)
            }
            // Somebody changed the job, or it is gone: what was decided is out of date.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Ok(Recorded::Outdated)
            }
            Err(error) => Err(EngineError::Record(error)),
        }
    }

    async fn apply(&mut self, plan: &Plan, want: &Want) -> Result<(), EngineError> {
        let owner = self.owner(plan)?;
        apply::apply(self, plan, want, &owner).await
    }
}
