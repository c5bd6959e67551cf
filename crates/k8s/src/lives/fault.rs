//! What can go wrong with one request, and the way to the server on which it does.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use kube::Client;
use kube::client::retry::RetryPolicy;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use super::watch::Watch;
use crate::fake::{Answer, Asked, Server, Store, refused};

/// One thing that goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    told: Told,
    /// Whether the server did what was asked for all the same.
    is_done: bool,
    /// Whether the client asks again by itself, as `connect`'s does where a server is busy.
    is_retried: bool,
    /// Whether the next look still sees pods and Jobs as they were before this one, as a watch that lags shows them.
    pub(super) is_seen_late: bool,
}

/// What whoever asked learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nothing: the process is dead, and asks for nothing more.
    Death,
    /// That there was no answer in time. The process goes on.
    Silence,
    /// A refusal.
    Code(u16, &'static str),
}

impl Fault {
    const fn new(told: Told, is_done: bool) -> Self {
        Self { told, is_done, is_retried: false, is_seen_late: false }
    }

    /// Everything that can go wrong with such a request.
    pub(super) fn all(asked: &Asking) -> Vec<Self> {
        let busy = Told::Code(429, "TooManyRequests");
        let broken = Told::Code(500, "InternalError");
        let mut faults =
            [Told::Death, Told::Silence, busy, broken].map(|it| Self::new(it, false)).to_vec();
        if asked.method == Method::GET {
            return faults;
        }
        faults.extend([Told::Death, Told::Silence, broken].map(|it| Self::new(it, true)));
        faults.push(Self::new(Told::Code(409, "Conflict"), false));
        if asked.method == Method::POST {
            // What was in the way is gone by now.
            faults.push(Self::new(Told::Code(409, "AlreadyExists"), false));
        }
        let gateway = Told::Code(504, "Timeout");
        for fault in [Self::new(busy, false), Self::new(gateway, true)] {
            faults.push(Self { is_retried: true, ..fault });
        }
        faults.push(Self { is_seen_late: true, ..Self::new(Told::Silence, true) });
        faults
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.told {
            Told::Death => formatter.write_str("death")?,
            Told::Silence => formatter.write_str("no answer")?,
            Told::Code(code, reason) => write!(formatter, "{code} {reason}")?,
        }
        formatter.write_str(if self.is_done {
            " after it was done"
        } else {
            " before it is done"
        })?;
        formatter.write_str(if self.is_retried { ", asked again by the client" } else { "" })?;
        formatter.write_str(if self.is_seen_late { ", seen late" } else { "" })
    }
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) method: Method,
    path: String,
}

impl fmt::Display for Asking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.method, self.path)
    }
}

/// The way to a server for one look.
#[derive(Clone)]
pub(super) struct Way(Arc<Mutex<Passing>>);

struct Passing {
    /// Which request goes wrong, and how.
    trouble: Option<(usize, Fault)>,
    is_dead: bool,
    asked: Vec<Asking>,
    watch: Watch,
}

impl Way {
    pub(super) fn new(trouble: Option<(usize, Fault)>, watch: Watch) -> Self {
        let (asked, is_dead) = (Vec::new(), false);
        Self(Arc::new(Mutex::new(Passing { trouble, is_dead, asked, watch })))
    }

    /// A client whose requests go this way.
    pub(super) fn client(&self, server: &Server) -> Client {
        let way = self.clone();
        let service = server.service(move |store, asked| way.0.lock().unwrap().pass(store, asked));
        let is_retried = self.0.lock().unwrap().trouble.is_some_and(|(_, fault)| fault.is_retried);
        // As `connect`'s, but for the time between two tries.
        let soon = Duration::from_millis(1);
        let retry = RetryPolicy::new(soon, 2 * soon, 15, true).unwrap();
        let retry = is_retried.then(|| RetryLayer::new(retry));
        Client::new(ServiceBuilder::new().option_layer(retry).service(service), "lab")
    }

    /// What was asked for, and what was seen of it.
    pub(super) fn passed(&self) -> (Vec<Asking>, Watch) {
        let passing = self.0.lock().unwrap();
        (passing.asked.clone(), passing.watch.clone())
    }
}

impl Passing {
    fn pass(&mut self, store: &mut Store, asked: &Asked) -> Result<Answer, BoxError> {
        if self.is_dead {
            return Err("the process is dead".into());
        }
        let nth = self.asked.len();
        self.asked.push(Asking { method: asked.method.clone(), path: asked.path.clone() });
        let Some((_, fault)) = self.trouble.filter(|(at, _)| *at == nth) else {
            return Ok(self.carry_out(store, asked));
        };
        if fault.is_done {
            self.carry_out(store, asked);
        }
        match fault.told {
            Told::Death => {
                self.is_dead = true;
                Err("the process is dead".into())
            }
            Told::Silence => Err("no answer in time".into()),
            Told::Code(code, reason) => Ok(refused(code, reason)),
        }
    }

    fn carry_out(&mut self, store: &mut Store, asked: &Asked) -> Answer {
        let before = asked.path.strip_suffix("/status").and_then(|it| store.get(it)).cloned();
        let answer = store.answer(asked);
        if asked.method != Method::GET && answer.0 < 300 {
            self.watch.written(asked, before.as_ref());
        }
        answer
    }
}
