//! Faults between the operator and the API server that no cluster produces on demand: calls that fail by a seeded pattern, watches
//! that never live long, and a death of the whole process right before or right after one of its writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, BodyStream, StreamBody};
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
    /// One call in so many fails, one write is never answered, and one watch finds its beginning gone; nothing for 0.
    pub(crate) one_in: u64,
    /// After so many milliseconds every watch is cut; never for 0.
    pub(crate) watches_live: u64,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Passes,
    /// The server says no.
    Refused(StatusCode),
    /// It never reaches the server.
    Cut,
    /// It is done, and nobody hears of it.
    Unheard,
    /// Nobody ever answers.
    Hangs,
    /// A watch begins, and what it was to go on from is gone.
    Gone,
}

/// What can become of any call, in turns.
const FATES: [Fate; 6] = [
    Fate::Refused(StatusCode::CONFLICT),
    Fate::Refused(StatusCode::TOO_MANY_REQUESTS),
    Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR),
    Fate::Refused(StatusCode::GATEWAY_TIMEOUT),
    Fate::Cut,
    Fate::Unheard,
];

/// How many watches an operator begins with: pods, Jobs, and three kinds of job objects.
const WATCHES: u64 = 5;

/// How many calls fail by the pattern, so that jobs end in a time that tests can wait.
const MOST_FAULTS: u64 = 8;

/// No write before this one is never answered.
const FIRST_TO_HANG: u64 = 3;

impl Fate {
    /// Everything that can go wrong with a call.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        FATES.into_iter().chain([Self::Hangs, Self::Gone])
    }

    /// What the log says when it is met.
    pub(crate) fn told(self) -> String {
        format!("a fault of the test: {self:?}")
    }
}

/// A call, by its place among all calls of the process, among all writes and among all watches; 0 for none.
#[derive(Clone, Copy)]
struct Call {
    number: u64,
    write: u64,
    watch: u64,
}

impl Faulty {
    fn fate(&self, call: Call) -> Fate {
        let Faults { seed, one_in, .. } = self.faults;
        if one_in == 0 {
            return Fate::Passes;
        }
        if call.write == FIRST_TO_HANG + seed {
            return Fate::Hangs;
        }
        if call.watch == 1 + seed % WATCHES {
            return Fate::Gone;
        }
        if !scramble(seed.wrapping_mul(1_000_003).wrapping_add(call.number)).is_multiple_of(one_in)
        {
            return Fate::Passes;
        }
        let faults = self.failed.fetch_add(1, Ordering::SeqCst);
        if faults >= MOST_FAULTS {
            return Fate::Passes;
        }
        let turn = seed.wrapping_mul(2).wrapping_add(faults) % FATES.len() as u64;
        usize::try_from(turn).ok().and_then(|turn| FATES.get(turn)).copied().unwrap_or(Fate::Cut)
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
    watches: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Faulty {
    pub(crate) fn new(faults: Faults) -> Self {
        let (calls, writes, watches, failed) = Default::default();
        Self { faults, calls, writes, watches, failed }
    }

    /// Counts a call.
    fn count(&self, method: &Method, path: &str) -> Call {
        let next = |counter: &AtomicU64| counter.fetch_add(1, Ordering::SeqCst) + 1;
        let is_write = method != Method::GET && !path.contains("/leases");
        Call {
            number: next(&self.calls),
            write: if is_write { next(&self.writes) } else { 0 },
            watch: if path.contains("watch=") { next(&self.watches) } else { 0 },
        }
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
        let faults = self.faulty.faults;
        let path = request.uri().path_and_query().map_or("", |it| it.as_str());
        if faults.panics && path.contains(DOOMED) {
            // In the look that waits for the answer, not in the client that all looks share.
            return async { panic!("a fault of the test") }.boxed();
        }
        let call = self.faulty.count(request.method(), path);
        let death = faults.death.filter(|_| call.write > 0);
        if death == Some(Death::Before(call.write)) {
            end_at_once(DEAD);
        }
        let fate = self.faulty.fate(call);
        if fate != Fate::Passes {
            tracing::warn!("{}", fate.told());
        }
        match fate {
            Fate::Passes => {
                let sent = self.inner.call(request);
                async move {
                    let answer = sent.await;
                    if death == Some(Death::After(call.write)) {
                        end_at_once(DEAD);
                    }
                    match faults.watches_live {
                        lifetime if call.watch > 0 && lifetime > 0 => {
                            answer.map(|it| cut(it, lifetime))
                        }
                        _ => answer,
                    }
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
            Fate::Hangs => futures::future::pending().boxed(),
            Fate::Gone => async {
                answer(StatusCode::OK, &json!({"type": "ERROR", "object": told(StatusCode::GONE)}))
            }
            .boxed(),
        }
    }
}

/// An answer whose connection breaks after so many milliseconds.
fn cut(answer: Answer, lifetime: u64) -> Answer {
    answer.map(|body| {
        let end = tokio::time::sleep(Duration::from_millis(lifetime));
        let fault = stream::once(async { Err(BoxError::from("the watch was cut")) });
        let frames = BodyStream::new(body).take_until(end).chain(fault);
        Box::new(StreamBody::new(frames.boxed())) as Box<DynBody>
    })
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
