//! Events: what happened to a job enters, objects that `kubectl describe` shows leave.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time as ApiTime};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use unisono_k8s::{JobObject, Resource};
use unisono_plan::Time;
use unisono_plan::conditions::Happening;

/// Who tells; operators before this one called themselves so, and dashboards filter by it.
const COMPONENT: &str = "mpi-job-controller";

/// Tells what happened, in order. An event that is refused is not told again: the status has it.
pub(crate) async fn tell(
    client: &Client,
    object: &JobObject,
    resource: Option<&Resource>,
    happenings: &[Happening],
    now: Time,
) {
    let api: Api<Event> = Api::namespaced(client.clone(), object.namespace());
    for happening in happenings {
        let event = match event(object, resource, happening, now) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "no event can be named");
                continue;
            }
        };
        if let Err(error) = api.create(&PostParams::default(), &event).await {
            tracing::warn!(%error, job = object.name(), "an event was not told");
        }
    }
}

fn event(
    object: &JobObject,
    resource: Option<&Resource>,
    happening: &Happening,
    now: Time,
) -> Result<Event, unisono_engine::mint::MintError> {
    let text = |pointer: &str| object.as_json().pointer(pointer)?.as_str().map(str::to_owned);
    let millisecond = i64::try_from(now.0).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millisecond).ok().map(ApiTime);
    let id = unisono_engine::mint::id()?;
    Ok(Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{}", object.name(), &id[..16])),
            namespace: Some(object.namespace().to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            // The version it was written in, not the one it is watched in.
            api_version: resource.map(Resource::api_version).or_else(|| text("/apiVersion")),
            kind: text("/kind"),
            name: Some(object.name().to_owned()),
            namespace: Some(object.namespace().to_owned()),
            uid: Some(object.uid().to_owned()),
            resource_version: object.resource_version().map(str::to_owned),
            ..ObjectReference::default()
        },
        type_: Some(if happening.is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(happening.reason.clone()),
        message: Some(happening.message.clone()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        reporting_component: Some(COMPONENT.to_owned()),
        count: Some(1),
        first_timestamp: time.clone(),
        last_timestamp: time,
        ..Event::default()
    })
}
