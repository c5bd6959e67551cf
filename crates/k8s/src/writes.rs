//! Single requests: create, change, delete one object. What is already so is fine; what belongs to somebody else is left alone.

use http::{HeaderValue, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    Preconditions, PropagationPolicy,
};
use kube::core::{ObjectMeta, Request, request};
use kube::{Client, Resource as _};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::children::Before;
use crate::marks;
use crate::render::Owner;
use crate::slim::{Job, Pod, without_managed_fields};

/// Why an object was not made, changed or deleted.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The API server did not answer, or did not want to.
    #[error("{verb} {kind} {name}")]
    Request {
        /// What was tried.
        verb: &'static str,
        /// The kind of object.
        kind: String,
        /// Its name.
        name: String,
        /// What the server said.
        source: Box<kube::Error>,
    },
    /// The name is taken by an object of somebody else.
    #[error("{kind} {name} already exists and belongs to somebody else")]
    Foreign {
        /// The kind of object.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The name is still taken by an object of an earlier job of the same name.
    #[error("{kind} {name} of an earlier job of this name is still being removed")]
    Predecessor {
        /// The kind of object.
        kind: String,
        /// Its name.
        name: String,
    },
}

impl WriteError {
    /// The one word that events have for it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Request { .. } => "FailedWrite",
            Self::Foreign { .. } => "ErrResourceExists",
            Self::Predecessor { .. } => "WaitingForPredecessor",
        }
    }

    /// Whether the API server understood the request and refused it, so that the same again is refused again.
    pub fn is_refused(&self) -> bool {
        let Self::Request { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422))
    }
}

/// What became of a wish to create.
pub(crate) enum Creation {
    /// It was made.
    Made(Box<ObjectMeta>),
    /// It was there already, as ours.
    Known,
}

/// Writes objects of one job in its namespace.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'job> {
    pub(crate) client: &'job Client,
    pub(crate) namespace: &'job str,
    pub(crate) owner: &'job Owner,
}

impl Writer<'_> {
    /// Creates an object from its raw JSON; its metadata leaves, as the API server completed it.
    pub(crate) async fn create(
        &self,
        api: &ApiResource,
        object: &Value,
    ) -> Result<Creation, WriteError> {
        let name = text(object, "/metadata/name");
        let fault = |source| fault("create", &api.kind, name, source);
        let body =
            serde_json::to_vec(object).map_err(|error| fault(kube::Error::SerdeError(error)))?;
        let parameters = PostParams {
            field_manager: Some(marks::FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let request = self.requests(api).create(&parameters, body);
        match metadata_of::<Made>(self.client, request).await {
            Ok(made) => Ok(Creation::Made(Box::new(made.metadata))),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.known(api, object).await
            }
            Err(error) => Err(fault(error)),
        }
    }

    /// Looks whose an object is that stands in our way, at its metadata only.
    async fn known(&self, api: &ApiResource, wanted: &Value) -> Result<Creation, WriteError> {
        let (kind, name) = (api.kind.clone(), text(wanted, "/metadata/name").to_owned());
        let found = self.objects(api).get_metadata_opt(&name).await;
        let Some(found) = found.map_err(|source| fault("get", &api.kind, &name, source))? else {
            return Err(WriteError::Predecessor { kind, name });
        };
        if self.is_owned(&found.metadata) {
            return Ok(Creation::Known);
        }
        // Who owns it has the name of an owner of ours, and is another one: it is gone, and what it owned follows. A
        // launcher's pod may by then name its Job alone, because the garbage collector strikes out owners one by one.
        let ours = wanted.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_ours = |it: &OwnerReference| {
            let has = |owner: &Value| owner["kind"] == it.kind && owner["name"] == it.name;
            ours.is_some_and(|ours| ours.iter().any(has))
        };
        let owners = found.metadata.owner_references.as_deref().unwrap_or_default();
        let of_predecessor = owners.iter().any(is_ours);
        if of_predecessor || found.metadata.deletion_timestamp.is_some() {
            return Err(WriteError::Predecessor { kind, name });
        }
        Err(WriteError::Foreign { kind, name })
    }

    /// Merges changes into an object; one that is gone needs none.
    pub(crate) async fn patch(
        &self,
        api: &ApiResource,
        name: &str,
        part: Part,
        changes: &Value,
    ) -> Result<(), WriteError> {
        let (requests, patch) = (self.requests(api), Patch::Merge(changes));
        let request = match part {
            Part::Whole => requests.patch(name, &parameters(), &patch),
            Part::Status => requests.patch_subresource("status", name, &parameters(), &patch),
        };
        match metadata_of::<IgnoredAny>(self.client, request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(source) => Err(fault("change", &api.kind, name, source)),
        }
    }

    /// Merges changes into a pod; how it was before leaves if that changed it. One that is gone needs no change.
    pub(crate) async fn change(
        &self,
        pod: &Pod,
        changes: &Value,
    ) -> Result<Option<Before>, WriteError> {
        let requests = Request::new(Pod::url_path(&(), Some(self.namespace)));
        let request = requests.patch(pod.name(), &parameters(), &Patch::Merge(changes));
        match metadata_of::<Made>(self.client, request).await {
            Ok(now) => {
                let (before, now) = (Before::of(pod), Before::of_metadata(&now.metadata));
                Ok(Some(before).filter(|before| *before != now))
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(source) => Err(fault("change", "Pod", pod.name(), source)),
        }
    }

    /// Deletes exactly this object; one that is gone, or another by now, is none of our business.
    pub(crate) async fn delete(
        &self,
        api: &ApiResource,
        name: &str,
        uid: Option<String>,
        haste: Haste,
    ) -> Result<(), WriteError> {
        match self.delete_unseen(api, name, uid, haste).await {
            Err(WriteError::Request { source, .. }) if is_conflict(&source) => Ok(()),
            done => done,
        }
    }

    /// Deletes exactly this object, where no later look would see that it is still there: a conflict is a fault.
    pub(crate) async fn delete_unseen(
        &self,
        api: &ApiResource,
        name: &str,
        uid: Option<String>,
        haste: Haste,
    ) -> Result<(), WriteError> {
        let parameters = DeleteParams {
            grace_period_seconds: match haste {
                Haste::Usual => None,
                Haste::AtOnce => Some(0),
            },
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None }),
            ..DeleteParams::default()
        };
        let request = self.requests(api).delete(name, &parameters);
        match metadata_of::<IgnoredAny>(self.client, request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(source) => Err(fault("delete", &api.kind, name, source)),
        }
    }

    /// Deletes every object that is selected, each after its own grace.
    pub(crate) async fn delete_all(
        &self,
        api: &ApiResource,
        selected: &Selected,
    ) -> Result<(), WriteError> {
        let fault = |source| fault("delete", &api.kind, &selected.labels, source);
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let mut list = ListParams::default().labels(&selected.labels);
        if let Some(fields) = selected.fields {
            list = list.fields(fields);
        }
        let request = self.requests(api).delete_collection(&parameters, &list);
        answer::<IgnoredAny>(self.client, request, METADATA_OF_ALL).await.map(drop).map_err(fault)
    }

    /// Whose an object is, at its metadata only: its uid where it is the job's.
    pub(crate) async fn own_uid(
        &self,
        api: &ApiResource,
        name: &str,
    ) -> Result<Option<String>, WriteError> {
        let found = self.objects(api).get_metadata_opt(name).await;
        let found = found.map_err(|source| fault("get", &api.kind, name, source))?;
        Ok(found.map(|it| it.metadata).filter(|it| self.is_owned(it)).and_then(|it| it.uid))
    }

    fn is_owned(&self, metadata: &ObjectMeta) -> bool {
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|it| it.uid == self.owner.uid)
    }

    /// The launcher Job of that name, read as far as anybody here looks at it.
    pub(crate) async fn job(&self, name: &str) -> Result<Option<Job>, WriteError> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        jobs.get_opt(name).await.map_err(|source| fault("get", "Job", name, source))
    }

    fn objects(&self, api: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, api)
    }

    fn requests(&self, api: &ApiResource) -> Request {
        Request::new(DynamicObject::url_path(api, Some(self.namespace)))
    }
}

/// What is read of an object that was made or changed.
#[derive(Deserialize)]
struct Made {
    #[serde(deserialize_with = "without_managed_fields")]
    metadata: ObjectMeta,
}

/// Asks for no more than the metadata of an object.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Asks for no more than the metadata of all objects of a list.
const METADATA_OF_ALL: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Sends a request whose answer would be the whole object, which nobody reads; so let it be short.
async fn metadata_of<K: DeserializeOwned>(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, request::Error>,
) -> Result<K, kube::Error> {
    answer(client, request, METADATA).await
}

async fn answer<K: DeserializeOwned>(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, request::Error>,
    form: &'static str,
) -> Result<K, kube::Error> {
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(form));
    client.request(request).await
}

/// Objects of a kind, by what they have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// Their labels.
    pub(crate) labels: String,
    /// Their fields, where it depends on them, too.
    pub(crate) fields: Option<&'static str>,
}

/// Which part of an object is changed.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Whole,
    Status,
}

/// How soon something is to be gone.
#[derive(Clone, Copy)]
pub(crate) enum Haste {
    /// After its own grace.
    Usual,
    /// Now: nobody is there to end it gracefully.
    AtOnce,
}

pub(crate) fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(marks::FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn text<'object>(object: &'object Value, pointer: &str) -> &'object str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn fault(verb: &'static str, kind: &str, name: &str, source: kube::Error) -> WriteError {
    let (kind, name) = (kind.to_owned(), name.to_owned());
    WriteError::Request { verb, kind, name, source: Box::new(source) }
}
