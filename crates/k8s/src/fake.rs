//! An API server for tests: it keeps objects, answers as a real one does, and takes down what it was asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Plurals of what it can list.
const PLURALS: [&str; 2] = ["pods", "jobs"];

/// What it keeps and what it was asked for.
#[derive(Default)]
pub(crate) struct Store {
    /// By path, without the server's root.
    objects: BTreeMap<String, Value>,
    /// Method and path of every request, with its query.
    pub(crate) requests: Vec<String>,
    /// The next request that begins with these words is answered with this code.
    pub(crate) fault: Option<(&'static str, u16)>,
    made: u32,
}

/// A server and a way to it.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<Store>>);

impl Server {
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let method = request.method().clone();
                let uri = request.uri().clone();
                let bytes = request.into_body().collect_bytes().await?;
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let path = uri.path().to_owned();
                let query = uri.query().unwrap_or_default().to_owned();
                let (code, answer) = server.store().answer(&method, &path, &query, body);
                let response = Response::builder().status(code);
                Ok::<_, kube::Error>(
                    response.body(Body::from(answer.to_string().into_bytes())).unwrap(),
                )
            }
        });
        Client::new(service, "lab")
    }
}

impl Store {
    /// Puts an object there, under the path of its kind.
    pub(crate) fn put(&mut self, collection: &str, mut object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid of {name}"));
        }
        object["metadata"]["namespace"] = json!("lab");
        self.objects.insert(format!("{collection}/{name}"), object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        self.objects.get(path)
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.objects.remove(path);
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

    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Value) -> (u16, Value) {
        let asked = format!("{method} {path}");
        self.requests.push(if query.is_empty() { asked } else { format!("{asked}?{query}") });
        let asked_for = self.requests.last().unwrap();
        if let Some((_, code)) = self.fault.take_if(|(begins, _)| asked_for.starts_with(*begins)) {
            return refused(code, if code == 409 { "Conflict" } else { "InternalError" });
        }
        let object = path.strip_suffix("/status").unwrap_or(path).to_owned();
        let is_list = PLURALS.contains(&path.rsplit('/').next().unwrap_or_default());
        match *method {
            Method::POST => self.create(path, body),
            Method::GET if is_list => {
                let items: Vec<&Value> =
                    self.selected(path, query).into_iter().map(|it| it.1).collect();
                (200, json!({"metadata": {}, "items": items}))
            }
            Method::DELETE if is_list => {
                let gone: Vec<String> =
                    self.selected(path, query).into_iter().map(|it| it.0.clone()).collect();
                gone.iter().for_each(|path| drop(self.objects.remove(path)));
                (200, json!({"kind": "Status", "status": "Success"}))
            }
            Method::DELETE => match self.objects.remove(&object) {
                Some(gone) => (200, gone),
                None => refused(404, "NotFound"),
            },
            Method::PATCH => match self.objects.get_mut(&object) {
                Some(found) => {
                    let before = found.clone();
                    merge(found, &body);
                    if *found != before {
                        self.made += 1;
                        found["metadata"]["resourceVersion"] = json!(self.made.to_string());
                    }
                    (200, found.clone())
                }
                None => refused(404, "NotFound"),
            },
            _ => self
                .objects
                .get(&object)
                .map_or_else(|| refused(404, "NotFound"), |it| (200, it.clone())),
        }
    }

    fn create(&mut self, path: &str, mut object: Value) -> (u16, Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let place = format!("{path}/{name}");
        if self.objects.contains_key(&place) {
            return refused(409, "AlreadyExists");
        }
        self.made += 1;
        object["metadata"]["uid"] = json!(format!("made-{}", self.made));
        self.objects.insert(place, object.clone());
        (201, object)
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
        let of_kind = self.objects.iter().filter(|(place, _)| place.starts_with(&prefix));
        of_kind.filter(|(_, object)| holds(object)).collect()
    }
}

fn refused(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "message": "refused", "reason": reason, "code": code}),
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
