//! Faults of the network itself: a wire that goes dead without a word, idle or in the middle of output, ends both sides.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::{children, program, until};

/// Silence is noticed after 5 s, looked for every second, and the tree has 2 s to end.
const NOTICED: Duration = Duration::from_secs(12);

/// Runs a command through the agent in a network of its own, cuts that network, and gives how long each side took to end.
fn cut_network_under(command: &str) -> (Duration, Duration) {
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
        "$AGENT" rsh w0 "$COMMAND" > /dev/null &
        echo $! > rsh
        read cut
        ip link set lo down
        echo cut
        wait
    "#;
    let network = Command::new("unshare")
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script])
        .current_dir(folder.path())
        .env("AGENT", program())
        .env("COMMAND", command)
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
    let rank = until("the command runs", || {
        children(serve).into_iter().find_map(|supervisor| children(supervisor).first().copied())
    });
    std::io::Write::write_all(network.0.stdin.as_mut().unwrap(), b"now\n").unwrap();
    std::io::Read::read_exact(network.0.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
    let begun = Instant::now();
    let ends = |pid: u32| {
        until("it ends", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (state.is_empty() || state.contains(") Z ")).then_some(begun.elapsed())
        })
    };
    (ends(rank), ends(rsh))
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
    let (host, launcher) = cut_network_under("exec yes");
    assert!(host < NOTICED && launcher < NOTICED, "host {host:?}, launcher {launcher:?}");
}

#[test]
fn a_dead_network_under_silence_ends_both_sides() {
    let (host, launcher) = cut_network_under("exec sleep 600");
    assert!(host < NOTICED && launcher < NOTICED, "host {host:?}, launcher {launcher:?}");
}
