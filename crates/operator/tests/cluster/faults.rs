//! Faults between the operator and the API server that no cluster produces on demand: calls that fail by a seeded pattern, and
//! a death of the whole process right before or right after one of its writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::{Body, DynBody};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service};

use crate::operator::end_at_once;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Faults {
    /// Which calls fail, and how.
    pub(crate) seed: u64,
    /// One call in so many fails; none for 0.
    pub(crate) one_in: u64,
    /// Whether a look at a job called [`DOOMED`] panics.
    pub(crate) panics: bool,
    /// When the process dies.
    pub(crate) death: Option<Death>,
}

/// A death, counted by the writes of a process. The lease does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Death {
    Before(u64),
    After(u64),
}

/// How a process ends that dies by a [`Death`].
pub(crate) const DEAD: i32 = 9;

/// The name of a job that nobody can look at without a panic, where that is asked for.
pub(crate) const DOOMED: &str = "doomed";

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Fate {
    Passes,
    /// The server says no.
    Refused(StatusCode),
    /// It never reaches the server.
    Cut,
    /// It is done, and nobody hears of it.
    Unheard,
    /// A watch begins, and what it was to go on from is gone.
    Gone,
}

impl Faults {
    /// The fate of the call with this number.
    fn fate(self, call: u64, is_watch: bool) -> Fate {
        let dice = scramble(self.seed.wrapping_mul(1_000_003).wrapping_add(call));
        if self.one_in == 0 || !dice.is_multiple_of(self.one_in) {
            return Fate::Passes;
        }
        match scramble(dice) % 6 {
            _ if is_watch && dice & (1 << 40) != 0 => Fate::Gone,
            0 => Fate::Refused(StatusCode::CONFLICT),
            1 => Fate::Refused(StatusCode::TOO_MANY_REQUESTS),
            2 => Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR),
            3 => Fate::Refused(StatusCode::GATEWAY_TIMEOUT),
            4 => Fate::Cut,
            _ => Fate::Unheard,
        }
    }
}

/// A number that has nothing to do with its neighbours'.
const fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The layer that makes a client faulty.
#[derive(Clone)]
pub(crate) struct Faulty {
    faults: Faults,
    calls: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Faulty {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, calls: Arc::default(), writes: Arc::default() }
    }
}

pub(crate) struct Disturbed<S> {
    inner: S,
    faulty: Faulty,
}

impl<S> Layer<S> for Faulty {
    type Service = Disturbed<S>;

    fn layer(&self, inner: S) -> Disturbed<S> {
        Disturbed { inner, faulty: self.clone() }
    }
}

type Answer = Response<Box<DynBody>>;

impl<S> Service<Request<Body>> for Disturbed<S>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Faulty { faults, calls, writes } = &self.faulty;
        let path = request.uri().path_and_query().map_or("", |it| it.as_str());
        let counts = request.method() != Method::GET && !path.contains("/leases");
        let write = if counts { writes.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let fate = faults.fate(calls.fetch_add(1, Ordering::SeqCst), path.contains("watch="));
        if faults.panics && path.contains(DOOMED) {
            // In the look that waits for the answer, not in the client that all looks share.
            return async { panic!("a fault of the test") }.boxed();
        }
        let death = faults.death.filter(|_| write > 0);
        if death == Some(Death::Before(write)) {
            end_at_once(DEAD);
        }
        match fate {
            Fate::Passes => {
                let sent = self.inner.call(request);
                async move {
                    let answer = sent.await;
                    if death == Some(Death::After(write)) {
                        end_at_once(DEAD);
                    }
                    answer
                }
                .boxed()
            }
            Fate::Refused(status) => async move { refusal(status) }.boxed(),
            Fate::Cut => async { Err("the connection was cut".into()) }.boxed(),
            Fate::Unheard => {
                let sent = self.inner.call(request);
                async move {
                    sent.await?;
                    Err("the answer was lost".into())
                }
                .boxed()
            }
            Fate::Gone => async {
                answer(StatusCode::OK, &json!({"type": "ERROR", "object": told(StatusCode::GONE)}))
            }
            .boxed(),
        }
    }
}

fn refusal(status: StatusCode) -> Result<Answer, BoxError> {
    let mut refusal = answer(status, &told(status))?;
    if status == StatusCode::TOO_MANY_REQUESTS {
        refusal.headers_mut().insert(http::header::RETRY_AFTER, 1.into());
    }
    Ok(refusal)
}

/// What an API server says with a status.
fn told(status: StatusCode) -> Value {
    let reason = match status {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        StatusCode::GONE => "Expired",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a fault of the test", "reason": reason, "code": status.as_u16(),
    })
}

fn answer(status: StatusCode, body: &Value) -> Result<Answer, BoxError> {
    let body = Body::from(format!("{body}\n").into_bytes()).map_err(BoxError::from);
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Box::new(body) as Box<DynBody>)?)
}
