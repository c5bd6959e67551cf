//! From a plan's host to the description of a real one: environment, files, keys, programs and the command. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use unisono_agent::keys::JobKeys;
use unisono_agent::tags::TagForm;
use unisono_plan::bind::{Addresses, BoundFile, CalledBy, bind};
use unisono_plan::hostfile::aliases;
use unisono_plan::{Argv, Host, HostRuns, Incarnation, Limits, Plan, env};

use crate::devices;
use crate::gpus::GpuShares;
use crate::host::{Bounds, Cable, HostFile, HostSpec, Isolation};
use crate::means::{ControlGroups, Network};
use crate::seats::PRIVATE_PREFIX;
use crate::shim;
use crate::untagger::Reading;

/// Size of `/dev/shm` when the file does not state it; OpenPAI's and Docker's default.
const SHM_MIB: u64 = 64;

/// What is the same for all hosts of a run.
#[derive(Clone, Debug)]
pub struct Machine {
    /// This program: keeper, process 1, agent and stand-in for ssh.
    pub program: PathBuf,
    /// How far hosts are kept apart.
    pub isolation: Isolation,
    /// The network they are on.
    pub network: Network,
    /// Where limits can be kept; absent when they are not wanted.
    pub limits: Option<ControlGroups>,
    /// GPUs by host.
    pub gpus: GpuShares,
    /// The environment that commands begin with: the user's own.
    pub environment: Vec<(String, String)>,
    /// Folders that stay visible under `/tmp`.
    pub in_use: Vec<PathBuf>,
    /// An empty directory on which roots are built.
    pub stage: PathBuf,
    /// Where commands run when the file does not say.
    pub working_dir: PathBuf,
    /// The MPI that was found.
    pub mpi: Option<crate::mpi::Mpi>,
    /// Whether lines are wanted with the rank that wrote them.
    pub tag_ranks: bool,
    /// Whether progress is wanted as it is drawn, on standard output and error, not only lines that have ended.
    pub at_once: [bool; 2],
    /// Whether the launch line reads our standard input.
    pub passes_stdin: bool,
    /// How many files commands may have open, where this process may have more.
    pub open_files: Option<u64>,
}

impl Machine {
    /// What a launch line reads.
    pub(crate) fn stdin(&self) -> Stdio {
        if self.passes_stdin { Stdio::inherit() } else { Stdio::null() }
    }
}

/// A description, and what the engine must know about it.
pub(crate) struct Furnished {
    pub(crate) spec: HostSpec,
    pub(crate) has_command: bool,
    /// Whether its command may launch ranks.
    pub(crate) launches: bool,
    /// How its standard output and error are read.
    pub(crate) reading: [Reading; 2],
}

/// One start of one host.
#[derive(Clone, Copy)]
pub(crate) struct Start<'run> {
    pub(crate) incarnation: Incarnation,
    /// How many attempts went before.
    pub(crate) attempt: u32,
    pub(crate) address: SocketAddr,
    /// The host's folder in the run's.
    pub(crate) folder: &'run Path,
    /// The process that holds the job's private network, if it has one.
    pub(crate) hub: Option<u32>,
    /// Where the number of processes that were killed for want of memory is kept.
    pub(crate) kills: &'run Path,
}

/// Where Unisono's own files are, as the host sees them.
struct Places {
    bin: PathBuf,
    agent: PathBuf,
    job: PathBuf,
    temporary: Option<PathBuf>,
}

impl Places {
    fn of(plan: &Plan, machine: &Machine, folder: &Path) -> Self {
        let home = PathBuf::from(&plan.facts.home);
        let bin = home.join("bin");
        if machine.isolation == Isolation::Processes {
            // All hosts see the same files: what is a host's own is in its folder.
            let (agent, temporary) = (folder.join("agent"), Some(folder.join("tmp")));
            return Self { bin, agent, job: folder.to_owned(), temporary };
        }
        Self { bin, agent: home.join("agent"), job: home.join("job"), temporary: None }
    }
}

/// What all hosts of one job get, made once: each of these grows with the number of hosts.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) keys: JobKeys,
    pub(crate) addresses: Addresses,
    etc_hosts: String,
    files: BTreeMap<String, BoundFile>,
}

impl Shared {
    pub(crate) fn new(plan: &Plan, keys: JobKeys, addresses: Addresses) -> Self {
        // Every host has an address before any is described, so binding cannot fail here.
        let bound = bind(plan, &addresses, CalledBy::Name);
        let files = bound.map(|bound| bound.files).unwrap_or_default();
        Self { etc_hosts: etc_hosts(plan, &addresses), files, keys, addresses }
    }
}

/// Describes a host.
pub(crate) fn host(
    plan: &Plan,
    host: &Host,
    machine: &Machine,
    shared: &Shared,
    start: Start<'_>,
) -> Furnished {
    let places = Places::of(plan, machine, start.folder);
    let command = command(plan, host, &places, start);
    let launches = plan.may_launch(host.member);
    let bin = |name: &str| places.bin.join(name);
    let working_dir = working_dir(plan, host, machine);
    let names = ["ssh", "rsh", "unisono-rsh", "unisono-rank"].into_iter().chain(shim::NAMES);
    let spec = HostSpec {
        name: host.name.clone(),
        isolation: machine.isolation,
        stage: machine.stage.clone(),
        etc_hosts: shared.etc_hosts.clone(),
        files: files(plan, host, &places, shared),
        programs: vec![(machine.program.clone(), bin("unisono-agent"))],
        folders: vec![(start.folder.to_owned(), places.job.clone())],
        links: names.map(|name| (bin(name), PathBuf::from("unisono-agent"))).collect(),
        visible_in_tmp: machine.in_use.clone(),
        shm_mib: plan.group_of(host).shm_mib.unwrap_or(SHM_MIB),
        environment: environment(plan, host, machine, &places, &shared.addresses, start),
        working_dir,
        argv: command.argv,
        cable: cable(start),
        bounds: bounds(plan, host, machine, start),
        open_files: machine.open_files,
        own_folders: places
            .temporary
            .iter()
            .flat_map(|temporary| [temporary.clone(), places.agent.clone()])
            .collect(),
    };
    let mpi = machine.mpi.as_ref().filter(|_| machine.tag_ranks && launches);
    let tags = mpi.and_then(|mpi| mpi.tag_form);
    let reading = machine.at_once.map(|at_once| Reading { tags, at_once });
    Furnished { spec, has_command: command.has_command, launches, reading }
}

fn working_dir(plan: &Plan, host: &Host, machine: &Machine) -> PathBuf {
    let stated = plan.program_of(host).working_dir.as_ref();
    stated.map_or_else(|| machine.working_dir.clone(), PathBuf::from)
}

/// The host's place on the job's private network, when it has one.
fn cable(start: Start<'_>) -> Option<Cable> {
    let IpAddr::V4(address) = start.address.ip() else {
        return None;
    };
    Some(Cable { hub: start.hub?, address, prefix: PRIVATE_PREFIX })
}

/// The control groups that keep the host within what the file states.
fn bounds(plan: &Plan, host: &Host, machine: &Machine, start: Start<'_>) -> Option<Bounds> {
    let wanted = Limits::of(&plan.job, plan.group_of(host));
    let run = start.folder.ancestors().nth(2)?.file_name()?.to_string_lossy();
    let name = format!("{run}-{}-{}", host.name, start.incarnation.epoch);
    let groups = machine.limits.as_ref()?.of_host(&name, wanted)?;
    (!groups.is_empty()).then(|| Bounds { groups, kills: start.kills.to_owned() })
}

struct HostCommand {
    argv: Vec<String>,
    has_command: bool,
}

/// The agent as process 1; behind it, where the host has a command, the barrier, and behind that the command.
fn command(plan: &Plan, host: &Host, places: &Places, start: Start<'_>) -> HostCommand {
    let agent = places.bin.join("unisono-agent").display().to_string();
    let mut argv =
        vec![agent.clone(), "serve".into(), "--listen".into(), start.address.to_string()];
    let words = match &plan.program_of(host).argv {
        Argv::Words(words) if host.runs != HostRuns::Ranks => words.clone(),
        Argv::Words(_) | Argv::ImageEntry(_) | Argv::Nothing => {
            return HostCommand { argv, has_command: false };
        }
    };
    argv.push("--".into());
    if plan.may_launch(host.member) {
        let epoch = start.incarnation.epoch.to_string();
        argv.extend([agent, "ready".into(), "--epoch".into(), epoch]);
        // The command is let go when every host is up. One that has ended by then, as quick tasks do, is nobody to wait for.
        argv.extend(["--once", "--by", "name", "--name", &host.name, "--"].map(str::to_owned));
    }
    argv.extend(words);
    HostCommand { argv, has_command: true }
}

fn etc_hosts(plan: &Plan, addresses: &Addresses) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for host in &plan.hosts {
        if let Some(address) = addresses.get(&host.member) {
            text.extend([
                address.to_string(),
                " ".to_owned(),
                aliases(plan, host).join(" "),
                "\n".to_owned(),
            ]);
        }
    }
    text
}

fn files(plan: &Plan, host: &Host, places: &Places, shared: &Shared) -> Vec<HostFile> {
    let keys = &shared.keys;
    let planned = plan.program_of(host).files.iter();
    let mut files: Vec<HostFile> = planned
        .filter_map(|planned| {
            let file = shared.files.get(&planned.path)?;
            Some(HostFile {
                path: planned.path.clone().into(),
                mode: file.mode,
                text: file.text.clone(),
            })
        })
        .collect();
    let secret =
        |name: &str, text: String| HostFile { path: places.agent.join(name), mode: 0o400, text };
    if let Some(key) = keys.hosts.get(&host.name) {
        files.push(secret("host.key", key.to_text().as_str().to_owned()));
    }
    if let Some(key) = keys.launchers.get(&host.name) {
        files.push(secret("launcher.key", key.to_text().as_str().to_owned()));
    }
    if let Ok(launchers) = keys.launcher_list() {
        files.push(secret("launchers", launchers.to_string()));
    }
    files
}

/// Whether a variable of the user's own names a place for temporary files that hosts do not see: each has a `/tmp` of its own.
fn is_hidden((name, value): &(String, String)) -> bool {
    ["TMPDIR", "TMP", "TEMP"].contains(&name.as_str()) && Path::new(value).starts_with("/tmp")
}

/// The user's own environment, then what the file sets, then what Unisono adds; later ones win.
fn environment(
    plan: &Plan,
    host: &Host,
    machine: &Machine,
    places: &Places,
    addresses: &Addresses,
    start: Start<'_>,
) -> Vec<(String, String)> {
    let program = plan.program_of(host);
    let launches = plan.may_launch(host.member);
    let folder = working_dir(plan, host, machine).display().to_string();
    let at_start =
        env::at_start(plan, &env::Start { attempt: start.attempt, folder: Some(&folder) });
    let mut variables: BTreeMap<String, String> =
        machine.environment.iter().filter(|it| !is_hidden(it)).cloned().collect();
    let (of_host, with_addresses) =
        (env::of_host(plan, host), env::with_addresses(plan, host, addresses));
    let planned = [&program.user_env, &program.added_env, &of_host, &with_addresses, &at_start];
    variables.extend(planned.into_iter().flatten().map(|it| (it.name.clone(), it.value.clone())));
    let path =
        variables.remove("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mpi_bin = machine
        .mpi
        .as_ref()
        .and_then(|mpi| mpi.added_bin())
        .map(|bin| format!("{bin}:"))
        .unwrap_or_default();
    let agent = |name: &str| places.agent.join(name).display().to_string();
    let job = |name: &str| places.job.join(name).display().to_string();
    let own = [
        ("PATH", format!("{}:{mpi_bin}{path}", places.bin.display())),
        ("HOSTNAME", host.name.clone()),
        ("UNISONO_AGENT_HOST_KEY", agent("host.key")),
        ("UNISONO_AGENT_LAUNCHERS", agent("launchers")),
        ("UNISONO_AGENT_PROOF", job("proof")),
    ];
    variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
    if launches {
        // Through it the proof knows even ranks that end at once, and how each ended.
        let rank_starter = places.bin.join("unisono-rank").display().to_string();
        let own = [
            ("UNISONO_AGENT_LAUNCHER_KEY", agent("launcher.key")),
            ("UNISONO_AGENT_TABLE", job("table")),
            ("OMPI_MCA_orte_fork_agent", rank_starter.clone()),
        ];
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        if let Some(mpi) = &machine.mpi {
            variables.insert(shim::VARIABLE.to_owned(), mpi.tag_request(machine.tag_ranks));
            if mpi.wants_two_dashes() {
                variables.insert(shim::TWO_DASHES.to_owned(), "1".to_owned());
            }
            // Open MPI 4 has a variable of its own for it.
            if mpi.tag_form != Some(TagForm::OpenMpi4) {
                variables.insert(shim::RANK_STARTER.to_owned(), rank_starter.clone());
            }
        }
    }
    if let Some(temporary) = &places.temporary {
        variables.insert("TMPDIR".to_owned(), temporary.display().to_string());
    }
    if machine.mpi.is_some() && machine.gpus.is_empty() {
        devices::hide(&mut variables);
    }
    if let Some(gpus) = machine.gpus.get(&host.member) {
        let list = gpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        for name in ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"] {
            variables.insert(name.to_owned(), list.clone());
        }
    }
    variables.into_iter().collect()
}
