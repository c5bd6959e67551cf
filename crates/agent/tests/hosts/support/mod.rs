//! A job on this machine for tests: its keys, its hosts (real `serve` processes on loopback), its table, and eyes on all of it.

pub(crate) mod attacker;
pub(crate) mod proxy;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use unisono_agent::keys::{JobKeys, SecretKey};
use unisono_agent::proof::{self, Event, Record};
use unisono_agent::table::{Host, HostTable};
use unisono_testbed::leaks::Watch;

/// How long anything may take on a busy machine before a test calls it hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long processes may outlive their launcher: the promise is 5 s.
pub(crate) const ALL_GONE: Duration = Duration::from_secs(5);

/// The seed of the launcher's key; hosts have `HOST_SEED` and up.
pub(crate) const LAUNCHER_SEED: u8 = 1;
pub(crate) const HOST_SEED: u8 = 100;

/// The program as cargo built it for tests.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_unisono-agent"))
}

/// A running job.
pub(crate) struct Job {
    pub(crate) folder: TempDir,
    pub(crate) watch: Watch,
    pub(crate) hosts: Vec<Child>,
    pub(crate) places: Vec<SocketAddr>,
    pub(crate) program: PathBuf,
}

impl Job {
    /// Starts hosts `w0`, `w1`, … and writes the table.
    pub(crate) fn start(hosts: usize) -> Self {
        Self::start_with(hosts, program())
    }

    /// The same with another build of the program.
    pub(crate) fn start_with(hosts: usize, program: &Path) -> Self {
        let mut job = Self {
            folder: tempfile::tempdir().unwrap(),
            watch: Watch::begin(&[]),
            hosts: Vec::new(),
            places: Vec::new(),
            program: program.to_owned(),
        };
        keys(hosts).write(&job.path("keys")).unwrap();
        for index in 0..hosts {
            job.start_host(index, &[]);
        }
        job.write_table(&job.places);
        job
    }

    /// Starts one host and waits until it listens.
    fn start_host(&mut self, index: usize, own_command: &[&str]) {
        let log = fs::File::create(self.log_path(index)).unwrap();
        let child = self.serve(index).args(own_command).stderr(log).spawn().unwrap();
        self.hosts.push(child);
        let place = until("the host listens", || {
            let log = self.log(index);
            let (_, place) = log.split_once("listening on ")?;
            place.lines().next()?.parse().ok()
        });
        self.places.push(place);
    }

    /// The call that serves as host `index`, not yet started.
    pub(crate) fn serve(&self, index: usize) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--key"])
            .arg(self.path(&format!("keys/host/w{index}.key")))
            .arg("--launchers")
            .arg(self.path("keys/launchers"))
            .envs([self.watch.variable()])
            .stdin(Stdio::null());
        command
    }

    /// Writes a table in which host `wN` is at `places[N]`.
    pub(crate) fn write_table(&self, places: &[SocketAddr]) {
        let hosts = places
            .iter()
            .enumerate()
            .map(|(index, place)| Host {
                name: format!("w{index}"),
                address: place.ip(),
                slots: 2,
                key: host_key(index).public().into(),
                port: Some(place.port()),
                aliases: Vec::new(),
            })
            .collect();
        let table = HostTable::new("test".to_owned(), 1, 1, hosts).unwrap();
        fs::write(self.path("table"), table.to_string()).unwrap();
    }

    /// A call of the agent as the launcher makes it.
    pub(crate) fn agent(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.launcher_variables()).stdin(Stdio::null());
        command
    }

    /// What the launcher has in its environment.
    pub(crate) fn launcher_variables(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        vec![
            ("UNISONO_AGENT_LAUNCHER_KEY".into(), self.path("keys/launcher/launcher.key").into()),
            ("UNISONO_AGENT_TABLE".into(), self.path("table").into()),
            ("UNISONO_AGENT_PROOF".into(), self.path("proof").into()),
            self.watch.variable(),
        ]
    }

    /// Runs a command on a host to its end.
    pub(crate) fn rsh(&self, host: &str, command: &str) -> Output {
        finish(self.agent(&["rsh", host, command]))
    }

    /// Asserts that an honest launch works.
    pub(crate) fn assert_answers(&self) {
        let output = self.rsh("w0", "echo honest; exit 3");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(output.stdout, b"honest\n");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a host has logged.
    pub(crate) fn log(&self, index: usize) -> String {
        fs::read_to_string(self.log_path(index)).unwrap()
    }

    /// The lines of a host's log that tell a refusal.
    pub(crate) fn refusals(&self, index: usize) -> Vec<String> {
        self.log(index)
            .lines()
            .filter(|line| line.contains(": refused "))
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn proof(&self) -> Vec<Record> {
        proof::read(&self.path("proof"), 0).unwrap_or_default()
    }

    pub(crate) fn has_proof(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.proof().iter().any(|record| wanted(&record.event))
    }

    fn log_path(&self, index: usize) -> PathBuf {
        self.path(&format!("host-{index}.log"))
    }

    /// Stops the hosts and asserts that nothing is left of the job.
    pub(crate) fn assert_leaves_nothing(mut self) {
        for host in &mut self.hosts {
            signal(host.id(), "TERM");
            host.wait().unwrap();
        }
        self.watch.assert_nothing_left(ALL_GONE);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            drop(host.kill());
            drop(host.wait());
        }
    }
}

/// The job's keys, the same in every test.
pub(crate) fn keys(hosts: usize) -> JobKeys {
    JobKeys {
        launchers: BTreeMap::from([("launcher".to_owned(), secret(LAUNCHER_SEED))]),
        hosts: (0..hosts).map(|index| (format!("w{index}"), host_key(index))).collect(),
    }
}

pub(crate) fn host_key(index: usize) -> SecretKey {
    secret(HOST_SEED + u8::try_from(index).unwrap())
}

pub(crate) fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32]).unwrap()
}

/// Waits for something to become true; panics when it does not.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command to its end; one that hangs is killed and fails the test.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    finish_child(child)
}

/// The same for one that runs already.
pub(crate) fn finish_child(child: Child) -> Output {
    let pid = child.id();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    match receive.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(pid, "KILL");
            panic!("process {pid} hung");
        }
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// The direct children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// A process and all below it.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children(*pid));
        next += 1;
    }
    all
}

/// The memory of a process in bytes, shared pages counted by share; nothing when it is gone.
pub(crate) fn memory(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes: u64 =
        line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    kilobytes << 10
}
