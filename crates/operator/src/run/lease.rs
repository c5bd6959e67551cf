//! The lease that says which of several operators works. It is given back on the way out, so that the next one starts at
//! once; it runs out when its holder dies.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as LeaseObject, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tokio::time::{Instant, sleep};

/// How long a holder that is silent counts as alive.
const DURATION: Duration = Duration::from_secs(15);
/// How often the holder speaks.
const RENEW: Duration = Duration::from_secs(5);
/// How often the others look.
const LOOK: Duration = Duration::from_secs(2);

/// One operator's claim.
#[derive(Debug)]
pub(crate) struct Lease {
    api: Api<LeaseObject>,
    name: String,
    identity: String,
    /// The object as last written; its version guards the next write.
    held: Option<LeaseObject>,
    /// What the lease said when we last saw it change, and when by our own clock: that of its holder may be wrong.
    seen: Option<(String, Instant)>,
}

/// The lease was lost.
#[derive(Debug, thiserror::Error)]
#[error("another operator has the lease, or it could not be renewed in time")]
pub struct LeaseLost;

impl Lease {
    pub(crate) fn new(client: Client, namespace: &str, name: String, identity: String) -> Self {
        Self { api: Api::namespaced(client, namespace), name, identity, held: None, seen: None }
    }

    /// Waits until the lease is ours.
    pub(crate) async fn acquire(&mut self) {
        loop {
            match self.try_acquire().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the lease cannot be read or written"),
            }
            sleep(LOOK).await;
        }
    }

    /// Renews it for ever; ends when it is lost.
    pub(crate) async fn keep(&mut self) -> LeaseLost {
        let mut renewed = Instant::now();
        loop {
            sleep(RENEW).await;
            match self.write(&self.identity.clone()).await {
                Ok(()) => renewed = Instant::now(),
                Err(Error::Api(status)) if status.code == 409 => return LeaseLost,
                Err(error) => tracing::warn!(%error, "the lease was not renewed"),
            }
            if renewed.elapsed() > DURATION.saturating_sub(RENEW) {
                return LeaseLost;
            }
        }
    }

    /// Gives it back, if it is ours.
    pub(crate) async fn release(&mut self) {
        if self.held.is_some()
            && let Err(error) = self.write("").await
        {
            tracing::warn!(%error, "the lease was not given back; it runs out by itself");
        }
    }

    async fn try_acquire(&mut self) -> Result<bool, Error> {
        let Some(found) = self.api.get_opt(&self.name).await? else {
            self.held = None;
            return self.taken().await;
        };
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let said = format!("{holder} {:?}", spec.renew_time);
        let unchanged = match &self.seen {
            Some((known, since)) if *known == said => since.elapsed(),
            _ => {
                self.seen = Some((said, Instant::now()));
                Duration::ZERO
            }
        };
        let free = holder.is_empty() || holder == self.identity || unchanged > DURATION;
        if !free {
            return Ok(false);
        }
        self.held = Some(found);
        self.taken().await
    }

    /// Writes our name; somebody else may have been faster.
    async fn taken(&mut self) -> Result<bool, Error> {
        match self.write(&self.identity.clone()).await {
            Ok(()) => Ok(true),
            Err(Error::Api(status)) if status.code == 409 => {
                self.held = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn write(&mut self, holder: &str) -> Result<(), Error> {
        let now = MicroTime(Timestamp::now());
        let old = self.held.as_ref().and_then(|it| it.spec.clone()).unwrap_or_default();
        let moves = old.holder_identity.as_deref() != Some(holder);
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            renew_time: Some(now.clone()),
            acquire_time: if moves { Some(now) } else { old.acquire_time },
            lease_transitions: Some(old.lease_transitions.unwrap_or(0) + i32::from(moves)),
            ..LeaseSpec::default()
        };
        let parameters = PostParams::default();
        let written = match &self.held {
            Some(held) => {
                let lease = LeaseObject { metadata: held.metadata.clone(), spec: Some(spec) };
                self.api.replace(&self.name, &parameters, &lease).await?
            }
            None => {
                let metadata =
                    ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                self.api.create(&parameters, &LeaseObject { metadata, spec: Some(spec) }).await?
            }
        };
        self.held = Some(written);
        Ok(())
    }
}
