//! Attacks by those who call `rsh`, and the hygiene of keys: nothing but the named command on a host of the table is ever run, and secrets stay in their files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::support::{
    Job, LAUNCHER_SEED, finish, finish_child, host_key, secret, signal, tree, until,
};

/// Asserts that a call is refused with a clear word and reaches no host.
fn assert_refused(job: &Job, arguments: &[OsString], says: &str) {
    let mut call = job.agent(&["rsh"]);
    call.args(arguments);
    let output = finish(call);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255), "{told}");
    assert!(told.contains(says), "expected `{says}` in: {told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.len() < 1000, "a message of {} bytes", told.len());
    assert!(!job.path("evidence").exists(), "something was run");
    assert!(job.proof().is_empty(), "a host was reached");
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn hostile_arguments_run_nothing() {
    let job = Job::start(1);
    let touch = format!("touch {}", job.path("evidence").display());
    let proxy = format!("-oProxyCommand={touch}");
    let local = format!("LocalCommand={touch}");
    for (arguments, says) in [
        (words(&[&proxy, "w0", "true"]), "ProxyCommand is not done"),
        (words(&["w0", &proxy, "true"]), "ProxyCommand is not done"),
        (
            words(&["-o", &local, "-o", "PermitLocalCommand=yes", "w0", "true"]),
            "LocalCommand is not done",
        ),
        (words(&["--", &proxy, "true"]), "is not a host of this job"),
        (words(&["w9", &touch]), "`w9` is not a host of this job; its hosts are w0"),
        (words(&["localhost", &touch]), "is not a host of this job"),
        (words(&["127.0.0.9", &touch]), "is not a host of this job"),
        (words(&["w0\nw1", &touch]), "is not a host of this job"),
        (words(&["", &touch]), "is not a host of this job"),
        (words(&["-L", "1:w0:1", "w0", &touch]), "port forwarding"),
        (words(&["-s", "w0", "sftp"]), "a subsystem"),
        (words(&[&"w".repeat(100_000), &touch]), "is not a host of this job"),
        (vec![OsString::from_vec(vec![0xff, 0xfe]), "true".into()], "is not a host of this job"),
    ] {
        assert_refused(&job, &arguments, says);
    }
    job.assert_answers();
    job.assert_leaves_nothing();
}

#[test]
fn a_command_of_a_megabyte_is_refused_before_the_wire() {
    let job = Job::start(1);
    let piece = "x".repeat(100_000);
    let mut arguments = words(&["w0"]);
    arguments.extend(std::iter::repeat_n(OsString::from(&piece), 11));
    assert_refused(&job, &arguments, "put it in a script");
    job.assert_leaves_nothing();
}

#[test]
fn the_longest_command_that_linux_takes_is_run() {
    let job = Job::start(1);
    let filler = "x".repeat(131_071 - "true ".len());
    // One argument may not be longer than that, so the blank between two makes it whole.
    let output = finish(job.agent(&["rsh", "w0", "true", &filler]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let one_more = format!("{filler}x");
    let output =
        finish(job.agent(&["rsh", "w0", "true", &one_more[..65_536], &one_more[65_536..]]));
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    job.assert_leaves_nothing();
}

#[test]
fn newlines_and_quotes_reach_the_shell_as_they_are() {
    let job = Job::start(1);
    let output = job.rsh("w0", "printf '%s|' 'a\nb' \"c d\" e\\ f\necho '$HOME'");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb|c d|e f|$HOME\n");
    job.assert_leaves_nothing();
}

#[test]
fn called_as_ssh_it_runs_commands_and_scripts() {
    let job = Job::start(1);
    let folder = job.path("installed");
    let output = finish(job.agent(&["install", folder.to_str().unwrap()]));
    assert!(output.status.success(), "{output:?}");
    let mode = fs::metadata(folder.join("unisono-agent")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let ssh = |arguments: &[&str], script: Option<&str>| {
        let file = job.path("script");
        fs::write(&file, script.unwrap_or_default()).unwrap();
        let mut ssh = std::process::Command::new(folder.join("bin/ssh"));
        ssh.args(arguments).envs(job.launcher_variables()).stdin(fs::File::open(file).unwrap());
        finish(ssh)
    };
    let output = ssh(
        &["-o", "StrictHostKeyChecking=no", "-p", "22", "root@w0.job.svc", "echo", "$((6*7))"],
        None,
    );
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"42\n"[..]), "{output:?}");
    let output = ssh(&["w0"], Some("word=remembered\necho $word\nexit 7\n"));
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(7), &b"remembered\n"[..]),
        "{output:?}"
    );
    assert!(ssh(&["-V"], None).status.success());
    let mut installed: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
    installed.sort();
    assert_eq!(installed, ["bin", "launchers", "unisono-agent", "unisono-rsh"]);
    job.assert_leaves_nothing();
}

#[test]
fn called_as_a_launcher_it_asks_the_real_one_which_rank_wrote_each_line() {
    let job = Job::start(1);
    let folder = job.path("installed");
    let output = finish(job.agent(&["install", folder.to_str().unwrap()]));
    assert!(output.status.success(), "{output:?}");
    let real = job.path("real");
    fs::create_dir(&real).unwrap();
    let script =
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4' || echo \"$@\"\n";
    fs::write(real.join("mpirun"), script).unwrap();
    fs::set_permissions(real.join("mpirun"), fs::Permissions::from_mode(0o755)).unwrap();
    let stand_ins = folder.join("launchers");
    let path = format!("{}:{}:/usr/bin:/bin", stand_ins.display(), real.display());
    let said = |arguments: &[&str]| {
        let mut call = std::process::Command::new(stand_ins.join("mpirun"));
        call.args(arguments).env("PATH", &path);
        String::from_utf8(finish(call).stdout).unwrap()
    };
    assert_eq!(said(&["-np", "2", "./a"]), "--tag-output -np 2 ./a\n");
    assert_eq!(said(&["-prepend-rank", "./a"]), "-prepend-rank ./a\n");
    let nowhere = std::process::Command::new(stand_ins.join("mpiexec"))
        .env("PATH", &stand_ins)
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(127), "{nowhere:?}");
    job.assert_leaves_nothing();
}

#[test]
fn ranks_get_the_hosts_environment_and_no_other() {
    let job = Job::start(1);
    let mut call =
        job.agent(&["rsh", "w0", "echo ${ONLY_HERE-unset} ${UNISONO_TESTBED_WATCH+set}"]);
    call.env("ONLY_HERE", "launcher");
    assert_eq!(String::from_utf8_lossy(&finish(call).stdout), "unset set\n");
    job.assert_leaves_nothing();
}

#[test]
fn secrets_are_in_no_argument_environment_log_or_readable_memory() {
    let job = Job::start(1);
    let mut rsh = job
        .agent(&["rsh", "w0", "echo up; sleep 600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ranks = until("the command runs", || {
        let all = tree(job.hosts[0].id());
        (all.len() >= 3).then_some(all)
    });
    let secrets: Vec<String> = [secret(LAUNCHER_SEED), host_key(0)]
        .iter()
        .map(|key| key.to_text().split_whitespace().last().unwrap().to_owned())
        .collect();
    for pid in ranks.iter().copied().chain([rsh.id()]) {
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{file} of {pid}");
        }
    }
    // The agent's own processes belong to root in /proc when they are not dumpable: others of the same user cannot look in,
    // and the kernel writes no core of them. What they run can be dumped and debugged as ever.
    let core_filter = |pid: u32| fs::read_to_string(format!("/proc/{pid}/coredump_filter"));
    assert!(core_filter(rsh.id()).is_ok());
    signal(rsh.id(), "KILL");
    drop(rsh.wait());
    let log = job.log(0);
    assert!(!secrets.iter().any(|secret| log.contains(secret)), "{log}");
    job.assert_leaves_nothing();
}

#[test]
fn a_crash_writes_no_core() {
    let job = Job::start(1);
    let folder = job.path("cores");
    fs::create_dir(&folder).unwrap();
    // The same signal with and without the agent's protection: the wait status says whether the kernel dumped a core.
    let crash = |program: &mut std::process::Command| {
        use std::os::unix::process::ExitStatusExt as _;
        let mut child = program.current_dir(&folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        signal(child.id(), "ABRT");
        child.wait().unwrap().core_dumped()
    };
    let with_cores = |command: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("ulimit -c unlimited; {command}")]).stdin(Stdio::null());
        shell
    };
    assert!(crash(&mut with_cores("echo up; exec sleep 600")), "no program dumps cores here");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let mut rsh =
        with_cores(&format!("exec {} rsh w0 'echo up; sleep 600'", job.program.display()));
    assert!(!crash(rsh.envs(job.launcher_variables())), "a core was dumped");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    job.assert_leaves_nothing();
}

#[test]
fn keys_makes_files_for_their_owner_only_and_replaces_none() {
    let job = Job::start(0);
    let folder = job.path("made");
    let arguments =
        ["keys", "--launcher", "l", "--host", "a", "--host", "b", folder.to_str().unwrap()];
    assert!(finish(job.agent(&arguments)).status.success());
    for file in ["launcher/l.key", "host/a.key", "host/b.key"] {
        let mode = fs::metadata(folder.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o400, "{file}");
    }
    let before = fs::read(folder.join("host/a.key")).unwrap();
    let again = finish(job.agent(&arguments));
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stdout.is_empty());
    assert_eq!(fs::read(folder.join("host/a.key")).unwrap(), before);
}

#[test]
fn ready_waits_for_its_own_table_and_gives_up_in_words() {
    let job = Job::start(1);
    let give_up = |arguments: &[&str]| {
        let output = finish(job.agent(arguments));
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = give_up(&["ready", "--timeout", "1", "--attempt", "2", "--", "true"]);
    assert!(told.contains("gave up after 1 s: waiting for the host table"), "{told}");
    assert!(told.contains("has attempt 1, ours is 2"), "{told}");
    let told = give_up(&["ready", "--timeout", "1", "--identity", "mine", "--", "true"]);
    assert!(told.contains("has identity test, ours is mine"), "{told}");
    // A port on which nobody answers: taken and given back.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    job.write_table(&[nobody]);
    let told = give_up(&["ready", "--timeout", "6", "--", "true"]);
    let waiting = format!("waiting for w0 at {nobody} (connection refused)");
    assert_eq!(told.matches(&waiting).count(), 2, "after 5 s and at the end: {told}");
    job.assert_leaves_nothing();
}

#[test]
fn ready_starts_as_soon_as_the_table_is_there_and_writes_the_hostfiles() {
    let job = Job::start(2);
    fs::rename(job.path("table"), job.path("later")).unwrap();
    let (open_mpi, hydra) = (job.path("hostfile"), job.path("hydra"));
    let mut call =
        job.agent(&["ready", "--identity", "test", "--attempt", "1", "--epoch", "1", "--hostfile"]);
    call.arg(&open_mpi).arg("--hydra-hostfile").arg(&hydra).args(["--", "echo", "ran"]);
    let ready = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fs::rename(job.path("later"), job.path("table")).unwrap();
    let output = finish_child(ready);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ran\n"[..]), "{output:?}");
    // Both are at one address, so they go by name.
    assert_eq!(fs::read_to_string(open_mpi).unwrap(), "w0 slots=2\nw1 slots=2\n");
    assert_eq!(fs::read_to_string(hydra).unwrap(), "w0:2\nw1:2\n");
    job.assert_leaves_nothing();
}
