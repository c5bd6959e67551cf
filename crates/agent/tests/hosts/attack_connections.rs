//! Attacks over the network: whatever a stranger or a broken launcher sends, nothing is run, one line is logged, and honest launches go on.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::attacker::{connect, converse, frame, launch};
use crate::support::proxy::Proxy;
use crate::support::{HOST_SEED, Job, LAUNCHER_SEED, memory, tree, until};

/// The most memory that all processes of an attacked host may take together.
const MEMORY_LIMIT: u64 = 16 << 20;

/// The command an attacker would like to run, and the file that would show that it ran.
fn wish(job: &Job) -> (String, std::path::PathBuf) {
    let evidence = job.path("evidence");
    (format!("touch {}", evidence.display()), evidence)
}

/// Asserts what holds after every attack.
fn assert_repelled(job: Job, refusals: usize) {
    until("every refusal is logged", || (job.refusals(0).len() >= refusals).then_some(()));
    job.assert_answers();
    assert!(!job.path("evidence").exists(), "the attacker's command was run");
    let lines = job.refusals(0);
    let peers: HashSet<&str> = lines.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    // In a full house an honest launch may have been dropped before it could speak; it has come again by itself, and an attacker
    // may have got the port that it left.
    assert!(peers.len() >= refusals, "somebody was refused twice: {lines:#?}");
    let allowed = if refusals < 1000 { refusals } else { refusals + refusals / 10 };
    assert!(lines.len() <= allowed, "{refusals} expected: {lines:#?}");
    let log = job.log(0);
    for seed in [LAUNCHER_SEED, HOST_SEED] {
        let text = support::secret(seed).to_text();
        let encoded = text.split_whitespace().last().unwrap();
        assert!(!log.contains(encoded), "a secret key is in the log");
    }
    job.assert_leaves_nothing();
}

/// A stream of bytes without a pattern, the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn random_bytes_are_refused() {
    const TIMES: usize = 100;
    let job = Job::start(1);
    for seed in 0..TIMES {
        let mut socket = TcpStream::connect(job.places[0]).unwrap();
        let sent = socket.write_all(&noise(seed as u64 * 7919, 1 + seed * 97));
        drop(sent.and_then(|()| socket.shutdown(Shutdown::Write)));
        drop(socket.read_to_end(&mut Vec::new()));
    }
    assert_repelled(job, TIMES);
}

#[test]
fn no_key_is_refused() {
    let job = Job::start(1);
    let (command, _) = wish(&job);
    assert_eq!(converse(connect(job.places[0], None), &launch(&command)), b"");
    assert_repelled(job, 1);
}

#[test]
fn another_jobs_key_is_refused() {
    let job = Job::start(1);
    let (command, _) = wish(&job);
    assert_eq!(converse(connect(job.places[0], Some(77)), &launch(&command)), b"");
    assert_repelled(job, 1);
}

#[test]
fn a_hosts_key_cannot_launch() {
    let job = Job::start(2);
    let (command, _) = wish(&job);
    for seed in [HOST_SEED, HOST_SEED + 1] {
        assert_eq!(converse(connect(job.places[0], Some(seed)), &launch(&command)), b"");
    }
    assert_repelled(job, 2);
}

#[test]
fn the_attackers_own_client_is_let_in_with_the_right_key() {
    let job = Job::start(1);
    let (command, evidence) = wish(&job);
    let answer = converse(connect(job.places[0], Some(LAUNCHER_SEED)), &launch(&command));
    assert!(evidence.exists(), "without this the tests around it would show nothing: {answer:?}");
    job.assert_leaves_nothing();
}

#[test]
fn broken_frames_of_a_launcher_are_refused() {
    let job = Job::start(1);
    let (command, _) = wish(&job);
    let text = command.as_bytes();
    let length = u32::try_from(text.len()).unwrap();
    let broken = [
        ("an empty frame of an unknown kind", frame(0, 0, &[])),
        ("a length of 4 GiB", frame(1, u32::MAX, text)),
        ("one byte more than the limit", frame(1, (64 << 10) - 4, text)),
        ("input before a start", frame(3, length, text)),
        ("a frame that only hosts send", [frame(1, length, text), frame(71, 1, &[0])].concat()),
        ("a zero byte", [frame(1, length, text), frame(1, 1, &[0]), frame(2, 1, &[0])].concat()),
        ("a start without its flag", [frame(1, length, text), frame(2, 0, &[])].concat()),
        ("a command without end", frame(1, 60_000, &[b'x'; 60_000]).repeat(3)),
    ];
    let refusals = broken.len();
    for (what, bytes) in broken {
        assert_eq!(converse(connect(job.places[0], Some(LAUNCHER_SEED)), &bytes), b"", "{what}");
    }
    assert_repelled(job, refusals);
}

#[test]
fn truncated_frames_of_a_launcher_run_nothing() {
    let job = Job::start(1);
    let (command, _) = wish(&job);
    let whole = launch(&command);
    let cuts = [1, 4, 5, 6, whole.len() - 7, whole.len() - 1];
    for cut in cuts {
        let mut stream = connect(job.places[0], Some(LAUNCHER_SEED));
        stream.write_all(&whole[..cut]).unwrap();
        stream.flush().unwrap();
        stream.conn.send_close_notify();
        drop(stream.flush());
        stream.sock.shutdown(Shutdown::Write).unwrap();
        drop(stream.read_to_end(&mut Vec::new()));
    }
    assert_repelled(job, cuts.len());
}

#[test]
fn one_byte_a_second_is_cut_off_in_time() {
    let job = Job::start(1);
    let mut socket = TcpStream::connect(job.places[0]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let begun = Instant::now();
    let hello = [0x16, 3, 1, 0x01, 0x00, 1, 0, 0, 0xfc, 3, 3];
    let mut bytes = hello.iter().cycle();
    loop {
        let sent = socket.write_all(&[*bytes.next().unwrap()]);
        let mut byte = [0];
        match (sent, socket.read(&mut byte)) {
            (Ok(()), Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => break,
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still being listened to");
    }
    assert!(begun.elapsed() > Duration::from_secs(4), "a slow but honest network would be cut off");
    let why = until("the refusal is logged", || job.refusals(0).pop());
    assert!(why.ends_with("no proof of key within 5 s"), "{why}");
    assert_repelled(job, 1);
}

#[test]
fn a_launcher_that_asks_for_nothing_is_cut_off() {
    let job = Job::start(1);
    let begun = Instant::now();
    assert_eq!(converse(connect(job.places[0], Some(LAUNCHER_SEED)), &frame(1, 3, b"abc")), b"");
    assert!(begun.elapsed() > Duration::from_secs(4));
    assert_repelled(job, 1);
}

#[test]
fn ten_thousand_connections_do_not_keep_honest_launches_out() {
    const CONNECTIONS: usize = 10_000;
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit { current: Some(20_000), maximum: Some(20_000) },
    )
    .unwrap();
    let job = Job::start(1);
    let place = job.places[0];
    let flood = std::thread::spawn(move || {
        (0..CONNECTIONS).map(|_| TcpStream::connect(place).unwrap()).collect::<Vec<_>>()
    });
    let mut peak = 0;
    let mut answered = 0;
    while !flood.is_finished() || answered == 0 {
        job.assert_answers();
        answered += 1;
        peak = peak.max(tree(job.hosts[0].id()).into_iter().map(memory).sum());
    }
    let sockets = flood.join().unwrap();
    peak = peak.max(tree(job.hosts[0].id()).into_iter().map(memory).sum());
    assert!(tree(job.hosts[0].id()).len() <= 1 + 64, "more processes than connections it may hold");
    assert!(peak > 0 && peak <= MEMORY_LIMIT, "{peak} bytes");
    job.assert_answers();
    drop(sockets);
    assert_repelled(job, CONNECTIONS);
}

#[test]
fn a_replayed_launch_runs_once() {
    let job = Job::start(1);
    let proxy = Proxy::to(job.places[0]);
    job.write_table(&[proxy.place]);
    let counter = job.path("counter");
    let output = job.rsh("w0", &format!("echo once >> {}", counter.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    job.write_table(&job.places);

    let mut socket = TcpStream::connect(job.places[0]).unwrap();
    drop(socket.write_all(&proxy.recorded()));
    drop(socket.shutdown(Shutdown::Write));
    drop(socket.read_to_end(&mut Vec::new()));
    until("the replay is refused", || (job.refusals(0).len() == 1).then_some(()));
    assert_eq!(fs::read_to_string(counter).unwrap(), "once\n");
    assert_repelled(job, 1);
}

#[test]
fn a_host_with_a_wrong_key_is_not_talked_to() {
    let job = Job::start(2);
    // Whoever has taken over an address cannot take over a host.
    job.write_table(&[job.places[1], job.places[0]]);
    let (command, evidence) = wish(&job);
    let output = job.rsh("w0", &command);
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("cannot reach w0: the peer's key is not one of this job's"), "{told}");
    assert!(!evidence.exists());
    job.assert_leaves_nothing();
}
