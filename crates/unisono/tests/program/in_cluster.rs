//! What the program says to an API server, and what it makes of answers that a healthy one seldom gives.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::environment::{Ended, Environment};
use crate::server::{Answer, Request, Server, refusal, told_refusal};

/// How long something may take that is only waited for.
const PATIENCE: Duration = Duration::from_secs(60);

const JOBS: &str = "/apis/unisono.dev/v1alpha1/namespaces/lab/unisonojobs";
const RING: &str = "/apis/unisono.dev/v1alpha1/namespaces/lab/unisonojobs/ring";
const PIECE: &str = "/api/v1/namespaces/lab/configmaps/ring-code-0";
const POD: &str = "/api/v1/namespaces/lab/pods/ring-node-0";

/// A job whose code travels with it.
const WITH_CODE: &str = "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: ring}
spec:
  groups: [{name: node, run: LaunchOnFirst, image: i, code: src, command: [mpirun, ./ring]}]
";

/// The same without code.
fn plain() -> String {
    WITH_CODE.replace("code: src, ", "")
}

/// Somebody with a job file and a cluster.
struct Desk {
    environment: Environment,
    server: Server,
    kubeconfig: String,
}

impl Desk {
    fn new(
        job: &str,
        special: impl Fn(&Request, &Server) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let environment = Environment::new();
        environment.file("job.yaml", job).file("src/ring", "x");
        let server = Server::start(special);
        let kubeconfig = server.kubeconfig(&environment);
        Self { environment, server, kubeconfig }
    }

    fn usual(job: &str) -> Self {
        Self::new(job, |_, _| None)
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.environment.command(words);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().expect("the program starts"))
    }

    /// A job of the cluster that is somewhere in its life.
    fn has_job(&self, condition: &str) {
        let mut job: Value = unisono_dialect_object(&plain());
        job["metadata"]["namespace"] = "lab".into();
        job["status"] = status(condition);
        self.server.put(RING, job);
    }

    /// What the job waits for.
    fn waits_for(&self, what: &str) {
        let why = [format!("it waits for {what}")];
        self.server.merge(RING, &json!({"status": {"unisono": {"why": why}}}));
    }

    /// An ended run of this machine by that name.
    fn ran_here(&self, name: &str, began: u64) {
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

fn status(condition: &str) -> Value {
    let moment = "2030-01-01T00:00:01Z";
    json!({"conditions": [{
        "type": condition, "status": "True", "reason": "x", "message": "x", "lastTransitionTime": moment, "lastUpdateTime": moment,
    }]})
}

fn is_piece(request: &Request) -> bool {
    request.method == "POST" && request.path.ends_with("/configmaps")
}

fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a process");
    kill_process(process, signal).expect("it is alive");
}

#[test]
fn a_job_waits_suspended_until_its_last_piece_of_code_is_there() {
    let desk = Desk::usual(WITH_CODE);
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 file of code travel"), "{}", ended.stderr);
    let writes = desk.server.writes();
    let order: Vec<(&str, &str)> =
        writes.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    let maps = "/api/v1/namespaces/lab/configmaps";
    assert_eq!(order, [("POST", JOBS), ("POST", maps), ("PATCH", RING)]);
    assert_eq!(writes[0].body["spec"]["policies"]["suspend"], true);
    assert!(desk.server.object(RING).unwrap().pointer("/spec/policies/suspend").is_none());
}

#[test]
fn a_config_map_of_somebody_else_is_not_touched() {
    let desk = Desk::usual(WITH_CODE);
    let theirs = json!({"metadata": {"name": "ring-code-0"}, "data": {"precious": "x"}});
    desk.server.put(PIECE, theirs);
    let before = desk.server.object(PIECE);
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    for part in ["ConfigMap ring-code-0 in namespace lab is there already", "another name"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert_eq!(desk.server.object(PIECE), before);
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn what_an_earlier_job_of_the_same_name_left_makes_way() {
    let desk = Desk::usual(WITH_CODE);
    let owner = json!({"apiVersion": "unisono.dev/v1alpha1", "kind": "UnisonoJob", "name": "ring", "uid": "old"});
    desk.server
        .put(PIECE, json!({"metadata": {"name": "ring-code-0", "ownerReferences": [owner]}}));
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let piece = desk.server.object(PIECE).unwrap();
    let job = desk.server.object(RING).unwrap();
    assert_eq!(piece["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"]);
}

#[test]
fn code_that_is_refused_takes_its_job_along_and_the_reason_is_told() {
    let desk = Desk::new(WITH_CODE, |request, _| {
        is_piece(request).then(|| told_refusal(403, "Forbidden", "exceeded quota: few"))
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("exceeded quota: few"), "{}", ended.stderr);
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn a_job_that_cannot_be_removed_does_not_hide_why_it_should_be() {
    let desk = Desk::new(WITH_CODE, |request, _| match request.method.as_str() {
        "DELETE" => Some(told_refusal(403, "Forbidden", "no right to delete")),
        _ => is_piece(request).then(|| told_refusal(403, "Forbidden", "exceeded quota: few")),
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    for part in ["exceeded quota: few", "UnisonoJob ring stays behind", "no right to delete"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn ctrl_c_while_code_is_under_way_leaves_nothing_behind() {
    let desk =
        Desk::new(WITH_CODE, |request, _| is_piece(request).then(|| Answer::Stuck(Vec::new())));
    let mut child = desk.command(&["submit", "job.yaml"]).stderr(Stdio::piped()).spawn().unwrap();
    until("the upload", || desk.server.writes().iter().any(is_piece));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn fields_of_somebody_else_are_not_taken_over() {
    let desk = Desk::new(&plain(), |request, _| {
        let conflict = "Apply failed with 1 conflict: conflict with \"kueue\" using unisono.dev/v1alpha1: .spec.policies.suspend";
        (request.method == "PATCH").then(|| told_refusal(409, "Conflict", conflict))
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    for part in ["conflict with \"kueue\"", "--force-conflicts", "--replace"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    assert!(desk.server.writes().iter().all(|it| !it.query.contains("force")));
}

#[test]
fn a_job_that_has_ended_is_not_taken_for_a_new_one() {
    let desk = Desk::usual(&plain());
    desk.has_job("Succeeded");
    let ended = desk.run(&["submit", "job.yaml", "--follow"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    for part in ["UnisonoJob ring ended before", "--replace"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn a_job_that_takes_its_time_to_go_is_waited_for_with_a_word() {
    let looks = AtomicU32::new(0);
    let desk = Desk::new(&plain(), move |request, server| {
        let is_going =
            server.object(RING).is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string());
        match request.method.as_str() {
            "DELETE" if !is_going => {
                let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:02Z"}});
                Some(Answer::Json(200, server.merge(RING, &going)))
            }
            "GET"
                if request.path == RING
                    && is_going
                    && looks.fetch_add(1, Ordering::Relaxed) > 30 =>
            {
                Some(refusal(404, "NotFound"))
            }
            _ => None,
        }
    });
    desk.has_job("Created");
    let ended = desk.run(&["submit", "job.yaml", "--replace"]);
    let told = "waiting until UnisonoJob ring in namespace lab and its pods are gone";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
}

#[test]
fn whoever_may_not_watch_a_job_is_told_so() {
    let desk = Desk::new(&plain(), |request, _| {
        let is_list = request.method == "GET" && request.path == JOBS;
        is_list.then(|| told_refusal(403, "Forbidden", "unisonojobs is forbidden"))
    });
    let ended = desk.run(&["submit", "job.yaml", "--follow"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    let told = "the job cannot be watched: unisonojobs is forbidden";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn an_api_server_that_is_away_is_waited_for_and_told_once() {
    let failures = AtomicU32::new(0);
    let desk = Desk::new(&plain(), move |request, server| {
        if request.method != "GET" || request.path != JOBS {
            return None;
        }
        if failures.fetch_add(1, Ordering::Relaxed) < 2 {
            return Some(told_refusal(500, "InternalError", "come back later"));
        }
        server.merge(RING, &json!({"status": status("Failed")}));
        None
    });
    let ended = desk.run(&["submit", "job.yaml", "--follow"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("come back later").count(), 1, "{}", ended.stderr);
}

/// The pod of the job's one host, which has run.
fn pod(desk: &Desk) {
    let uid = desk.server.object(RING).unwrap()["metadata"]["uid"].clone();
    let labels = json!({"unisono.dev/job-uid": uid, "unisono.dev/member": "0.0"});
    let moment = "2030-01-01T00:00:01Z";
    let state = json!({"terminated": {"exitCode": 0, "finishedAt": moment, "startedAt": moment}});
    let container = json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    desk.server.put(
        POD,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "ring-node-0", "namespace": "lab", "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "i"}]},
            "status": {"phase": "Succeeded", "containerStatuses": [container]},
        }),
    );
}

#[test]
fn a_log_is_bytes_whatever_is_in_it() {
    let desk = Desk::new(&plain(), |request, _| {
        request.path.ends_with("/log").then(|| Answer::Bytes(b"odd \xff byte\n".to_vec()))
    });
    desk.has_job("Succeeded");
    pod(&desk);
    let output = desk.command(&["logs", "ring", "--engine", "kubernetes"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // What a terminal could stumble over may be left out; the rest is there.
    assert!(output.stdout.starts_with(b"odd ") && output.stdout.ends_with(b" byte\n"));
}

#[test]
fn a_log_that_does_not_end_is_cut_with_a_word() {
    let desk = Desk::new(&plain(), |request, server| {
        if request.method == "GET" && request.path == JOBS {
            server.merge(RING, &json!({"status": status("Succeeded")}));
        }
        request.path.ends_with("/log").then(|| Answer::Stuck(b"the first line\n".to_vec()))
    });
    desk.has_job("Created");
    pod(&desk);
    let ended = desk.run(&["submit", "job.yaml", "--follow"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("the first line\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("nothing came from ring-node-0 for"), "{}", ended.stderr);
}

#[test]
fn a_name_means_what_runs_else_the_newer_one() {
    let desk = Desk::usual(&plain());
    let state = |words: &[&str]| {
        let ended = desk.run(&[&["status", "ring", "--output", "json"], words].concat());
        let shown: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
        (shown["run"]["id"].clone(), ended.stderr)
    };
    let here = (json!("ring-0001"), String::new());
    // 2020, 2030 and 2040.
    desk.ran_here("ring", 1_577_836_800_000);
    assert_eq!(state(&[]), here, "nothing is in the cluster");
    desk.has_job("Created");
    assert_ne!(state(&[]), here, "it runs in the cluster");
    assert_eq!(state(&["--engine", "local"]), here);
    desk.has_job("Succeeded");
    assert_ne!(state(&[]), here, "the cluster's is newer");
    desk.ran_here("ring", 2_208_988_800_000);
    assert_eq!(state(&[]), here, "the local run is newer");
    let stopped = desk.run(&["stop", "ring-0001"]);
    assert!(stopped.stderr.contains("ring-0001 has ended"), "{}", stopped.stderr);
}

#[test]
fn a_cluster_that_lets_nobody_in_is_told_where_a_name_is_not_known_here() {
    let desk = Desk::new(&plain(), |_, _| Some(told_refusal(401, "Unauthorized", "Unauthorized")));
    let ended = desk.run(&["status", "ring"]);
    assert_eq!(ended.code, 125);
    for part in ["no run of this machine is called `ring`", "Unauthorized", "log in again"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    desk.ran_here("ring", 1);
    let ended = desk.run(&["status", "ring"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("only this machine was asked for `ring`"), "{}", ended.stderr);
}

#[test]
fn after_submitting_the_hint_says_which_of_two_is_meant() {
    let desk = Desk::usual(&plain());
    let first = desk.run(&["submit", "job.yaml"]);
    assert!(first.stderr.contains("`unisono stop ring` stops it"), "{}", first.stderr);
    desk.ran_here("ring", 1);
    let second = desk.run(&["submit", "job.yaml"]);
    let told = "`unisono stop ring --engine kubernetes` stops it";
    assert!(second.stderr.contains(told), "{}", second.stderr);
}

/// Somebody who follows a running job from a terminal.
struct Terminal {
    ours: File,
    child: Child,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    fn follow(desk: &Desk) -> Self {
        desk.has_job("Created");
        desk.waits_for("the moon");
        let ours: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it may be used");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let path = name.to_str().expect("its name is text");
        let theirs = File::options().read(true).write(true).open(path).expect("open it");
        let mut command = desk.command(&["logs", "ring", "--follow", "--engine", "kubernetes"]);
        command.stdin(theirs.try_clone().unwrap()).stdout(Stdio::null()).stderr(theirs);
        let child = command.env("TERM", "xterm").spawn().expect("the program starts");
        // It holds the terminal, which ends with the program.
        drop(command);
        let ours = File::from(ours);
        let screen = Arc::default();
        read_on(ours.try_clone().expect("a second handle"), Arc::clone(&screen));
        let mut terminal = Self { ours, child, screen };
        // Signals are listened for from then on.
        terminal.sees("it waits for the moon");
        terminal
    }

    fn sees(&mut self, what: &str) {
        let screen = Arc::clone(&self.screen);
        until(&format!("{what:?}"), || screen.lock().unwrap().contains(what));
        screen.lock().unwrap().clear();
    }

    fn interrupt(&mut self) {
        signal(&self.child, Signal::INT);
        self.sees("stop ring? [y: stop it, N: leave it running, c: go on]");
    }

    fn types(&mut self, line: &str) {
        self.ours.write_all(line.as_bytes()).expect("it is typed");
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

/// Reads what a terminal shows until its last user has left.
fn read_on(mut terminal: File, screen: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = terminal.read(&mut piece) {
            *screen.lock().unwrap() += &String::from_utf8_lossy(&piece[..length]);
        }
    });
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn ctrl_c_asks_and_every_answer_counts() {
    let desk = Desk::usual(&plain());
    let stop =
        |desk: &Desk| desk.server.object(RING).unwrap().pointer("/metadata/annotations").cloned();

    let mut leaves = Terminal::follow(&desk);
    leaves.interrupt();
    leaves.types("n\n");
    leaves.sees("ring goes on");
    assert_eq!(leaves.code(), Some(130));

    let mut stops = Terminal::follow(&desk);
    stops.interrupt();
    stops.types("c\n");
    // It goes on, and asks again.
    desk.waits_for("the sun");
    stops.sees("it waits for the sun");
    stops.interrupt();
    assert_eq!(stop(&desk), None);
    stops.types("y\n");
    until("stopping", || stop(&desk) == Some(json!({"unisono.dev/stop": "true"})));
    desk.has_job("Failed");
    assert_eq!(stops.code(), Some(1));
}

#[test]
fn a_second_ctrl_c_leaves_and_so_does_a_request_to_end() {
    let desk = Desk::usual(&plain());
    let mut twice = Terminal::follow(&desk);
    twice.interrupt();
    signal(&twice.child, Signal::INT);
    twice.sees("ring goes on");
    assert_eq!(twice.code(), Some(130));

    let mut ended = Terminal::follow(&desk);
    signal(&ended.child, Signal::TERM);
    ended.sees("ring goes on");
    assert_eq!(ended.code(), Some(143));
}
