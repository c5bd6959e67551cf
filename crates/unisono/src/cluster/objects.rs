//! Objects on their way to a cluster: applied as kubectl does it, made, removed.

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::{Value, json};
use std::time::Duration;

use super::Cluster;
use crate::error::Error;

/// Who is named as the owner of the fields that are applied.
const MANAGER: &str = "unisono-submit";

/// How often an object that is to go is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Kinds that only an operator of ours makes something of.
const OURS: [&str; 3] = ["kubeflow.org", "scheduling.incubator.k8s.io", "unisono.dev"];

/// An object that the cluster has now.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Its namespace, where it has one.
    pub(crate) namespace: Option<String>,
    /// What became of it.
    pub(crate) change: Change,
    /// All of it.
    pub(crate) object: Value,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There was none.
    Created,
    /// It is another one now.
    Changed,
    /// It was so already.
    Unchanged,
    /// It is gone.
    Removed,
}

impl Change {
    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
        }
    }
}

/// An object's API, and what the object is called.
struct Target {
    api: Api<DynamicObject>,
    kind: String,
    name: String,
    namespace: Option<String>,
}

impl Cluster {
    /// Applies an object by server-side apply, as kubectl does; one that leaves its name to the server is made.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Applied, Error> {
        let target = self.target(object).await?;
        if target.name.is_empty() {
            return self.create_at(&target, object).await;
        }
        let refused = |error| self.failed(format!("{} is not applied", target.shown()), error);
        let before = target.api.get_opt(&target.name).await.map_err(refused)?;
        let parameters = PatchParams::apply(MANAGER).force();
        let after = target.api.patch(&target.name, &parameters, &Patch::Apply(object)).await;
        let after = after.map_err(refused)?;
        let change = match before {
            None => Change::Created,
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => {
                Change::Unchanged
            }
            Some(_) => Change::Changed,
        };
        Ok(target.applied(after, change))
    }

    /// Makes an object that must not be there yet.
    pub(crate) async fn create(&self, object: &Value) -> Result<Applied, Error> {
        let target = self.target(object).await?;
        self.create_at(&target, object).await
    }

    async fn create_at(&self, target: &Target, object: &Value) -> Result<Applied, Error> {
        let is_there = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists");
        let parsed: DynamicObject = serde_json::from_value(object.clone())
            .map_err(|error| Error::run(format!("{} is no object", target.shown()), error))?;
        match target.api.create(&PostParams::default(), &parsed).await {
            Ok(made) => Ok(target.applied(made, Change::Created)),
            Err(error) if is_there(&error) => Err(Error::Run {
                message: format!("{} is there already", target.shown()),
                hint: Some(
                    "--replace removes it first; or give the new one another name".to_owned(),
                ),
                source: None,
            }),
            Err(error) => Err(self.failed(format!("{} is not made", target.shown()), error)),
        }
    }

    /// Removes an object and what it owns, and waits until it is gone; nothing leaves when there was none.
    pub(crate) async fn remove(&self, object: &Value) -> Result<Option<Applied>, Error> {
        let target = self.target(object).await?;
        let failed = |error| self.failed(format!("{} is not removed", target.shown()), error);
        let Some(known) = target.api.get_opt(&target.name).await.map_err(failed)? else {
            return Ok(None);
        };
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        match target.api.delete(&target.name, &parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            gone => drop(gone.map_err(failed)?),
        }
        while let Some(still) = target.api.get_opt(&target.name).await.map_err(failed)? {
            if still.metadata.uid != known.metadata.uid {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(Some(target.applied(known, Change::Removed)))
    }

    /// Sets an annotation of an object.
    pub(crate) async fn annotate(
        &self,
        object: &Value,
        name: &str,
        value: &str,
    ) -> Result<(), Error> {
        let target = self.target(object).await?;
        let patch = Patch::Merge(json!({"metadata": {"annotations": {name: value}}}));
        let changed = target.api.patch(&target.name, &PatchParams::default(), &patch).await;
        changed
            .map(drop)
            .map_err(|error| self.failed(format!("{} is not changed", target.shown()), error))
    }

    /// Finds the API of an object. A kind that the cluster does not know is told apart from everything else.
    async fn target(&self, object: &Value) -> Result<Target, Error> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (api_version, kind) =
            (text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default());
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) =
            discovery::pinned_kind(&self.client, &wanted).await.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 404 => unknown(group, api_version, kind),
                kube::Error::Discovery(_) => unknown(group, api_version, kind),
                other => self.failed(format!("cannot ask for {kind}"), other),
            })?;
        let namespace = match capabilities.scope {
            Scope::Cluster => None,
            Scope::Namespaced => {
                Some(text("/metadata/namespace").unwrap_or(&self.namespace).to_owned())
            }
        };
        Ok(Target {
            api: self.api(&resource, namespace.as_deref()),
            kind: kind.to_owned(),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            namespace,
        })
    }

    /// The objects of a kind in a namespace, or in all.
    pub(super) fn api(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }
}

impl Target {
    fn shown(&self) -> String {
        let Self { kind, name, .. } = self;
        match &self.namespace {
            Some(namespace) => format!("{kind} {name} in namespace {namespace}"),
            None => format!("{kind} {name}"),
        }
    }

    fn applied(&self, object: DynamicObject, change: Change) -> Applied {
        Applied {
            kind: self.kind.clone(),
            name: object.metadata.name.clone().unwrap_or_default(),
            namespace: self.namespace.clone(),
            change,
            object: serde_json::to_value(&object).unwrap_or_default(),
        }
    }
}

/// A kind that the cluster does not know.
fn unknown(group: &str, api_version: &str, kind: &str) -> Error {
    let message = format!("the cluster does not know {kind} ({api_version})");
    let hint = if OURS.contains(&group) {
        "no Unisono operator is installed there: `unisono operator install` does it"
    } else {
        "install what defines it, or take the object out of the file"
    };
    Error::Run { message, hint: Some(hint.to_owned()), source: None }
}
