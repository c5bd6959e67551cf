//! The lease that says which of several operators works. It is given back on the way out, so that the next one starts at
//! once; it runs out when its holder dies.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as LeaseObject, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tokio::time::{Instant, sleep, timeout};

/// How fast holders speak and others lose patience.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// How long a holder that is silent counts as alive.
    duration: Duration,
    /// How often the holder speaks.
    renew: Duration,
    /// How often the others look.
    look: Duration,
}

const PACE: Pace = Pace {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(5),
    look: Duration::from_secs(2),
};

/// One operator's claim.
#[derive(Debug)]
pub(crate) struct Lease {
    api: Api<LeaseObject>,
    name: String,
    identity: String,
    pace: Pace,
    /// The object as last written; its version guards the next write.
    held: Option<LeaseObject>,
    /// When it was last written as ours.
    renewed: Instant,
    /// What the lease said when we last saw it change, and when by our own clock: that of its holder may be wrong.
    seen: Option<(String, Instant)>,
}

/// The lease was lost.
#[derive(Debug, thiserror::Error)]
#[error("another operator has the lease, or it could not be renewed in time")]
pub struct LeaseLost;

impl Lease {
    pub(crate) fn new(client: Client, namespace: &str, name: String, identity: String) -> Self {
        let api = Api::namespaced(client, namespace);
        let renewed = Instant::now();
        Self { api, name, identity, pace: PACE, held: None, renewed, seen: None }
    }

    /// Waits until the lease is ours.
    pub(crate) async fn acquire(&mut self) {
        loop {
            let begun = Instant::now();
            match self.try_acquire().await {
                Ok(true) => {
                    self.renewed = begun;
                    return;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the lease cannot be read or written"),
            }
            sleep(self.pace.look).await;
        }
    }

    /// Renews it for ever; ends when it is lost.
    pub(crate) async fn keep(&mut self) -> LeaseLost {
        let Pace { duration, renew, .. } = self.pace;
        loop {
            sleep(renew).await;
            let begun = Instant::now();
            // A server that never answers must not keep us from stepping down in time.
            let left = (self.renewed + duration - renew).saturating_duration_since(begun);
            if left.is_zero() {
                return LeaseLost;
            }
            match timeout(left, self.renew()).await {
                Ok(Ok(true)) => self.renewed = begun,
                Ok(Ok(false)) | Err(_) => return LeaseLost,
                Ok(Err(error)) => tracing::warn!(%error, "the lease was not renewed"),
            }
        }
    }

    /// Renews it once; whether it is still ours. It was written by somebody else if not by a renewal of ours whose answer
    /// got lost.
    async fn renew(&mut self) -> Result<bool, Error> {
        match self.write(&self.identity.clone()).await {
            Err(Error::Api(status)) if status.code == 409 => {}
            written => return written.map(|()| true),
        }
        let found = self.api.get(&self.name).await?;
        let holder = found.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if holder != Some(self.identity.as_str()) {
            return Ok(false);
        }
        self.held = Some(found);
        self.taken().await
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
        let free = holder.is_empty() || holder == self.identity || unchanged > self.pace.duration;
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
            lease_duration_seconds: i32::try_from(self.pace.duration.as_secs()).ok(),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// What a server makes of a request.
    enum Answer {
        Never,
        Refused(u16),
        /// The lease, as it is stored, with this holder.
        Lease(&'static str),
    }

    /// A lease of ours on a server that answers one request after the other, and the last answer for ever.
    fn lease(answers: Vec<Answer>) -> (Lease, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let (answers, count) = (Arc::new(answers), Arc::clone(&asked));
        let service = tower::service_fn(move |_request: http::Request<Body>| {
            let (answers, nth) = (Arc::clone(&answers), count.fetch_add(1, Ordering::Relaxed));
            async move {
                let (status, body) = match answers.get(nth).or(answers.last()) {
                    None | Some(Answer::Never) => std::future::pending().await,
                    Some(Answer::Refused(code)) => (
                        *code,
                        json!({"kind": "Status", "code": code, "reason": "x", "message": "x"}),
                    ),
                    Some(Answer::Lease(holder)) => {
                        let spec = json!({"holderIdentity": holder});
                        (
                            200,
                            json!({"metadata": {"name": "lease", "resourceVersion": "1"}, "spec": spec}),
                        )
                    }
                };
                let response = http::Response::builder().status(status);
                response.body(Body::from(body.to_string().into_bytes()))
            }
        });
        let client = Client::new(service, "home");
        let mut lease = Lease::new(client, "home", "lease".to_owned(), "we".to_owned());
        lease.held = Some(LeaseObject::default());
        lease.pace = Pace {
            // Long enough for a machine that does other things, too.
            duration: Duration::from_millis(2000),
            renew: Duration::from_millis(500),
            look: Duration::from_millis(10),
        };
        (lease, asked)
    }

    /// How often a server was asked until the lease was lost.
    async fn requests(answers: Vec<Answer>) -> usize {
        let (mut lease, asked) = lease(answers);
        lease.keep().await;
        asked.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_server_that_never_answers_costs_the_lease() {
        assert_eq!(requests(vec![Answer::Lease("we"), Answer::Never]).await, 2);
    }

    #[tokio::test]
    async fn time_between_taking_the_lease_and_keeping_it_counts() {
        let (mut lease, asked) = lease(vec![Answer::Lease("")]);
        lease.held = None;
        lease.acquire().await;
        let taken = asked.load(Ordering::Relaxed);
        sleep(lease.pace.duration).await;
        lease.keep().await;
        assert_eq!(asked.load(Ordering::Relaxed), taken, "another operator may have it by now");
    }

    #[tokio::test]
    async fn a_server_that_only_fails_costs_the_lease() {
        assert!(requests(vec![Answer::Refused(500)]).await >= 1);
    }

    #[tokio::test]
    async fn a_lease_that_somebody_else_wrote_is_lost_at_once() {
        assert_eq!(requests(vec![Answer::Refused(409), Answer::Lease("they")]).await, 2);
    }

    #[tokio::test]
    async fn a_renewal_whose_answer_was_lost_does_not_cost_the_lease() {
        let we = || Answer::Lease("we");
        assert_eq!(requests(vec![Answer::Refused(409), we(), we(), Answer::Never]).await, 4);
    }
}
