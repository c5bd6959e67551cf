//! What somebody sees who follows a job of a cluster: its lines, what it waits for, and what Ctrl-C does.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::desk::{Desk, JOBS, RING, plain, pod, put_pod, signal, status, until};
use crate::server::{Answer, refusal, told_refusal};

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

/// The lines of a log that were written in these seconds, as an API server tells them; the last one may be cut.
fn stamped(lines: &[(u32, &str)]) -> Vec<u8> {
    let lines: Vec<String> =
        lines.iter().map(|(at, line)| format!("2030-01-01T00:00:{at:02}.5Z {line}")).collect();
    lines.join("\n").into_bytes()
}

#[test]
fn a_log_that_is_cut_goes_on_where_it_was_cut() {
    let asked = AtomicU32::new(0);
    let desk = Desk::new(&plain(), move |request, server| {
        if !request.path.ends_with("/log") {
            return None;
        }
        let all = [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five"), (5, "six")];
        // Like a kubelet that starts again, and an API server that does, once in the middle of a line.
        let is_since = |second: &str| request.query.contains(&format!("sinceTime={second}"));
        Some(match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::Bytes([stamped(&all[..2]), b"\n".to_vec()].concat()),
            1 if is_since("2030-01-01T00%3A00%3A01Z") => {
                Answer::Cut(stamped(&[(1, "one"), (2, "two"), (3, "three"), (4, "fo")]))
            }
            2 => refusal(502, "BadGateway"),
            3 if is_since("2030-01-01T00%3A00%3A02Z") => {
                Answer::Bytes([stamped(&all[1..5]), b"\n".to_vec()].concat())
            }
            4 => {
                // It was cut once more, while the container ended.
                put_pod(server, "terminated");
                Answer::Bytes(Vec::new())
            }
            _ => {
                server.merge(RING, &json!({"status": status("Succeeded")}));
                Answer::Bytes(stamped(&all[3..]))
            }
        })
    });
    desk.has_job("Running");
    put_pod(&desk.server, "running");
    let (code, out, err) = Follower::begin(&desk).end();
    assert_eq!(code, Some(0), "{err}");
    let said: Vec<&str> = out.lines().filter_map(|line| Some(line.split_once("| ")?.1)).collect();
    assert_eq!(said, ["one", "two", "three", "four", "five", "six"], "{err}");
    assert!(!err.contains("error"), "{err}");
}

#[test]
fn a_log_that_nobody_may_read_is_told_and_not_asked_for_again() {
    let asked = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&asked);
    let desk = Desk::new(&plain(), move |request, server| {
        request.path.ends_with("/log").then(|| {
            counts.fetch_add(1, Ordering::Relaxed);
            server.merge(RING, &json!({"status": status("Succeeded")}));
            told_refusal(403, "Forbidden", "pods/log is forbidden")
        })
    });
    desk.has_job("Running");
    put_pod(&desk.server, "running");
    let ended = desk.run(&["logs", "ring", "--follow", "--engine", "kubernetes"]);
    let told = "the log of ring-node-0 cannot be read: pods/log is forbidden";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
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
fn where_no_live_line_is_seen_every_reason_to_wait_is_told_once() {
    let desk = Desk::usual(&plain());
    desk.has_job("Created");
    desk.waits_for("the moon");
    let follower = Follower::begin(&desk);
    follower.says("ring: it waits for the moon\n");
    desk.waits_for("the sun");
    follower.says("ring: it waits for the sun\n");
    desk.waits_for("the moon");
    desk.waits_for("the stars");
    follower.says("ring: it waits for the stars\n");
    desk.has_job("Failed");
    let (code, _, said) = follower.end();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(said.matches("the moon").count(), 1, "{said}");
}

/// Somebody who follows a running job, and passes on what is written.
struct Follower {
    child: Child,
    out: Arc<Mutex<String>>,
    err: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Follower {
    fn begin(desk: &Desk) -> Self {
        let mut command = desk.command(&["logs", "ring", "--follow", "--engine", "kubernetes"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (out, err) = (Arc::default(), Arc::default());
        let readers = vec![
            read_on(child.stdout.take().expect("it is piped"), Arc::clone(&out)),
            read_on(child.stderr.take().expect("it is piped"), Arc::clone(&err)),
        ];
        Self { child, out, err, readers }
    }

    fn says(&self, what: &str) {
        until(&format!("{what:?}"), || self.err.lock().unwrap().contains(what));
    }

    /// How it ended, and everything that it wrote.
    fn end(mut self) -> (Option<i32>, String, String) {
        until("its end", || self.child.try_wait().expect("it can be asked").is_some());
        let code = self.child.wait().expect("it has ended").code();
        for reader in std::mem::take(&mut self.readers) {
            reader.join().expect("all of it was read");
        }
        let text = |it: &Mutex<String>| it.lock().unwrap().clone();
        (code, text(&self.out), text(&self.err))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
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

/// Reads what a terminal shows, or a pipe passes on, until its last user has left.
fn read_on(mut from: impl Read + Send + 'static, screen: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            *screen.lock().unwrap() += &String::from_utf8_lossy(&piece[..length]);
        }
    })
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
