//! The way to an API server: a configuration enters, a client leaves whose requests share one connection.
//!
//! The client that `kube` makes by itself opens a connection for each request under way. A job's start is a burst of requests,
//! and both sides would have to agree on keys for each of them.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt, DynBody};
use kube::{Client, Config, Error};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::retry::RetryLayer;
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

/// A server that says nothing for so long is asked whether it is still there, and has so long to say so: all watches depend on
/// one connection.
const SILENCE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(15);

/// So many requests for jobs are under way at once, whichever job they are for; the others wait their turn. More make nothing faster, and
/// an API server that is kept too busy cuts watches, on which everything depends.
const AT_ONCE: usize = 32;

/// What sends requests.
pub type Service = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// A client for the cluster of a configuration, as `kube` makes it but for the connection.
///
/// # Errors
///
/// When the configuration names certificates, keys or names that cannot be used.
pub fn connect(config: Config) -> Result<ClientBuilder<Service>, Error> {
    if config.proxy_url.is_some() {
        return ClientBuilder::try_from(config);
    }
    let client: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(SILENCE)
        .http2_keep_alive_timeout(ANSWER)
        .build(connector(&config)?);
    let retry = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client)
        .map_response(|response: Response<_>| {
            response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        });
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace.clone()))
}

/// The same client for whoever writes much: its requests wait for each other, so that those of others (leases, watches) never do.
pub fn limited(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let limit = GlobalConcurrencyLimitLayer::new(AT_ONCE);
    let send = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(ServiceBuilder::new().layer(limit).service(send), namespace)
}

/// Connects, and agrees on the version of HTTP: 2 with every API server, 1 with a proxy that knows no better.
fn connector(config: &Config) -> Result<TimeoutConnector<HttpsConnector<HttpConnector>>, Error> {
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_nodelay(true);
    let mut secure = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|error| Error::Service(Box::new(error)))?;
        secure = secure.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let secure = secure.enable_all_versions().wrap_connector(plain);
    let mut patient = TimeoutConnector::new(secure);
    patient.set_connect_timeout(config.connect_timeout);
    patient.set_read_timeout(config.read_timeout);
    patient.set_write_timeout(config.write_timeout);
    patient.set_reset_reader_on_write(config.reset_reader_on_write);
    Ok(patient)
}
