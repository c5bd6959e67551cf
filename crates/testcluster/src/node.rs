//! One node: a containerd and a kubelet in namespaces of their own inside the cluster's
//! (`scripts/node.sh`), with a disk that outlives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::certificates::Authority;
use crate::namespaces::{self, HOME, Walls};
use crate::network::{self, NodeNetwork};
use crate::part::{Part, log_of};
use crate::{cgroups, images, wait};

const SCRIPT: &str = include_str!("../scripts/node.sh");

/// The word by which a node's first process is known; `CLUSTER/NODE` follows.
const NODE_MARK: &str = "unisono-cluster-node";

/// A real node of a cluster, running or not.
#[derive(Clone, Debug)]
pub struct Node {
    walls: Walls,
    cluster: String,
    name: String,
    network: NodeNetwork,
}

/// What every node of a cluster is started with.
#[derive(Clone, Debug)]
pub(crate) struct Boot {
    /// The images every node has from the start, as the cluster's processes see the folder.
    pub(crate) store: PathBuf,
    /// The folder with the kubelet, as the cluster's processes see it.
    pub(crate) programs: PathBuf,
}

impl Node {
    pub(crate) fn new(walls: Walls, cluster: &str, number: u8) -> Self {
        Self {
            walls,
            cluster: cluster.to_owned(),
            name: format!("node-{number}"),
            network: NodeNetwork::of(number),
        }
    }

    /// The name of the node, also of its `Node` object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the power away: every process of the node is killed at once, its disk stays.
    pub fn stop(&self) -> anyhow::Result<()> {
        let first = self.first_process()?;
        let first = first.with_context(|| format!("{} is not running", self.name))?;
        namespaces::kill(first)?;
        wait::until(Duration::from_secs(30), "a node to stop", || {
            Ok(self.first_process()?.is_none().then_some(()))
        })
    }

    /// Stops the clock of every process of the node, containers included.
    pub fn freeze(&self) -> anyhow::Result<()> {
        // A process may start another before it is reached itself.
        wait::until(Duration::from_secs(30), "a node to freeze", || {
            let awake: Vec<Pid> = self
                .processes()?
                .into_iter()
                .filter(|process| !matches!(state(*process), Some('T' | 'Z' | 'X') | None))
                .collect();
            for process in &awake {
                signal(*process, Signal::STOP)?;
            }
            Ok(awake.is_empty().then_some(()))
        })
    }

    /// Lets the clock of a frozen node run again.
    pub fn thaw(&self) -> anyhow::Result<()> {
        let processes = self.processes()?;
        processes.into_iter().try_for_each(|process| signal(process, Signal::CONT))
    }

    /// Takes the node's link down: it runs on, and nobody hears of it.
    pub fn cut_off(&self) -> anyhow::Result<()> {
        self.link("down")
    }

    /// Takes the node's link up again.
    pub fn reconnect(&self) -> anyhow::Result<()> {
        self.link("up")
    }

    /// Loads an image from a `docker save` archive while the node runs.
    pub(crate) fn load(&self, archive: &Path) -> anyhow::Result<()> {
        let first = self.first_process()?;
        let first = first.with_context(|| format!("{} is not running", self.name))?;
        let socket = PathBuf::from(format!("/proc/{first}/root/run/containerd/containerd.sock"));
        images::import(&socket, archive).with_context(|| format!("load into {}", self.name))
    }

    /// Switches the node on.
    pub(crate) fn start(&self, boot: &Boot) -> anyhow::Result<Part> {
        ensure!(self.first_process()?.is_none(), "{} is already running", self.name);
        cgroups::create(&self.cluster, &self.name)?;
        let mut command = self.walls.command("sh");
        command
            .args(["-c", SCRIPT, NODE_MARK, "enter", &self.path()])
            .env("SELF", SCRIPT)
            .env("NODE", &self.name)
            .env("ADDRESS", self.network.address.to_string())
            .env("PODS", &self.network.pods)
            .env("ROUTER", network::ROUTER)
            .env("STORE", &boot.store)
            .env("KUBELET", boot.programs.join("kubelet"));
        let logs = ["containerd", "kubelet"]
            .map(|program| self.walls.path(log_of(&format!("{}.{program}", self.name))));
        Part::spawn(self.walls, &self.name, command, logs.into())
    }

    /// Writes what containerd and the kubelet read.
    pub(crate) fn write_files(&self, authority: &Authority) -> anyhow::Result<()> {
        let home = self.walls.path(Path::new(HOME).join(&self.name));
        fs::create_dir_all(home.join("cni")).context("create a node's folder")?;
        let user = format!("system:node:{}", self.name);
        let identity = authority.client(&user, Some("system:nodes"))?;
        for (file, text) in [
            ("containerd.toml", containerd_configuration(&self.name)),
            ("kubelet.yaml", kubelet_configuration()),
            ("kubeconfig", authority.kubeconfig(&identity)),
            ("cni/10-pods.conflist", self.network.cni()),
        ] {
            fs::write(home.join(file), text).with_context(|| format!("write a node's {file}"))?;
        }
        Ok(())
    }

    /// Every process below the node's first one; that one only waits.
    fn processes(&self) -> anyhow::Result<Vec<Pid>> {
        let first = self.first_process()?;
        let first = first.with_context(|| format!("{} is not running", self.name))?;
        let outer = process_namespace(self.walls.pid());
        let all = cgroups::processes(&self.cluster, &self.name)?;
        Ok(all
            .into_iter()
            .filter(|process| *process != first && process_namespace(*process) != outer)
            .collect())
    }

    fn first_process(&self) -> anyhow::Result<Option<Pid>> {
        namespaces::process_one(&[NODE_MARK, "boot", &self.path()])
    }

    fn path(&self) -> String {
        format!("{}/{}", self.cluster, self.name)
    }

    fn link(&self, state: &str) -> anyhow::Result<()> {
        let mut command = self.walls.network_command("ip");
        let status = command.args(["link", "set", &self.name, state]).status();
        let status = status.context("run ip")?;
        ensure!(status.success(), "ip link set {} {state}: {status}", self.name);
        Ok(())
    }
}

fn signal(process: Pid, signal: Signal) -> anyhow::Result<()> {
    match kill_process(process, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(fault) => Err(fault).with_context(|| format!("signal process {process}")),
    }
}

/// The letter by which the kernel says what a process does, if it is there.
fn state(process: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn process_namespace(process: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok()
}

fn containerd_configuration(node: &str) -> String {
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE, which many machines that are containers lack, a score cannot go down.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/mnt/{node}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
"#,
        pause = images::PAUSE
    )
}

fn kubelet_configuration() -> String {
    let never = "0%";
    serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": "/mnt/ca.crt" },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "volumePluginDir": "/run/volume-plugins",
        "resolvConf": "",
        "clusterDomain": "cluster.local",
        "clusterDNS": [network::DNS_SERVICE],
        "registryPullQPS": 0,
        "serializeImagePulls": false,
        "maxPods": 200,
        // The controller manager waits 8 s for a sign of life.
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "2s",
        "nodeLeaseDurationSeconds": 8,
        // The nodes share the machine's disk and memory, and images are mounted, not stored.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": never,
            "nodefs.available": never,
            "nodefs.inodesFree": never,
            "imagefs.available": never,
        },
    })
    .to_string()
}
