//! Tests of the isolated hosts themselves.

use std::os::unix::process::ExitStatusExt;

use super::*;
use crate::leaks::Watch;

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|it| format!("node-{it}"))
}

fn start(count: usize, network: Network, furniture: &Furniture) -> Hosts {
    Hosts::start(Seats::reserve(names(count), network).unwrap(), furniture, |_| vec![]).unwrap()
}

fn shell(host: &Host, script: &str) -> String {
    let output = host.command("/bin/sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_host_has_its_own_name_processes_and_temporary_files() {
    let kept = tempfile::tempdir().unwrap();
    std::fs::write(kept.path().join("kept"), "here").unwrap();
    let furniture =
        Furniture { shared_folders: vec![kept.path().to_owned()], ..Furniture::default() };
    let hosts = start(2, Network::Shared, &furniture);

    assert_eq!(shell(&hosts[0], "hostname"), "node-0");
    assert_eq!(shell(&hosts[0], "touch /tmp/mine /dev/shm/mine; ls /dev/shm"), "mine");
    assert_eq!(shell(&hosts[1], "ls /dev/shm; test -e /tmp/mine || echo none"), "none");
    assert_eq!(shell(&hosts[1], "set -- /proc/[0-9]*; echo $#"), "2", "process 1 and this shell");
    assert_eq!(shell(&hosts[1], &format!("cat {}/kept", kept.path().display())), "here");
    assert_eq!(
        shell(&hosts[1], "getent hosts node-0"),
        format!("{:<15} node-0", hosts[0].address().to_string())
    );
}

#[test]
fn exit_codes_and_signals_of_a_command_pass_through() {
    let hosts = start(1, Network::Shared, &Furniture::default());
    let status = |script: &str| hosts[0].command("sh").args(["-c", script]).status().unwrap();
    assert_eq!(status("exit 7").code(), Some(7));
    assert_eq!(status("kill -9 $$").signal(), Some(9));
    assert_eq!(status("kill -11 $$").signal(), Some(11));

    let mut sleeper = hosts[0].command("sleep").arg("60").spawn().unwrap();
    wait_until("the sleeper runs", || {
        crate::leaks::command_lines_in(hosts[0].pid()).iter().any(|it| it == "sleep 60")
    });
    let pid = rustix::process::Pid::from_child(&sleeper);
    // Not the interrupt: a shell in the background lets its commands ignore that.
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(sleeper.wait().unwrap().signal(), Some(15));
}

#[test]
fn hosts_on_a_private_network_reach_each_other_and_nothing_else() {
    let hosts = start(3, Network::Private, &Furniture::default());
    assert_eq!(shell(&hosts[2], "ip -4 -o addr show eth0 | awk '{print $4}'"), "10.77.0.3/16");
    assert_eq!(shell(&hosts[0], "ip -o link | wc -l"), "2", "lo and eth0");
    let listener = "exec 2>&1; python3 -c '
import socket
s = socket.create_server((\"10.77.0.1\", 7000)); print(\"up\", flush=True)
c, who = s.accept(); c.sendall(b\"from \" + who[0].encode())' ";
    let mut server =
        hosts[0].command("sh").args(["-c", listener]).stdout(Stdio::piped()).spawn().unwrap();
    let mut up = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut up).unwrap();
    assert_eq!(up.trim(), "up");
    let client = "python3 -c 'import socket; print(socket.create_connection((\"node-0\", 7000)).recv(99).decode())'";
    assert_eq!(shell(&hosts[2], client), "from 10.77.0.3");
    assert!(server.wait().unwrap().success());
}

#[test]
fn nothing_is_left_of_hosts_that_were_dropped() {
    let mut watch = Watch::begin(&[Path::new("/dev/shm")]);
    let environment = BTreeMap::from([watch.variable()]);
    for network in [Network::Shared, Network::Private] {
        let hosts = start(
            4,
            network,
            &Furniture { environment: environment.clone(), ..Furniture::default() },
        );
        watch.adopt(&hosts);
        let script = "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep 600' >/dev/null 2>&1 & echo started";
        assert_eq!(shell(&hosts[1], script), "started");
        assert!(!watch.left().is_empty(), "a watch that sees nothing while hosts run is blind");
        drop(hosts);
    }
    watch.assert_nothing_left(Duration::from_secs(5));
}

#[test]
fn processor_time_of_a_host_is_told_at_its_end() {
    let seats = Seats::reserve(names(1), Network::Shared).unwrap();
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; sleep 600";
    let command = ["/bin/sh", "-c", burn].map(OsString::from);
    let hosts = Hosts::start(seats, &Furniture::default(), |_| command.to_vec()).unwrap();
    wait_until("the loop is over", || hosts[0].log() == "done\n");
    assert!(hosts.end() > Duration::from_millis(1));
}

#[test]
fn a_host_ends_when_its_process_one_does_and_says_why() {
    let seats = Seats::reserve(names(1), Network::Shared).unwrap();
    let command = ["/bin/sh", "-c", "echo gone >&2; exit 3"].map(OsString::from);
    let hosts = Hosts::start(seats, &Furniture::default(), |_| command.to_vec()).unwrap();
    wait_until("process 1 has written", || hosts[0].log() == "gone\n");
    wait_until("the host is gone", || !Path::new(&format!("/proc/{}", hosts[0].pid())).exists());

    let seats = Seats::reserve(names(1), Network::Shared).unwrap();
    let error = Hosts::start(seats, &Furniture::default(), |_| vec!["/no/such/program".into()])
        .unwrap_err();
    assert!(error.to_string().contains("run /no/such/program: No such file"), "{error}");
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(std::time::Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
