//! Faults of the network itself: a wire that goes dead without a word, idle or in the middle of output, ends both sides.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::{children, program, until};

/// Silence is noticed after 5 s, looked for every second, and the tree has 2 s to end.
const NOTICED: Duration = Duration::from_secs(12);

/// Runs a call of the launcher in a network of its own, and cuts that network once its sockets are in this state.
fn cut_network_under(call: &str, state: impl Fn(&str) -> bool) -> Cut {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    support::keys(1).write(&path("keys")).unwrap();
    let key = support::host_key(0).public();
    let table = format!(
        r#"{{"version":1,"identity":"","attempt":1,"epoch":1,"hosts":[{{"name":"w0","address":"127.0.0.1","slots":1,"key":"{key}"}}]}}"#
    );
    std::fs::write(path("table"), table).unwrap();
    let script = r#"
        ip link set lo up
        "$AGENT" serve --listen 127.0.0.1:7711 --key keys/host/w0.key --launchers keys/launchers &
        "$AGENT" ready --timeout 30 || exit 1
        mkfifo nobody-reads
        exec 3<> nobody-reads
        CALL &
        echo $! > rsh
        read cut
        ip link set lo down
        touch dead
        echo cut
        wait
    "#;
    let script = script.replace("CALL", call);
    let network = Command::new("unshare")
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script])
        .current_dir(folder.path())
        .env("AGENT", program())
        .env("UNISONO_AGENT_TABLE", path("table"))
        .env("UNISONO_AGENT_LAUNCHER_KEY", path("keys/launcher/launcher.key"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut network = Network(network);
    // Seen from outside the namespace: the shell's children are the host and the launcher, in this order.
    let shell = until("the shell runs", || children(network.0.id()).first().copied());
    let (serve, rsh) = until("both sides run", || match children(shell)[..] {
        [serve, rsh] if path("rsh").exists() => Some((serve, rsh)),
        _ => None,
    });
    // The process that has answered `ready` may still be there too.
    let supervisor = until("the command runs", || {
        children(serve).into_iter().find(|supervisor| !children(*supervisor).is_empty())
    });
    let sockets = format!("/proc/{shell}/net/tcp");
    until("the network is as asked for", || {
        state(&std::fs::read_to_string(&sockets).unwrap()).then_some(())
    });
    std::io::Write::write_all(network.0.stdin.as_mut().unwrap(), b"now\n").unwrap();
    std::io::Read::read_exact(network.0.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
    Cut { begun: Instant::now(), host: supervisor, launcher: rsh, _network: network }
}

/// A network that is dead since a moment, and what runs on both sides.
struct Cut {
    begun: Instant,
    /// It ends after all that the command started.
    host: u32,
    launcher: u32,
    _network: Network,
}

impl Cut {
    fn is_noticed_by(&self, pid: u32) {
        let passed = until("it ends", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (state.is_empty() || state.contains(") Z ")).then_some(self.begun.elapsed())
        });
        assert!(passed < NOTICED, "{passed:?}");
    }

    fn is_noticed_by_both(&self) {
        self.is_noticed_by(self.host);
        self.is_noticed_by(self.launcher);
    }
}

/// Everything in the namespace, which ends with it.
struct Network(Child);

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_dead_network_under_output_ends_both_sides() {
    let call = r#""$AGENT" rsh w0 "exec yes" > /dev/null"#;
    cut_network_under(call, |_| true).is_noticed_by_both();
}

#[test]
fn a_dead_network_under_silence_ends_both_sides() {
    let call = r#""$AGENT" rsh w0 "exec sleep 600""#;
    cut_network_under(call, |_| true).is_noticed_by_both();
}

#[test]
fn a_dead_network_under_input_ends_both_sides() {
    let call = r#""$AGENT" rsh w0 "exec cat" < /dev/zero > /dev/null"#;
    cut_network_under(call, |_| true).is_noticed_by_both();
}

/// The kernel's table of sockets marks by this that it asks a peer without room whether there is some again.
const ASKS_FOR_ROOM: &str = " 04:";

/// The launcher waits for its own reader and loses nothing of what has arrived.
#[test]
fn a_dead_network_under_output_that_nobody_reads_ends_the_host() {
    let call = r#""$AGENT" rsh w0 "exec yes" > nobody-reads"#;
    let cut = cut_network_under(call, |sockets| sockets.contains(ASKS_FOR_ROOM));
    cut.is_noticed_by(cut.host);
}

/// What is told of the exit is lost on its way; what the command left running ends all the same.
#[test]
fn a_dead_network_under_a_farewell_ends_what_was_left_running() {
    let command = "sleep 600 > /dev/null 2>&1 & until [ -e $PWD/dead ]; do sleep 0.01; done";
    let call = format!(r#""$AGENT" rsh w0 "{command}""#);
    cut_network_under(&call, |_| true).is_noticed_by_both();
}
