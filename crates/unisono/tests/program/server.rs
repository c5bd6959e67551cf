//! An API server that keeps objects and does what a test tells it: for what a real one does too rarely, or too slowly.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::Environment;

/// How often a watch looks for what is new.
const LOOK: Duration = Duration::from_millis(10);

/// What the program asks.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

/// What it is answered, where not by the objects themselves.
pub(crate) enum Answer {
    /// An object, or a refusal, with its code.
    Json(u16, Value),
    /// A log.
    Bytes(Vec<u8>),
    /// The beginning of a log, and then nothing, for ever.
    Stuck(Vec<u8>),
    /// The beginning of a log, and then nobody is there any more.
    Cut(Vec<u8>),
}

type Special = dyn Fn(&Request, &Server) -> Option<Answer> + Send + Sync;

/// The server. It ends with the test.
#[derive(Clone)]
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
    special: Arc<Special>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    requests: Vec<Request>,
    changes: u64,
}

impl Server {
    /// A server that answers what `special` does not.
    pub(crate) fn start(
        special: impl Fn(&Request, &Self) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let server = Self { port, state: Arc::default(), special: Arc::new(special) };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                // Whoever hangs up is not answered any more.
                thread::spawn(move || server.serve(&stream).ok());
            }
        });
        server
    }

    /// Writes a kubeconfig that names the server, and gives its path.
    pub(crate) fn kubeconfig(&self, environment: &Environment) -> String {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "lab"}}],
            "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{}", self.port)}}],
            "users": [{"name": "a", "user": {"token": "x"}}],
        });
        environment.file("kubeconfig", config.to_string());
        environment.path().join("kubeconfig").display().to_string()
    }

    /// Puts an object at a path, as a new one or in the place of an old one.
    pub(crate) fn put(&self, path: &str, mut object: Value) {
        let mut state = self.state();
        state.changes += 1;
        let changes = state.changes;
        if object["metadata"]["uid"].is_null() {
            let known = state.objects.get(path).map(|it| it["metadata"]["uid"].clone());
            object["metadata"]["uid"] = known.unwrap_or_else(|| format!("uid-{changes}").into());
        }
        if let Some((_, place)) = path.split_once("/namespaces/") {
            let mut words = place.split('/');
            object["metadata"]["namespace"] = words.next().into();
            object["metadata"]["name"] = words.nth(1).into();
        }
        object["metadata"]["resourceVersion"] = changes.to_string().into();
        object["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z".into();
        state.objects.insert(path.to_owned(), object);
    }

    /// Changes an object as a merge patch does.
    pub(crate) fn merge(&self, path: &str, change: &Value) -> Value {
        let mut object = self.object(path).unwrap_or_default();
        merge(&mut object, change);
        self.put(path, object);
        self.object(path).unwrap_or_default()
    }

    /// The object at a path.
    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path).cloned()
    }

    /// Every request so far that changes something.
    pub(crate) fn writes(&self) -> Vec<Request> {
        let state = self.state();
        state.requests.iter().filter(|it| it.method != "GET").cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let Some(request) = read(&mut reader)? else { return Ok(()) };
            self.state().requests.push(request.clone());
            let answer = (self.special)(&request, self);
            match answer.unwrap_or_else(|| self.usual(&request)) {
                Answer::Json(0, _) => return self.watch(&request, stream),
                Answer::Json(code, value) => {
                    respond(stream, code, "application/json", value.to_string().as_bytes())?;
                }
                Answer::Bytes(bytes) => respond(stream, 200, "text/plain", &bytes)?,
                Answer::Stuck(bytes) => {
                    begin_log(stream, &bytes)?;
                    loop {
                        thread::park();
                    }
                }
                Answer::Cut(bytes) => {
                    begin_log(stream, &bytes)?;
                    return stream.shutdown(std::net::Shutdown::Both);
                }
            }
        }
    }

    /// What an API server does.
    fn usual(&self, request: &Request) -> Answer {
        let Request { method, path, body, .. } = request;
        let found = self.object(path);
        match (method.as_str(), found) {
            ("GET", _) if path == "/api/v1" => {
                kinds("v1", &[("ConfigMap", "configmaps"), ("Pod", "pods")])
            }
            ("GET", _) if path == "/apis/unisono.dev/v1alpha1" => {
                kinds("unisono.dev/v1alpha1", &[("UnisonoJob", "unisonojobs")])
            }
            ("GET", _) if path == "/apis/kubeflow.org/v2beta1" => {
                kinds("kubeflow.org/v2beta1", &[("MPIJob", "mpijobs")])
            }
            ("GET" | "DELETE", None) if is_object(path) => refusal(404, "NotFound"),
            ("GET", Some(object)) => Answer::Json(200, object),
            ("GET", None) if request.query.contains("watch=") => Answer::Json(0, Value::Null),
            ("GET", None) => Answer::Json(200, self.list(path)),
            ("POST", _) => {
                let name = body["metadata"]["name"].as_str().unwrap_or("made-up");
                let path = format!("{path}/{name}");
                match self.object(&path) {
                    Some(_) => refusal(409, "AlreadyExists"),
                    None => Answer::Json(201, self.merge(&path, body)),
                }
            }
            ("PATCH", _) => Answer::Json(200, self.merge(path, body)),
            ("DELETE", Some(object)) => {
                let uid = object["metadata"]["uid"].clone();
                let is_owned =
                    |it: &Value| it.pointer("/metadata/ownerReferences/0/uid") == Some(&uid);
                self.state().objects.retain(|at, it| at != path && !is_owned(it));
                Answer::Json(200, object)
            }
            _ => refusal(405, "MethodNotAllowed"),
        }
    }

    fn below(&self, path: &str) -> Vec<Value> {
        let state = self.state();
        let below = |at: &str| {
            at.strip_prefix(path).is_some_and(|it| it.starts_with('/') && !it[1..].contains('/'))
        };
        state.objects.iter().filter(|(at, _)| below(at)).map(|(_, it)| it.clone()).collect()
    }

    fn list(&self, path: &str) -> Value {
        let version = self.state().changes.to_string();
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": self.below(path)})
    }

    fn watch(&self, request: &Request, stream: &TcpStream) -> std::io::Result<()> {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        (&*stream).write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        loop {
            for object in self.below(&request.path) {
                let name = object["metadata"]["name"].to_string();
                if known.get(&name) != Some(&object["metadata"]["resourceVersion"]) {
                    known.insert(name, object["metadata"]["resourceVersion"].clone());
                    let event = json!({"type": "MODIFIED", "object": object});
                    chunk(stream, format!("{event}\n").as_bytes())?;
                }
            }
            thread::sleep(LOOK);
        }
    }
}

/// A refusal.
pub(crate) fn refusal(code: u16, reason: &str) -> Answer {
    told_refusal(code, reason, reason)
}

/// A refusal with a sentence.
pub(crate) fn told_refusal(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Json(
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

fn kinds(group_version: &str, kinds: &[(&str, &str)]) -> Answer {
    let verbs = json!(["create", "delete", "get", "list", "patch", "watch"]);
    let resources: Vec<Value> = kinds
        .iter()
        .map(|(kind, plural)| json!({"kind": kind, "name": plural, "singularName": "", "namespaced": true, "verbs": verbs}))
        .collect();
    Answer::Json(
        200,
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
    )
}

/// Whether a path is of one object: `…/namespaces/NAMESPACE/KIND/NAME`.
fn is_object(path: &str) -> bool {
    path.split_once("/namespaces/").is_some_and(|(_, rest)| rest.split('/').count() == 3)
}

fn merge(object: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *object = change.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in changes {
        match value {
            Value::Null => drop(object.as_object_mut().and_then(|it| it.remove(key))),
            value => merge(&mut object[key], value),
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    Ok(Some(Request {
        method,
        path,
        query,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

fn respond(mut stream: &TcpStream, code: u16, kind: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {code} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn begin_log(mut stream: &TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    chunk(stream, bytes)
}

fn chunk(mut stream: &TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")
}
