//! Somebody with a job file and a cluster, and what that cluster has.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::environment::{Ended, Environment};
use crate::server::{Answer, Request, Server};

/// How long something may take that is only waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const JOBS: &str = "/apis/unisono.dev/v1alpha1/namespaces/lab/unisonojobs";
pub(crate) const RING: &str = "/apis/unisono.dev/v1alpha1/namespaces/lab/unisonojobs/ring";
pub(crate) const PIECE: &str = "/api/v1/namespaces/lab/configmaps/ring-code-0";
const POD: &str = "/api/v1/namespaces/lab/pods/ring-node-0";

/// A job whose code travels with it.
pub(crate) const WITH_CODE: &str = "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: ring}
spec:
  groups: [{name: node, run: LaunchOnFirst, image: i, code: src, command: [mpirun, ./ring]}]
";

/// The same without code.
pub(crate) fn plain() -> String {
    WITH_CODE.replace("code: src, ", "")
}

/// Somebody with a job file and a cluster.
pub(crate) struct Desk {
    environment: Environment,
    pub(crate) server: Server,
    kubeconfig: String,
}

impl Desk {
    pub(crate) fn new(
        job: &str,
        special: impl Fn(&Request, &Server) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let environment = Environment::new();
        environment.file("job.yaml", job).file("src/ring", "x");
        let server = Server::start(special);
        let kubeconfig = server.kubeconfig(&environment);
        Self { environment, server, kubeconfig }
    }

    pub(crate) fn usual(job: &str) -> Self {
        Self::new(job, |_, _| None)
    }

    pub(crate) fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.environment.command(words);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().expect("the program starts"))
    }

    /// A job of the cluster that is somewhere in its life.
    pub(crate) fn has_job(&self, condition: &str) {
        let mut job: Value = unisono_dialect_object(&plain());
        job["metadata"]["namespace"] = "lab".into();
        job["status"] = status(condition);
        self.server.put(RING, job);
    }

    /// What the job waits for.
    pub(crate) fn waits_for(&self, what: &str) {
        let why = [format!("it waits for {what}")];
        self.server.merge(RING, &json!({"status": {"unisono": {"why": why}}}));
    }

    /// An ended run of this machine by that name.
    pub(crate) fn ran_here(&self, name: &str, began: u64) {
        let record = json!({
            "id": format!("{name}-0001"), "job": name, "dialect": "unisono", "file": "job.yaml", "experiment": null,
            "hosts": 1, "ranks": 1, "process": 1, "began": began,
        });
        let path = format!(".local/state/unisono/runs/{name}-0001/run.json");
        self.environment.file(&path, record.to_string());
    }
}

/// The one object of a file, as JSON.
fn unisono_dialect_object(text: &str) -> Value {
    let group = json!({"name": "node", "run": "LaunchOnFirst", "image": "i", "command": ["mpirun", "./ring"]});
    assert_eq!(text, plain());
    json!({
        "apiVersion": "unisono.dev/v1alpha1", "kind": "UnisonoJob", "metadata": {"name": "ring"},
        "spec": {"groups": [group]},
    })
}

pub(crate) fn status(condition: &str) -> Value {
    let moment = "2030-01-01T00:00:01Z";
    json!({"conditions": [{
        "type": condition, "status": "True", "reason": "x", "message": "x", "lastTransitionTime": moment, "lastUpdateTime": moment,
    }]})
}

pub(crate) fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a process");
    kill_process(process, signal).expect("it is alive");
}

/// The pod of the job's one host, which has run.
pub(crate) fn pod(desk: &Desk) {
    put_pod(&desk.server, "terminated");
}

/// The pod of the job's one host, whose container is in that state.
pub(crate) fn put_pod(server: &Server, state: &str) {
    let uid = server.object(RING).unwrap()["metadata"]["uid"].clone();
    let labels = json!({"unisono.dev/job-uid": uid, "unisono.dev/member": "0.0"});
    let moment = "2030-01-01T00:00:01Z";
    let state = json!({state: {"exitCode": 0, "finishedAt": moment, "startedAt": moment}});
    let container = json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    server.put(
        POD,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "ring-node-0", "namespace": "lab", "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "i"}]},
            "status": {"phase": "Running", "containerStatuses": [container]},
        }),
    );
}
