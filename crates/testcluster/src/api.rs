//! Plain requests to the API server: paths and JSON, as the cluster's administrator.
//!
//! The tests of the operator bring a typed client of their own; this one starts clusters, and
//! makes and counts things.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::certificates::Identity;
use crate::namespaces::Walls;
use crate::network;

/// A client of one cluster's API server, for use from anywhere on the machine.
#[derive(Clone, Debug)]
pub struct Api {
    walls: Walls,
    agent: Agent,
}

impl Api {
    pub(crate) fn new(walls: Walls, authority: &str, identity: &Identity) -> anyhow::Result<Self> {
        let authority =
            Certificate::from_pem(authority.as_bytes()).context("read the authority")?;
        let certificate =
            Certificate::from_pem(identity.certificate.as_bytes()).context("read a certificate")?;
        let key = PrivateKey::from_pem(identity.key.as_bytes()).context("read a key")?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[authority]))
            .client_cert(Some(ClientCert::new_with_certs(&[certificate], key)))
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .proxy(None)
            .build()
            .new_agent();
        Ok(Self { walls, agent })
    }

    /// Reads what is at a path; text that is not JSON comes back as a string.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.request(Method::GET, path, "", None)
    }

    /// Creates an object in a collection.
    pub fn create(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        self.request(Method::POST, path, "application/json", Some(object))
    }

    /// Changes the given fields of an object.
    pub fn merge(&self, path: &str, fields: &Value) -> anyhow::Result<Value> {
        let kind = "application/merge-patch+json";
        self.request(Method::PATCH, path, kind, Some(fields))
    }

    /// Deletes an object or a whole collection.
    pub fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.request(Method::DELETE, path, "", None)
    }

    /// Reads what is at a path, or nothing where nothing is.
    pub fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.send(Method::GET, path, "", None)? {
            (404, _) => Ok(None),
            (status, body) => answer(&Method::GET, path, status, body).map(Some),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let (status, value) = self.send(method.clone(), path, kind, body)?;
        answer(&method, path, status, value)
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let url = format!("{}{path}", network::api_url());
        let request = Request::builder()
            .method(method)
            .uri(&url)
            .header("content-type", kind)
            .body(body.map(Value::to_string).unwrap_or_default())
            .context("build a request")?;
        // Connections are made in the network of the thread that asks.
        let mut response = self.walls.inside(|| {
            let sent = self.agent.run(request);
            sent.with_context(|| format!("ask {url}"))
        })?;
        let value =
            read(response.body_mut()).with_context(|| format!("read the answer of {url}"))?;
        Ok((response.status().as_u16(), value))
    }
}

fn read(body: &mut Body) -> anyhow::Result<Value> {
    // A list of 10,000 pods is larger than what is read by default.
    let text = body.with_config().limit(1 << 30).read_to_string()?;
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn answer(method: &Method, path: &str, status: u16, body: Value) -> anyhow::Result<Value> {
    if status < 300 {
        return Ok(body);
    }
    let message = body["message"].as_str().map(str::to_owned);
    bail!("{method} {path}: {status} {}", message.unwrap_or_else(|| body.to_string()))
}
