//! Being an operator: a client and options enter, jobs are run until somebody asks to stop.
//!
//! One thread. Watches fill a [`World`](world::World), which tells which jobs may have changed; a [`Queue`](queue::Queue) hands
//! each out once; a look at a job is a future, and many are under way at once. Nothing here decides: that is `plan`'s.

mod controller;
mod events;
mod fresh;
mod gang;
mod key;
mod known;
mod lease;
mod memory;
mod metrics;
mod queue;
mod refusal;
mod serve;
mod shelf;
mod work;
mod world;

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;

use controller::Controller;
use lease::Lease;
use serve::Health;

use crate::manifests::NAME;

pub use gang::{Gang, UnknownGang};
pub use lease::LeaseLost;

/// How long looks at jobs may go on after somebody asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// The usual longest look at a job.
pub const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// What an operator is started with.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The only namespace whose jobs it runs; all when absent.
    pub only_namespace: Option<String>,
    /// The image with the agent, for the pods of jobs.
    pub image: String,
    /// When nodes pull it; Kubernetes' own rule when absent.
    pub image_pull_policy: Option<String>,
    /// The cluster's domain.
    pub cluster_domain: Option<String>,
    /// Who places all pods of a job at once.
    pub gang: Gang,
    /// Whether jobs that do not say get a NetworkPolicy that keeps everybody else from their agents.
    pub network_policy: bool,
    /// How long jobs wait for an image that cannot be had; for ever when absent.
    pub image_patience: Option<Duration>,
    /// How job objects are read.
    pub reading: unisono_dialect::Options,
    /// Where to answer for health and metrics.
    pub listen: SocketAddr,
    /// The namespace of the lease, and our name in it; without, no other operator may run.
    pub lease: Option<(String, String)>,
    /// How many jobs are looked at at once.
    pub workers: usize,
    /// The longest look at a job. An API server that never answers must not keep the job from being looked at again; what was
    /// begun is gone on with by the next look, as after a death.
    pub longest_look: Duration,
}

/// Why an operator ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot listen.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The cluster does not answer.
    #[error("the cluster does not say what it serves")]
    Cluster(#[source] Box<kube::Error>),
    /// Another operator works now.
    #[error(transparent)]
    Lease(#[from] LeaseLost),
}

/// Runs jobs until `stop` is ready, finishes what is under way, and gives the lease back.
///
/// # Errors
///
/// When it cannot begin, or must end because another operator works. Whoever started it starts it again.
pub async fn run(
    client: Client,
    options: RunOptions,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let address = options.listen;
    let health = Health::new();
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| RunError::Listen { address, source })?;
    let server = tokio::spawn(serve::serve(listener, health.clone()));
    let mut stop = pin!(stop);
    let mut lease = options.lease.as_ref().map(|(namespace, identity)| {
        Lease::new(client.clone(), namespace, lease_name(&options), identity.clone())
    });
    if let Some(lease) = &mut lease {
        // Standing by is all that a second operator is for.
        health.set_ready(true);
        tracing::info!("standing by for the lease");
        tokio::select! {
            () = lease.acquire() => {}
            () = &mut stop => return Ok(()),
        }
    }
    health.metrics.leader.set(1);
    let mut controller = None;
    let ended = tokio::select! {
        ended = work(&mut controller, client, options, health) => ended,
        lost = kept(lease.as_mut()) => Err(RunError::from(lost)),
        () = &mut stop => Ok(()),
    };
    if let (Ok(()), Some(controller)) = (&ended, &mut controller) {
        tracing::info!("ending");
        controller.finish(GRACE).await;
    }
    // One that is lost is somebody else's.
    if let (Some(lease), Ok(()) | Err(RunError::Cluster(_) | RunError::Listen { .. })) =
        (&mut lease, &ended)
    {
        lease.release().await;
    }
    server.abort();
    ended
}

/// Runs jobs for ever. The controller stays with the caller, who may cut this short.
async fn work(
    place: &mut Option<Controller>,
    client: Client,
    options: RunOptions,
    health: Arc<Health>,
) -> Result<(), RunError> {
    let controller = place.insert(Controller::new(client, options, health).await?);
    tracing::info!("working");
    controller.run().await;
    Ok(())
}

/// Operators of different namespaces may live in the same one, and do not stand by for each other.
fn lease_name(options: &RunOptions) -> String {
    match &options.only_namespace {
        Some(namespace) => format!("{NAME}-{namespace}"),
        None => NAME.to_owned(),
    }
}

async fn kept(lease: Option<&mut Lease>) -> LeaseLost {
    match lease {
        Some(lease) => lease.keep().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A server that has a lease and nothing else, and the names that were written into the lease.
    fn server() -> (Client, Arc<Mutex<Vec<String>>>) {
        let holders = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&holders);
        let service = tower::service_fn(move |request: Request<Body>| {
            let written = Arc::clone(&written);
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = request.into_body().collect_bytes().await?;
                let mut lease: Value = serde_json::from_slice(&body).unwrap_or_default();
                let failure = |code: u16| {
                    let reason = if code == 404 { "NotFound" } else { "InternalError" };
                    (
                        code,
                        json!({"kind": "Status", "code": code, "reason": reason, "message": "x"}),
                    )
                };
                let (code, answer) = match (path.contains("/leases"), method) {
                    (true, Method::GET) => failure(404),
                    (true, _) => {
                        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                        written.lock().unwrap().push(holder.to_owned());
                        lease["metadata"]["resourceVersion"] = json!("1");
                        (200, lease)
                    }
                    (false, _) => failure(500),
                };
                let response = Response::builder().status(code);
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(response.body(body).expect("it is a response"))
            }
        });
        (Client::new(service, "home"), holders)
    }

    #[tokio::test]
    async fn an_operator_that_cannot_begin_gives_the_lease_back() {
        let (client, holders) = server();
        let options = RunOptions {
            only_namespace: None,
            image: "x".to_owned(),
            image_pull_policy: None,
            cluster_domain: None,
            gang: Gang::Auto,
            network_policy: false,
            image_patience: None,
            reading: unisono_dialect::Options::default(),
            listen: ([127, 0, 0, 1], 0).into(),
            lease: Some(("home".to_owned(), "we".to_owned())),
            workers: 1,
            longest_look: Duration::from_secs(60),
        };
        let ended = run(client, options, pending()).await;
        assert!(matches!(ended, Err(RunError::Cluster(_))), "{ended:?}");
        assert_eq!(*holders.lock().unwrap(), ["we", ""]);
    }
}
