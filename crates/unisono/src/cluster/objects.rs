//! Objects on their way to a cluster: applied as kubectl does it, made, removed.

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
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

/// After how many looks it is told that an object takes its time: two seconds.
const TELL: u32 = 20;

/// After how many looks an object does not go: five minutes, which is longer than pods are usually given to end.
const GIVE_UP: u32 = 3000;

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
    /// Applies an object by server-side apply, as kubectl does: fields that somebody else set are not taken over. One that
    /// leaves its name to the server is made.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Applied, Error> {
        let target = self.target(object).await?;
        if target.name.is_empty() {
            return self.create_at(&target, object).await;
        }
        let refused = |error| self.failed(format!("{} is not applied", target.shown()), error);
        let before = target.api.get_opt(&target.name).await.map_err(refused)?;
        let parameters = PatchParams::apply(MANAGER);
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
        let made = target.api.create(&PostParams::default(), &parsed(target, object)?).await;
        match made {
            Ok(made) => Ok(target.applied(made, Change::Created)),
            Err(error) if is_there(&error) => Err(there_already(
                target,
                "--replace removes it first; or give the new one another name",
            )),
            Err(error) => Err(self.failed(format!("{} is not made", target.shown()), error)),
        }
    }

    /// Makes an object that belongs to one which is new. What an earlier owner of the same name left makes way; what is
    /// anybody else's is not touched.
    pub(crate) async fn create_owned(&self, object: &Value) -> Result<(), Error> {
        let target = self.target(object).await?;
        let failed = |error| self.failed(format!("{} is not made", target.shown()), error);
        let parsed = parsed(&target, object)?;
        for _ in 0..GIVE_UP {
            match target.api.create(&PostParams::default(), &parsed).await {
                Ok(_) => return Ok(()),
                Err(error) if is_there(&error) => {}
                Err(error) => return Err(failed(error)),
            }
            let Some(found) = target.api.get_opt(&target.name).await.map_err(failed)? else {
                continue;
            };
            if !is_of_the_same_name(&found, &parsed) {
                let hint = "it is not the job's: give the job another name, or remove it";
                return Err(there_already(&target, hint));
            }
            let stale = Preconditions { uid: found.metadata.uid, resource_version: None };
            let parameters =
                DeleteParams { preconditions: Some(stale), ..DeleteParams::background() };
            match target.api.delete(&target.name, &parameters).await {
                // Somebody was faster: the cluster itself, most likely.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                gone => drop(gone.map_err(failed)?),
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(there_already(&target, "an earlier job's, which does not go: see its finalizers"))
    }

    /// Removes an object and what it owns, and waits until it is gone; nothing leaves when there was none. When it takes its
    /// time, that is told once.
    pub(crate) async fn remove(
        &self,
        object: &Value,
        mut tell: impl FnMut(&str),
    ) -> Result<Option<Applied>, Error> {
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
        for look in 0.. {
            let still = target.api.get_opt(&target.name).await.map_err(failed)?;
            let Some(still) = still.filter(|it| it.metadata.uid == known.metadata.uid) else {
                break;
            };
            if look == TELL {
                tell(&format!("waiting until {} and its pods are gone", target.shown()));
            } else if look == GIVE_UP {
                return Err(stays(&target, &still));
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
        let change = json!({"metadata": {"annotations": {name: value}}});
        self.merge(object, &change).await.map(drop)
    }

    /// Changes some fields of an object.
    pub(crate) async fn merge(&self, object: &Value, change: &Value) -> Result<Applied, Error> {
        let target = self.target(object).await?;
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let changed = target.api.patch(&target.name, &parameters, &Patch::Merge(change)).await;
        let changed = changed
            .map_err(|error| self.failed(format!("{} is not changed", target.shown()), error))?;
        Ok(target.applied(changed, Change::Changed))
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

fn parsed(target: &Target, object: &Value) -> Result<DynamicObject, Error> {
    serde_json::from_value(object.clone())
        .map_err(|error| Error::run(format!("{} is no object", target.shown()), error))
}

fn is_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}

fn there_already(target: &Target, hint: &str) -> Error {
    let message = format!("{} is there already", target.shown());
    Error::Run { message, hint: Some(hint.to_owned()), source: None }
}

/// Whether two objects belong to owners of the same kind and name, be it another owner.
fn is_of_the_same_name(left: &DynamicObject, right: &DynamicObject) -> bool {
    let owner = |object: &DynamicObject| {
        let owners = object.metadata.owner_references.as_ref()?;
        owners.first().map(|owner| (owner.kind.clone(), owner.name.clone()))
    };
    owner(left).is_some() && owner(left) == owner(right)
}

/// An object that does not go.
fn stays(target: &Target, object: &DynamicObject) -> Error {
    let holders = object.metadata.finalizers.clone().unwrap_or_default();
    Error::Run {
        message: format!("{} is still there, held by {}", target.shown(), holders.join(", ")),
        hint: Some(
            "see what its pods wait for: `kubectl get pods`; or choose another name".to_owned(),
        ),
        source: None,
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
