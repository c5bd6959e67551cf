//! Faults of processes: whoever is killed, stopped or cut off, every process of the launch is gone within 5 s, and the proof says what happened.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support;
use crate::support::proxy::Proxy;
use crate::support::{ALL_GONE, Job, PATIENCE, children, finish, finish_child, signal, until};
use unisono_agent::last_words::LastWords;
use unisono_agent::proof::Event;

/// A command that leaves its process group and session, forks twice, ignores SIGTERM, and says when it stands.
const STUBBORN: &str = "trap '' TERM HUP INT; \
    (setsid sh -c 'trap \"\" TERM; sleep 600 & sleep 601') & \
    (sh -c 'setsid sh -c \"exec sleep 602\" &' &) ; \
    setsid --fork sh -c 'trap \"\" TERM; exec sleep 603'; \
    echo standing; sleep 604";

/// Starts a command on the first host and waits for its first line.
fn standing(job: &Job, command: &str) -> Child {
    let mut rsh = job.agent(&["rsh", "w0", command]).stdout(Stdio::piped()).spawn().unwrap();
    read_line(&mut rsh);
    rsh
}

fn read_line(rsh: &mut Child) {
    let mut line = Vec::new();
    let mut byte = [0];
    while rsh.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    assert_eq!(line, b"standing");
}

/// A shell that runs a script which starts something and waits, once that stands.
fn begin(job: &Job, script: &str) -> Child {
    let mut shell = Command::new("sh")
        .args(["-c", script])
        .envs(job.launcher_variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    read_line(&mut shell);
    shell
}

/// Kills such a shell and asserts that all of it goes.
fn begin_and_kill(job: &Job, script: &str) {
    let mut shell = begin(job, script);
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_only_hosts_left(job);
}

/// Asserts that everything but the hosts themselves is gone in time.
fn assert_only_hosts_left(job: &Job) {
    let hosts: Vec<u32> = job.hosts.iter().map(Child::id).collect();
    let begun = std::time::Instant::now();
    loop {
        let left: Vec<String> = job
            .watch
            .left()
            .into_iter()
            .filter(|leak| {
                !hosts.iter().any(|pid| leak.to_string().starts_with(&format!("process {pid}:")))
            })
            .map(|leak| leak.to_string())
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < ALL_GONE, "still there after {ALL_GONE:?}: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The supervisor of the only launch on the first host.
fn supervisor(job: &Job) -> u32 {
    until("one supervisor", || match children(job.hosts[0].id())[..] {
        [only] => Some(only),
        _ => None,
    })
}

#[test]
fn a_killed_launcher_takes_stubborn_ranks_with_it() {
    let job = Job::start(1);
    let mut rsh = standing(&job, STUBBORN);
    rsh.kill().unwrap();
    rsh.wait().unwrap();
    assert_only_hosts_left(&job);
    job.assert_answers();
    job.assert_leaves_nothing();
}

#[test]
fn a_killed_caller_is_noticed_by_its_rsh() {
    let job = Job::start(1);
    let script = format!("{} rsh w0 'echo standing; sleep 600' & wait", job.program.display());
    begin_and_kill(&job, &script);
    assert!(job.has_proof(|event| matches!(event, Event::Abandoned { .. })), "{:?}", job.proof());
    job.assert_leaves_nothing();
}

#[test]
fn a_killed_host_leaves_no_orphan_and_is_reported_lost() {
    let mut job = Job::start(1);
    let rsh = standing(&job, STUBBORN);
    job.hosts[0].kill().unwrap();
    job.hosts[0].wait().unwrap();
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    job.watch.assert_nothing_left(ALL_GONE);
    assert!(job.has_proof(|event| matches!(event, Event::Lost { .. })), "{:?}", job.proof());
}

#[test]
fn a_killed_supervisor_leaves_no_orphan_and_the_host_goes_on() {
    let job = Job::start(1);
    let rsh = standing(&job, STUBBORN);
    signal(supervisor(&job), "KILL");
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    assert_only_hosts_left(&job);
    assert!(job.has_proof(|event| matches!(event, Event::Lost { .. })), "{:?}", job.proof());
    job.assert_answers();
    job.assert_leaves_nothing();
}

/// Open MPI 5's launcher ends with 0 when it notices that a host is lost, and may be gone before its `rsh` was given a processor.
#[test]
fn a_host_that_was_lost_before_the_caller_left_is_reported_lost() {
    let job = Job::start(1);
    let script = format!("{} rsh w0 'echo standing; sleep 600' & wait", job.program.display());
    let mut shell = begin(&job, &script);
    let rsh = until("one rsh", || children(shell.id()).first().copied());
    signal(rsh, "STOP");
    signal(supervisor(&job), "KILL");
    until("no supervisor", || children(job.hosts[0].id()).is_empty().then_some(()));
    shell.kill().unwrap();
    shell.wait().unwrap();
    signal(rsh, "CONT");
    assert_only_hosts_left(&job);
    assert!(job.has_proof(|event| matches!(event, Event::Lost { .. })), "{:?}", job.proof());
    job.assert_leaves_nothing();
}

#[test]
fn a_connection_cut_in_the_middle_of_output_ends_both_sides() {
    let job = Job::start(1);
    let proxy = Proxy::to(job.places[0]);
    job.write_table(&[proxy.place]);
    let mut rsh = job
        .agent(&["rsh", "w0", "echo standing; exec yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = vec![0; 1 << 20];
    rsh.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    proxy.cut();
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(255), "{:?}", output.status);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("lost w0"), "{told}");
    assert_only_hosts_left(&job);
    assert!(job.has_proof(|event| matches!(event, Event::Lost { .. })), "{:?}", job.proof());
    job.write_table(&job.places);
    job.assert_leaves_nothing();
}

#[test]
fn a_full_disk_is_an_error_and_stops_the_writer() {
    let job = Job::start(1);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let rsh = job
        .agent(&["rsh", "w0", "trap '' PIPE; echo lost || exit 0; sleep 1; echo more"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish_child(rsh);
    assert!(!output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("cannot pass on output of w0: No space left on device"), "{told}");
    job.assert_leaves_nothing();
}

#[test]
fn a_reader_that_leaves_gives_the_command_a_sigpipe() {
    let job = Job::start(1);
    let mut rsh = job.agent(&["rsh", "w0", "exec yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 64];
    rsh.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    drop(rsh.stdout.take());
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(128 + 13), "{output:?}");
    assert!(
        job.has_proof(|event| matches!(event, Event::Killed { signal: 13 })),
        "{:?}",
        job.proof()
    );
    job.assert_leaves_nothing();
}

#[test]
fn ten_seconds_of_sigstop_lose_nothing() {
    let job = Job::start(1);
    let lines = 4_000_000;
    let mut rsh = job
        .agent(&["rsh", "w0", &format!("echo standing; seq 1 {lines}; exit 5")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    read_line(&mut rsh);
    // First the launching side, then the host's side: kernels keep the connection for both.
    for pid in [rsh.id(), supervisor(&job)] {
        signal(pid, "STOP");
        std::thread::sleep(Duration::from_secs(10));
        signal(pid, "CONT");
    }
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(5));
    let numbers = String::from_utf8(output.stdout).unwrap();
    assert!(numbers.lines().eq((1..=lines).map(|number| number.to_string())), "output was lost");
    job.assert_leaves_nothing();
}

#[test]
fn signals_reach_the_command_and_its_answer_comes_back() {
    let job = Job::start(1);
    for (name, code) in [("TERM", 41), ("INT", 42), ("USR1", 43)] {
        let command =
            format!("trap 'exit {code}' {name}; echo standing; while :; do sleep 0.05; done");
        let rsh = standing(&job, &command);
        signal(rsh.id(), name);
        assert_eq!(finish_child(rsh).status.code(), Some(code), "{name}");
    }
    job.assert_leaves_nothing();
}

#[test]
fn a_signal_twice_means_leave_now() {
    let job = Job::start(1);
    let rsh = standing(&job, STUBBORN);
    signal(rsh.id(), "TERM");
    let pending = format!("/proc/{}/status", rsh.id());
    until("the first signal is taken", || {
        let status = std::fs::read_to_string(&pending).unwrap();
        status.lines().any(|line| line == "ShdPnd:\t0000000000000000").then_some(())
    });
    signal(rsh.id(), "TERM");
    assert_eq!(finish_child(rsh).status.code(), Some(128 + 15));
    assert_only_hosts_left(&job);
    job.assert_leaves_nothing();
}

#[test]
fn a_stopped_host_says_so() {
    let mut job = Job::start(1);
    let rsh = standing(&job, "echo standing; exec sleep 600");
    signal(job.hosts[0].id(), "TERM");
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    assert!(job.has_proof(
        |event| matches!(event, Event::Lost { reason } if reason == "the host was stopped")
    ));
    assert_eq!(job.hosts[0].wait().unwrap().code(), Some(0));
    job.watch.assert_nothing_left(ALL_GONE);
}

#[test]
fn what_a_command_leaves_running_on_purpose_lives_until_its_host_ends() {
    let job = Job::start(1);
    let output = job.rsh("w0", "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo left $!");
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stdout).unwrap();
    let pid: u32 = told.trim().strip_prefix("left ").unwrap().parse().unwrap();
    job.assert_answers();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, state) = stat.rsplit_once(") ").unwrap();
    assert!(!state.starts_with(['Z', 'X']), "it has ended: {stat}");
    job.assert_leaves_nothing();
}

#[test]
fn a_command_that_is_shot_takes_what_it_started_with_it() {
    let job = Job::start(1);
    let command = "setsid sh -c 'trap \"\" TERM; sleep 600' >/dev/null 2>&1 & kill -9 $$";
    let output = job.rsh("w0", command);
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    assert_only_hosts_left(&job);
    job.assert_leaves_nothing();
}

#[test]
fn a_lost_connection_makes_ready_fail_although_the_command_succeeds() {
    let job = Job::start(2);
    let script = format!("{} rsh w1 'kill -9 $PPID; sleep 600'; exit 0", job.program.display());
    let output = finish(job.agent(&["ready", "--timeout", "30", "--", "sh", "-c", &script]));
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the command ended with 0, but w1 was lost while it ran"), "{told}");
    job.assert_leaves_nothing();
}

#[test]
fn ready_finds_a_host_that_moved_while_it_was_waited_for() {
    let job = Job::start(1);
    let deserted = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    job.write_table(&[deserted.local_addr().unwrap()]);
    let ready = job.agent(&["ready", "--timeout", "30", "--", "true"]).spawn().unwrap();
    drop(deserted.accept().unwrap());
    drop(deserted);
    job.write_table(&job.places);
    assert!(finish_child(ready).status.success());
}

#[test]
fn ready_leaves_its_last_words() {
    let job = Job::start(1);
    let file = job.path("message");
    let words = file.to_str().unwrap();
    let line = "echo first; echo last >&2; exit 7";
    let output = finish(job.agent(&["ready", "--last-words", words, "--", "sh", "-c", line]));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"first\n"[..]));
    let left = LastWords::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(left.lines.contains(&"last".to_owned()), "{left:?}");
    std::fs::remove_file(&file).unwrap();
    let output = finish(job.agent(&["ready", "--last-words", words, "--", "/programs/none"]));
    assert_eq!(output.status.code(), Some(127));
    let left = LastWords::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(left.lines[0].contains("cannot run /programs/none"), "{left:?}");
}

#[test]
fn ready_takes_what_its_command_leaves_behind_with_it() {
    let job = Job::start(1);
    let script = "setsid sh -c 'trap \"\" TERM; sleep 600' & exit 6";
    let output = finish(job.agent(&["ready", "--", "sh", "-c", script]));
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert_only_hosts_left(&job);
    job.assert_leaves_nothing();
}

#[test]
fn ready_ends_with_its_parent_where_told_to() {
    let job = Job::start(1);
    let script = format!(
        "{} ready --watch-parent -- sh -c 'echo standing; sleep 600' & wait",
        job.program.display()
    );
    begin_and_kill(&job, &script);
    job.assert_leaves_nothing();
}

#[test]
fn a_hosts_own_command_decides_how_it_ends() {
    let job = Job::start(0);
    let serve = |command: &str| {
        std::fs::create_dir_all(job.path("keys/host")).unwrap();
        let key = job.path("keys/host/w0.key");
        if !key.exists() {
            support::host_key(0).write(&key).unwrap();
        }
        let mut serve = job.serve(0);
        serve.args(["--", "sh", "-c", command]).stdout(Stdio::piped()).stderr(Stdio::null());
        serve.spawn().unwrap()
    };
    assert_eq!(finish_child(serve("exit 9")).status.code(), Some(9));
    assert_eq!(finish_child(serve("kill -9 $$")).status.code(), Some(128 + 9));
    let mut told = serve("trap 'exit 12' TERM; echo standing; while :; do sleep 0.05; done");
    read_line(&mut told);
    signal(told.id(), "TERM");
    assert_eq!(finish_child(told).status.code(), Some(12));
    job.watch.assert_nothing_left(ALL_GONE);
}

#[test]
fn input_passes_whole_and_its_end_is_seen() {
    let job = Job::start(1);
    let mut rsh = job
        .agent(&["rsh", "w0", "cksum; echo closed >&2; exit 8"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = rsh.stdin.take().unwrap();
    let block: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
    for _ in 0..20 {
        stdin.write_all(&block).unwrap();
    }
    drop(stdin);
    let output = finish_child(rsh);
    assert_eq!(output.status.code(), Some(8));
    assert_eq!(output.stderr, b"closed\n");
    let here = finish({
        let mut cksum = Command::new("sh");
        let data = job.path("data");
        std::fs::write(&data, block.repeat(20)).unwrap();
        cksum.args(["-c", &format!("cksum < {}", data.display())]);
        cksum
    });
    assert_eq!(output.stdout, here.stdout);
    job.assert_leaves_nothing();
}

#[test]
fn a_gigabyte_for_a_slow_reader_takes_little_memory_and_arrives_whole() {
    const LENGTH: usize = 1_000_000_000;
    const LINE: &[u8] = b"0123456789abcdef\n";
    /// Both ends together, each with one frame, TLS buffers and its program.
    const LIMIT: u64 = 6 << 20;
    let job = Job::start(1);
    let command = format!("yes 0123456789abcdef | head -c {LENGTH}; exit 4");
    let mut rsh = job.agent(&["rsh", "w0", &command]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = rsh.stdout.take().unwrap();
    let expected = LINE.repeat(70_000);
    let mut buffer = vec![0; 1 << 20];
    let (mut arrived, mut peak, mut pauses) = (0, 0, 0);
    loop {
        let length = stdout.read(&mut buffer).unwrap();
        if length == 0 {
            break;
        }
        let from = arrived % LINE.len();
        assert_eq!(buffer[..length], expected[from..from + length], "wrong bytes after {arrived}");
        arrived += length;
        // The reader stands still for a moment every hundred megabytes: everything behind it must wait, not grow.
        if arrived / 100_000_000 > pauses && pauses < 9 {
            pauses += 1;
            std::thread::sleep(Duration::from_millis(300));
            peak = peak.max(support::memory(rsh.id()) + support::memory(supervisor(&job)));
        }
    }
    assert_eq!(arrived, LENGTH);
    let end = std::time::Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = rsh.try_wait().unwrap() {
            break status;
        }
        assert!(std::time::Instant::now() < end, "rsh hung after the last byte");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(4));
    assert!(peak > 0 && peak < LIMIT, "{peak} bytes");
    job.assert_leaves_nothing();
}
