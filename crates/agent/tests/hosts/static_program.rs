//! The program that goes into containers: small, and able to work in a root folder that holds nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support;
use crate::support::{Job, children, finish, finish_child, memory, signal, until};

/// The static build, made on first use.
fn static_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new(env!("CARGO")).args(["xtask", "agent"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

#[test]
fn it_is_at_most_three_megabytes_and_needs_no_library() {
    let program = fs::read(static_program()).unwrap();
    assert!(program.len() <= 3_000_000, "{} bytes", program.len());
    let mut headers = Command::new("readelf");
    headers.args(["--program-headers", "--wide"]).arg(static_program());
    let output = finish(headers);
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("INTERP"), "it asks for a loader");
}

/// A root folder with the program and one host's keys, and nothing else, not even `/proc`, `/dev` or `/tmp`.
fn empty_root(job: &Job) -> PathBuf {
    let root = job.path("root");
    fs::create_dir(&root).unwrap();
    fs::copy(static_program(), root.join("unisono-agent")).unwrap();
    fs::copy(job.path("keys/host/w0.key"), root.join("key")).unwrap();
    fs::copy(job.path("keys/launchers"), root.join("launchers")).unwrap();
    // Readable by the strange user below; a Secret volume gives the same.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o444);
    fs::set_permissions(root.join("key"), readable).unwrap();
    let enterable = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&root, enterable()).unwrap();
    fs::set_permissions(job.folder.path(), enterable()).unwrap();
    root
}

#[test]
fn it_serves_in_an_empty_root_as_any_user() {
    let mut job = Job::start_with(1, static_program());
    let root = empty_root(&job);
    let log = fs::File::create(job.path("strange.log")).unwrap();
    let strange = Command::new("/usr/sbin/chroot")
        .arg("--userspec=54321:54321")
        .arg(&root)
        .args([
            "/unisono-agent",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--key",
            "/key",
            "--launchers",
            "/launchers",
        ])
        .env_clear()
        .envs([job.watch.variable()])
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    job.hosts.push(strange);
    let place = until("it listens", || {
        let log = fs::read_to_string(job.path("strange.log")).unwrap();
        log.split_once("listening on ")?.1.lines().next()?.parse().ok()
    });
    job.write_table(&[place]);

    let output = job.rsh("w0", "A=b; export A; \"/unisono-agent\" --help");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.starts_with(b"unisono-agent: starts MPI ranks"), "{output:?}");
    let output = job.rsh("w0", "/unisono-agent --help | cat");
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("there is no shell on this host, and `|` needs one"), "{told}");
    let output = job.rsh("w0", "/no/such/program");
    assert_eq!(output.status.code(), Some(127), "{output:?}");

    // A launch that is cut leaves nothing there either, though there is no /proc to find processes by.
    let command = "/unisono-agent serve --listen 127.0.0.1:0 --key /key --launchers /launchers";
    let mut rsh = job.agent(&["rsh", "w0", command]).stderr(Stdio::null()).spawn().unwrap();
    let host = job.hosts[1].id();
    until("the launch runs", || {
        children(host).first().filter(|supervisor| !children(**supervisor).is_empty()).map(|_| ())
    });
    rsh.kill().unwrap();
    rsh.wait().unwrap();
    until("the launch is gone", || children(host).is_empty().then_some(()));
    job.write_table(&job.places);
    job.assert_leaves_nothing();
}

#[test]
fn it_waits_and_runs_as_process_1() {
    let job = Job::start_with(1, static_program());
    let mut call = Command::new("unshare");
    call.args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(static_program())
        .args(["ready", "--timeout", "30", "--", "sh", "-c", "echo $$; exit 5"])
        .envs(job.launcher_variables())
        .stdin(Stdio::null());
    let output = finish(call);
    assert_eq!((output.status.code(), &*output.stdout), (Some(5), &b"2\n"[..]), "{output:?}");
    job.assert_leaves_nothing();
}

#[test]
fn as_process_1_it_can_be_stopped_while_it_waits() {
    let job = Job::start_with(0, static_program());
    fs::create_dir_all(job.path("keys/launcher")).unwrap();
    if !job.path("keys/launcher/launcher.key").exists() {
        support::secret(support::LAUNCHER_SEED)
            .write(&job.path("keys/launcher/launcher.key"))
            .unwrap();
    }
    fs::remove_file(job.path("table")).unwrap();
    let mut call = Command::new("unshare");
    call.args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(static_program())
        .args(["ready", "--", "true"])
        .envs(job.launcher_variables())
        .stdin(Stdio::null());
    let unshare = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ready = until("it collects signals", || {
        let [ready] = children(unshare.id())[..] else {
            return None;
        };
        // Before it is executed the process is still unshare, which blocks signals too and loses them.
        let is_ours = fs::read_link(format!("/proc/{ready}/exe")).ok()? == static_program();
        let status = fs::read_to_string(format!("/proc/{ready}/status")).ok()?;
        let blocks =
            status.lines().any(|line| line.starts_with("SigBlk:") && !line.ends_with("0000"));
        (is_ours && blocks).then_some(ready)
    });
    signal(ready, "TERM");
    assert_eq!(finish_child(unshare).status.code(), Some(128 + 15));
}

#[test]
fn memory_of_idle_processes_stays_within_its_budget() {
    const HELD: u64 = 8;
    const LIMIT: u64 = (3 << 20) / 10;
    let job = Job::start_with(1, static_program());
    let host = job.hosts[0].id();
    let idle = memory(host);
    assert!(idle > 0 && idle <= 1 << 20, "an idle host takes {idle} bytes");
    let launches: Vec<_> = (0..HELD)
        .map(|_| {
            let mut rsh = job.agent(&["rsh", "w0", "echo up; exec sleep 600"]);
            let mut rsh = rsh.stdout(Stdio::piped()).spawn().unwrap();
            let mut up = [0; 3];
            std::io::Read::read_exact(rsh.stdout.as_mut().unwrap(), &mut up).unwrap();
            rsh
        })
        .collect();
    // Each gives back what it started with once it is quiet; until then its code counts too.
    let per_launch = |processes: &[u32]| processes.iter().copied().map(memory).sum::<u64>() / HELD;
    let launchers: Vec<u32> = launches.iter().map(std::process::Child::id).collect();
    for (side, processes) in [("host", children(host)), ("launcher", launchers)] {
        assert_eq!(processes.len() as u64, HELD, "{side}");
        until(&format!("a launch takes at most {LIMIT} bytes at the {side}"), || {
            (per_launch(&processes) <= LIMIT).then_some(())
        });
    }
    for mut rsh in launches {
        rsh.kill().unwrap();
        rsh.wait().unwrap();
    }
    job.assert_leaves_nothing();
}
