//! An API server for tests: it keeps objects, answers as a real one does, and takes down what it was asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service, service_fn};

/// Plurals of what it can list.
const PLURALS: [&str; 2] = ["pods", "jobs"];

/// A request, as far as it matters here.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    query: String,
    pub(crate) body: Value,
    /// Whether nothing but metadata is to be answered with.
    metadata_only: bool,
}

/// What is answered: a code and a text.
pub(crate) type Answer = (u16, Arc<Value>);

/// What it keeps and what it was asked for.
#[derive(Clone, Default)]
pub(crate) struct Store {
    /// By path, without the server's root.
    objects: BTreeMap<String, Arc<Value>>,
    /// Method and path of every request, with its query.
    pub(crate) requests: Vec<String>,
    /// The next request that begins with these words is answered with this code.
    pub(crate) fault: Option<(&'static str, u16)>,
    /// Whether a deleted pod that runs stays until its kubelet has ended it.
    pub(crate) lingers: bool,
    version: u32,
    /// How often something was made at a path.
    made: BTreeMap<String, u32>,
}

/// A server and a way to it.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<Store>>);

impl Server {
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.service(|store, asked| Ok(store.answer(asked))), "lab")
    }

    /// What takes requests to the server, through something that may keep them or their answers from getting there.
    pub(crate) fn service<W>(
        &self,
        way: W,
    ) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
    + Clone
    + use<W>
    where
        W: Fn(&mut Store, &Asked) -> Result<Answer, BoxError> + Clone + Send + 'static,
    {
        let server = self.clone();
        service_fn(move |request: Request<Body>| {
            let (server, way) = (server.clone(), way.clone());
            async move {
                let (head, body) = request.into_parts();
                let accepts = head.headers.get("accept").and_then(|it| it.to_str().ok());
                let asked = Asked {
                    method: head.method,
                    path: head.uri.path().to_owned(),
                    query: head.uri.query().unwrap_or_default().to_owned(),
                    body: serde_json::from_slice(&body.collect_bytes().await?)
                        .unwrap_or(Value::Null),
                    metadata_only: accepts.is_some_and(|it| it.contains("PartialObjectMetadata;")),
                };
                let (code, answer) = way(&mut server.store(), &asked)?;
                let answer = Body::from(serde_json::to_vec(&*answer)?);
                Ok(Response::builder().status(code).body(answer)?)
            }
        })
    }
}

impl From<Store> for Server {
    fn from(store: Store) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }
}

impl Store {
    /// Puts an object there, under the path of its kind.
    pub(crate) fn put(&mut self, collection: &str, mut object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid of {name}"));
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["namespace"] = json!("lab");
        self.objects.insert(format!("{collection}/{name}"), object.into());
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        self.objects.get(path).map(|it| &**it)
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.objects.remove(path);
    }

    /// Everything there is, by path.
    pub(crate) const fn all(&self) -> &BTreeMap<String, Arc<Value>> {
        &self.objects
    }

    /// Counts all changes.
    pub(crate) const fn version(&self) -> u32 {
        self.version
    }

    /// Changes an object as whoever else writes it would.
    pub(crate) fn change(&mut self, path: &str, change: impl FnOnce(&mut Value)) {
        let Some(object) = self.objects.get_mut(path) else { return };
        let before = Arc::clone(object);
        change(Arc::make_mut(object));
        if *object != before {
            self.version += 1;
            Arc::make_mut(object)["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
    }

    /// Deletes an object; a pod that runs is only told to end.
    pub(crate) fn delete(&mut self, path: &str, at_once: bool) {
        let Some(object) = self.objects.get(path) else { return };
        let is_over = matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        let runs = path.contains("/pods/") && object["spec"]["nodeName"].is_string() && !is_over;
        if self.lingers && runs && !at_once {
            let at = json!("2026-01-01T12:00:00Z");
            self.change(path, |pod| pod["metadata"]["deletionTimestamp"] = at);
        } else {
            self.version += 1;
            self.objects.remove(path);
        }
    }

    /// Names of what there is of a kind.
    pub(crate) fn names(&self, collection: &str) -> Vec<&str> {
        let prefix = format!("{collection}/");
        self.objects.keys().filter_map(|path| path.strip_prefix(&prefix)).collect()
    }

    /// What was asked for since the last time, reads left out.
    pub(crate) fn writes(&mut self) -> Vec<String> {
        let mut asked = std::mem::take(&mut self.requests);
        asked.retain(|it| !it.starts_with("GET"));
        asked
    }

    pub(crate) fn answer(&mut self, asked: &Asked) -> Answer {
        let Asked { method, path, query, .. } = asked;
        let words = format!("{method} {path}");
        self.requests.push(if query.is_empty() { words } else { format!("{words}?{query}") });
        let asked_for = self.requests.last().unwrap();
        if let Some((_, code)) = self.fault.take_if(|(begins, _)| asked_for.starts_with(*begins)) {
            return refused(code, if code == 409 { "Conflict" } else { "InternalError" });
        }
        let object = path.strip_suffix("/status").unwrap_or(path);
        let is_list = PLURALS.contains(&path.rsplit('/').next().unwrap_or_default());
        let (code, answer) = match *method {
            Method::POST => self.create(path, asked.body.clone()),
            Method::GET if is_list => {
                let items: Vec<&Value> =
                    self.selected(path, query).into_iter().map(|it| it.1).collect();
                return (200, json!({"metadata": {}, "items": items}).into());
            }
            Method::DELETE if is_list => {
                let gone: Vec<String> =
                    self.selected(path, query).into_iter().map(|it| it.0.clone()).collect();
                gone.iter().for_each(|path| self.delete(path, false));
                return (200, json!({"kind": "Status", "status": "Success"}).into());
            }
            _ => match self.objects.get(object) {
                None => refused(404, "NotFound"),
                Some(found) if !is_meant(found, &asked.body) => refused(409, "Conflict"),
                Some(found) if *method == Method::DELETE => {
                    let found = Arc::clone(found);
                    self.delete(object, asked.body["gracePeriodSeconds"] == 0);
                    (200, found)
                }
                Some(_) => {
                    if *method == Method::PATCH {
                        self.patch(object, path.ends_with("/status"), &asked.body);
                    }
                    (200, Arc::clone(&self.objects[object]))
                }
            },
        };
        match asked.metadata_only && code < 300 {
            true => (code, json!({"metadata": answer["metadata"]}).into()),
            false => (code, answer),
        }
    }

    fn create(&mut self, path: &str, mut object: Value) -> Answer {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let place = format!("{path}/{name}");
        if self.objects.contains_key(&place) {
            return refused(409, "AlreadyExists");
        }
        self.version += 1;
        let made = self.made.entry(place.clone()).or_default();
        *made += 1;
        let kind = path.rsplit('/').next().unwrap_or_default();
        object["metadata"]["uid"] = json!(format!("{kind}-{name}-{made}"));
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        self.objects.insert(place, Arc::clone(&object));
        (201, object)
    }

    /// Merges into the status alone, or into all but the status.
    fn patch(&mut self, path: &str, is_status: bool, changes: &Value) {
        let part =
            changes.as_object().into_iter().flatten().filter(|it| (it.0 == "status") == is_status);
        let part: Value = part.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.change(path, |object| merge(object, &part));
    }

    /// What a list or a deletion of many is about.
    fn selected(&self, path: &str, query: &str) -> Vec<(&String, &Value)> {
        let query = query
            .replace("%3D", "=")
            .replace("%2C", ",")
            .replace("%2F", "/")
            .replace("%21", "!")
            .replace('+', " ")
            .replace("%28", "(")
            .replace("%29", ")");
        let selector = |name: &str| {
            let part = query.split('&').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            part.unwrap_or_default().to_owned()
        };
        let (labels, fields) = (selector("labelSelector"), selector("fieldSelector"));
        let prefix = format!("{path}/");
        let holds = |object: &Value| {
            let (labels, set) =
                labels.split_once(" in (").map_or((&*labels, None), |(labels, values)| {
                    let (labels, name) = labels.rsplit_once(',').unwrap();
                    (labels, Some((name, values.trim_end_matches(')'))))
                });
            let label =
                |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default();
            let labelled = labels.split(',').filter(|it| !it.is_empty()).all(|it| {
                let (name, value) = it.split_once('=').unwrap();
                label(name) == value
            });
            let labelled = labelled
                && set.is_none_or(|(name, values)| values.split(',').any(|it| it == label(name)));
            let fielded = fields.split(',').filter(|it| !it.is_empty()).all(|it| {
                let (name, value) = it.split_once('=').unwrap();
                let (name, is_equal) = match name.strip_suffix('!') {
                    Some(name) => (name, false),
                    None => (name, true),
                };
                let pointer = format!("/{}", name.replace('.', "/"));
                (object.pointer(&pointer) == Some(&json!(value))) == is_equal
            });
            labelled && fielded
        };
        let all = self.objects.iter().map(|(place, object)| (place, &**object));
        let of_kind = all.filter(|(place, _)| place.starts_with(&prefix));
        of_kind.filter(|(_, object)| holds(object)).collect()
    }
}

/// Whether an object is the one, and in the version, that a request is about.
fn is_meant(found: &Value, body: &Value) -> bool {
    let is =
        |asked: &Value, key: &str| asked[key].is_null() || asked[key] == found["metadata"][key];
    let (patched, deleted) = (&body["metadata"], &body["preconditions"]);
    is(patched, "uid") && is(patched, "resourceVersion") && is(deleted, "uid")
}

pub(crate) fn refused(code: u16, reason: &str) -> Answer {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "message": "refused", "reason": reason, "code": code}).into(),
    )
}

fn merge(into: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        *into = changes.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, change) in changes {
        match change {
            Value::Null => drop(into.as_object_mut().unwrap().shift_remove(key)),
            change => merge(&mut into[key], change),
        }
    }
}
