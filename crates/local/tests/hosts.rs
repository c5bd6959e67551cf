//! Real hosts on this machine. The test program is also their keeper and their process 1, as `unisono` is.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use unisono_local::host::{self, HostFile, HostSpec, Isolation};

fn main() -> ExitCode {
    if let Some(code) = host::take_over(std::env::args_os()) {
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let tests: [(&str, Test); 7] = [
        ("a_host_has_a_name_and_processes_of_its_own", own_name_and_processes),
        ("a_host_has_files_that_the_machine_does_not_have", own_files),
        ("a_private_tmp_still_shows_the_folders_in_use", tmp_shows_folders_in_use),
        ("exit_codes_and_signals_pass", exit_codes_pass),
        ("a_killed_keeper_takes_everything_along", killed_keeper_takes_everything),
        ("an_ordinary_user_can_have_hosts", ordinary_user),
        ("a_program_that_is_not_there_is_told", missing_program_is_told),
    ];
    let trials = tests.map(|(name, test)| Trial::test(name, test)).into();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Test = fn() -> Result<(), Failed>;

/// A host that runs a line of shell, with what it needs around it.
struct Bench {
    folder: tempfile::TempDir,
    spec: HostSpec,
}

impl Bench {
    fn new(line: &str) -> Self {
        let folder = tempfile::tempdir().expect("make a folder");
        let stage = folder.path().join("stage");
        std::fs::create_dir(&stage).expect("make the stage");
        let spec = HostSpec {
            name: "ring-worker-3".to_owned(),
            isolation: Isolation::Namespaces,
            stage,
            etc_hosts: "127.0.0.1 localhost\n127.9.0.4 ring-worker-3\n".to_owned(),
            files: vec![
                file("/etc/mpi/hostfile", "ring-worker-3 slots=2\n"),
                file("/mpi/hostfile", "ring-worker-3\n"),
            ],
            programs: Vec::new(),
            folders: Vec::new(),
            links: Vec::new(),
            visible_in_tmp: vec![folder.path().to_owned()],
            shm_mib: 7,
            working_dir: "/".into(),
            environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            argv: ["/bin/sh", "-c", line].map(str::to_owned).into(),
            cable: None,
            bounds: None,
            open_files: None,
            own_folders: Vec::new(),
        };
        Self { folder, spec }
    }

    fn command(&self) -> Command {
        let path = self.folder.path().join("host.json");
        std::fs::write(&path, serde_json::to_vec(&self.spec).expect("write JSON"))
            .expect("write the spec");
        host::command(&std::env::current_exe().expect("the test program"), &path)
    }

    fn run(&self) -> Output {
        self.command().stdin(Stdio::null()).output().expect("run the host")
    }

    fn says(&self) -> Result<String, Failed> {
        let output = self.run();
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(format!("the host ended with {}: {talk}", output.status).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn file(path: &str, text: &str) -> HostFile {
    HostFile { path: path.into(), mode: 0o444, text: text.to_owned() }
}

fn same<T: PartialEq + std::fmt::Debug>(left: T, right: T) -> Result<(), Failed> {
    if left == right { Ok(()) } else { Err(format!("{left:?} is not {right:?}").into()) }
}

fn own_name_and_processes() -> Result<(), Failed> {
    let said = Bench::new(
        "hostname; echo $$; ls /proc | grep -c '^[0-9]'; cat /etc/hosts; cat /etc/hostname",
    )
    .says()?;
    let lines: Vec<&str> = said.lines().collect();
    same(lines.first(), Some(&"ring-worker-3"))?;
    same(lines.get(1), Some(&"1"))?;
    let processes: usize = lines.get(2).and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
    same(processes <= 3, true)?;
    same(
        lines.get(3..),
        Some(&["127.0.0.1 localhost", "127.9.0.4 ring-worker-3", "ring-worker-3"][..]),
    )
}

fn own_files() -> Result<(), Failed> {
    let before = listing("/");
    let said = Bench::new(
        "cat /etc/mpi/hostfile /mpi/hostfile; test -e /etc/passwd; stat -f -c %b /dev/shm",
    )
    .says()?;
    let lines: Vec<&str> = said.lines().collect();
    same(lines.get(..2), Some(&["ring-worker-3 slots=2", "ring-worker-3"][..]))?;
    let blocks: u64 = lines.get(2).and_then(|it| it.parse().ok()).unwrap_or(0);
    same(blocks * 4096, 7 << 20)?;
    same(
        Path::new("/etc/mpi/hostfile").exists() && !before.iter().any(|it| it.ends_with("mpi")),
        false,
    )?;
    same(listing("/"), before)
}

fn listing(folder: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("list").filter_map(|it| Some(it.ok()?.path())).collect();
    entries.sort();
    entries
}

fn tmp_shows_folders_in_use() -> Result<(), Failed> {
    let mut bench =
        Bench::new("ls -A /tmp | wc -l; cat job.txt; echo done > result.txt; touch /tmp/private");
    std::fs::write(bench.folder.path().join("job.txt"), "from the machine\n")?;
    bench.spec.working_dir = bench.folder.path().to_owned();
    same(bench.says()?, "1\nfrom the machine\n".to_owned())?;
    same(std::fs::read_to_string(bench.folder.path().join("result.txt"))?, "done\n".to_owned())?;
    same(Path::new("/tmp/private").exists(), false)
}

fn exit_codes_pass() -> Result<(), Failed> {
    same(Bench::new("exit 3").run().status.code(), Some(3))?;
    same(Bench::new("sh -c 'kill -SEGV $$'; exit $?").run().status.code(), Some(139))
}

fn killed_keeper_takes_everything() -> Result<(), Failed> {
    let bench =
        Bench::new("trap '' TERM; setsid sh -c 'sleep 600 & sleep 600' & echo up; wait; wait");
    let mut keeper = bench.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let output = keeper.stdout.take().ok_or("no output")?;
    let mut output = BufReader::new(output);
    output.read_line(&mut line)?;
    same(line.as_str(), "up\n")?;
    keeper.kill()?;
    keeper.wait()?;
    // Everything in the host holds the pipe open: its end is theirs.
    same(output.read_line(&mut line)?, 0)
}

fn ordinary_user() -> Result<(), Failed> {
    let mut bench = Bench::new("hostname; id -u; touch /tmp/x && cat /etc/mpi/hostfile");
    bench.spec.isolation = Isolation::UserNamespace;
    for path in [bench.folder.path(), &bench.spec.stage] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534))?;
    }
    // The test program may lie where nobody else can read; a copy in the folder can be run by anybody.
    let program = bench.folder.path().join("program");
    std::fs::copy(std::env::current_exe()?, &program)?;
    let spec = bench.folder.path().join("host.json");
    std::fs::write(&spec, serde_json::to_vec(&bench.spec)?)?;
    let output =
        host::command(&program, &spec).uid(65534).gid(65534).stdin(Stdio::null()).output()?;
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    same((said.as_str(), talk.as_str()), ("ring-worker-3\n65534\nring-worker-3 slots=2\n", ""))
}

fn missing_program_is_told() -> Result<(), Failed> {
    let mut bench = Bench::new("");
    bench.spec.argv = vec!["/no/such/program".to_owned()];
    let output = bench.run();
    same(output.status.code(), Some(host::COULD_NOT_START))?;
    same(String::from_utf8_lossy(&output.stderr).contains("/no/such/program"), true)
}
