//! A whole cluster: from what a test asks for to something that answers, and to nothing again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow, ensure};

use crate::api::Api;
use crate::certificates::{Authority, Identity};
use crate::control_plane::{self, API_SERVER, Programs, in_cluster};
use crate::images::Image;
use crate::namespaces::{self, HOME, Lease, Walls};
use crate::node::{Boot, Node};
use crate::part::{self, Part};
use crate::usage::{self, Usage};
use crate::{audit, binaries, cgroups, images, network};

/// What a cluster starts with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name, of which only one can run; else one that no other cluster has.
    pub name: Option<String>,
    /// How many real nodes it has, called `node-1` and up.
    pub nodes: u8,
    /// The images that every node has.
    pub images: Vec<Image>,
    /// More flags for the API server, such as `--feature-gates=…`.
    pub api_server_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: None, nodes: 2, images: vec![Image::Busybox], api_server_flags: Vec::new() }
    }
}

/// A running cluster. One that was started here ends when this value goes, or the process.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    walls: Walls,
    api: Api,
    nodes: Vec<Node>,
    parts: Mutex<Vec<Part>>,
    owner: Option<Owner>,
}

/// What only the process has that started the cluster.
#[derive(Debug)]
struct Owner {
    lease: Lease,
    programs: Programs,
    boot: Boot,
    authority: Authority,
}

impl Cluster {
    /// Starts a cluster and returns when all its nodes are ready.
    ///
    /// Programs and images that never were needed before are built first, which takes minutes.
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        ensure!(
            (1..=network::MOST_NODES).contains(&options.nodes),
            "a cluster has 1 to {} nodes",
            network::MOST_NODES
        );
        // Making images waits for packages most of its time, and compilers have something to do meanwhile.
        let (folder, store) = std::thread::scope(|scope| {
            let store = scope.spawn(|| images::store(&options.images));
            let folder = binaries::CLUSTER.build();
            (folder, store.join().unwrap_or_else(|_| Err(anyhow!("making images panicked"))))
        });
        let programs = Programs {
            folder: in_cluster(&folder?)?,
            api_server_flags: options.api_server_flags.clone(),
        };
        let boot = Boot { store: in_cluster(&store?)?, programs: programs.folder.clone() };
        let name = options.name.clone().unwrap_or_else(free_name);
        let (lease, walls) = Lease::start(&name)?;
        let authority = Authority::new()?;
        let admin = authority.client("admin", Some("system:masters"))?;
        let cluster = Self {
            nodes: (1..=options.nodes).map(|number| Node::new(walls, &name, number)).collect(),
            name,
            walls,
            api: Api::new(walls, &authority.identity.certificate, &admin)?,
            parts: Mutex::default(),
            owner: Some(Owner { lease, programs, boot, authority }),
        };
        cluster.boot_up(&admin)?;
        Ok(cluster)
    }

    /// The running cluster of this name, which somebody else started.
    pub fn attach(name: &str) -> anyhow::Result<Self> {
        let walls = Walls::find(name)?;
        let walls = walls.with_context(|| format!("no cluster called {name} is running"))?;
        let read = |file: &str| {
            std::fs::read_to_string(walls.path(Path::new(HOME).join(file)))
                .with_context(|| format!("read {file} of the cluster"))
        };
        let identity = Identity { certificate: read("admin.crt")?, key: read("admin.key")? };
        let api = Api::new(walls, &read("ca.crt")?, &identity)?;
        let is_node = |number: &u8| walls.path(format!("{HOME}/node-{number}")).is_dir();
        Ok(Self {
            nodes: (1..=network::MOST_NODES)
                .take_while(is_node)
                .map(|number| Node::new(walls, name, number))
                .collect(),
            name: name.to_owned(),
            walls,
            api,
            parts: Mutex::default(),
            owner: None,
        })
    }

    /// The names of all clusters that run on the machine.
    pub fn names() -> anyhow::Result<Vec<String>> {
        namespaces::names()
    }

    /// Lets the cluster live on after this process.
    pub fn release(mut self) -> anyhow::Result<()> {
        self.owner.take().map_or(Ok(()), |owner| owner.lease.release())
    }

    /// Ends the cluster and returns when nothing of it is left.
    pub fn down(mut self) -> anyhow::Result<()> {
        match self.owner.take() {
            Some(owner) => self.end(owner.lease),
            None => self.walls.kill(&self.name),
        }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number, on the machine, of the one process that all others end with.
    pub fn first_process(&self) -> u32 {
        self.walls.pid().as_raw_nonzero().get().cast_unsigned()
    }

    /// The cluster's API server, for its administrator.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The real nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Switches a node on that was stopped.
    pub fn start_node(&self, node: &Node) -> anyhow::Result<()> {
        let boot = &self.owner()?.boot;
        let mut parts = self.parts();
        if let Some(old) = parts.iter().position(|part| part.name() == node.name()) {
            parts.remove(old).wait()?;
        }
        parts.push(node.start(boot)?);
        Ok(())
    }

    /// Kills the API server, with everything that it has not answered yet.
    pub fn stop_api_server(&self) -> anyhow::Result<()> {
        let mut parts = self.parts();
        let running = parts.iter().position(|part| part.name() == API_SERVER);
        let part = parts.remove(running.context("the API server is not running")?);
        self.walls.kill_program(API_SERVER)?;
        part.wait()
    }

    /// Starts the API server again and returns when it answers.
    pub fn start_api_server(&self) -> anyhow::Result<()> {
        let programs = &self.owner()?.programs;
        control_plane::start_api_server(self.walls, &self.api, programs, &mut self.parts())
    }

    /// Gives every running node one more image, from a `docker save` archive.
    pub fn load(&self, archive: &Path) -> anyhow::Result<()> {
        self.nodes.iter().try_for_each(|node| node.load(archive))
    }

    /// A kubeconfig for the administrator. It holds for processes in the cluster's network.
    pub fn kubeconfig(&self) -> PathBuf {
        self.walls.path(Path::new(HOME).join("admin.kubeconfig"))
    }

    /// Moves the calling thread into the cluster's network, with `kubectl` and clients pointed at
    /// it by [`Cluster::command`] or [`Cluster::kubeconfig`]. Threads it starts later follow it.
    pub fn enter(&self) -> anyhow::Result<()> {
        self.walls.enter_network()
    }

    /// A command that will run on the machine, in the cluster's network, with `KUBECONFIG` set and
    /// the cluster's own `kubectl` first on the path.
    pub fn command(&self, program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
        let programs = binaries::CLUSTER.build()?;
        let mut path = programs.into_os_string();
        if let Some(old) = std::env::var_os("PATH") {
            path.push(":");
            path.push(old);
        }
        let mut command = self.walls.network_command(program);
        command.env("PATH", path).env("KUBECONFIG", self.kubeconfig());
        Ok(command)
    }

    /// Runs `kubectl` and returns what it printed; it failing is a fault.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.try_kubectl(arguments)?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs `kubectl`; it failing is an answer, too.
    pub fn try_kubectl(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.command("kubectl")?.args(arguments).output().context("run kubectl")
    }

    /// Whether the node's kubelet is heard and says that it is ready.
    pub fn is_ready(&self, node: &str) -> anyhow::Result<bool> {
        let object = self.api.find(&format!("/api/v1/nodes/{node}"))?;
        let conditions = object.as_ref().and_then(|it| it["status"]["conditions"].as_array());
        Ok(conditions.is_some_and(|all| {
            all.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
        }))
    }

    /// A moment in the audit log, to count from.
    pub fn audit_mark(&self) -> anyhow::Result<audit::Mark> {
        audit::mark(self.walls)
    }

    /// The requests that were answered since a moment.
    pub fn requests_since(&self, mark: audit::Mark) -> anyhow::Result<audit::Counts> {
        audit::since(self.walls, mark)
    }

    /// Seconds from the first request since a moment that fits one description to the last one that fits the other.
    pub fn span_since(
        &self,
        mark: audit::Mark,
        from: impl Fn(&audit::Request) -> bool,
        to: impl Fn(&audit::Request) -> bool,
    ) -> anyhow::Result<f64> {
        audit::span(self.walls, mark, from, to)
    }

    /// The number of writes that the cluster's store has seen.
    pub fn etcd_revision(&self) -> anyhow::Result<u64> {
        usage::etcd_revision(self.walls)
    }

    /// What all processes of the cluster that run this program have used so far.
    pub fn usage(&self, program: &str) -> anyhow::Result<Usage> {
        usage::of_program(self.walls, program)
    }

    fn boot_up(&self, admin: &Identity) -> anyhow::Result<()> {
        let Owner { authority, programs, .. } = self.owner()?;
        control_plane::write_files(self.walls, authority, admin)?;
        control_plane::start(self.walls, &self.api, programs, &mut self.parts())?;
        for node in &self.nodes {
            node.write_files(authority)?;
            self.start_node(node)?;
        }
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        part::wait(&mut self.parts(), "the nodes", || {
            for node in &self.nodes {
                if !self.is_ready(node.name())? {
                    return Ok(None);
                }
            }
            // Without it no pod can be created in the namespace that everybody uses first.
            self.api.find("/api/v1/namespaces/default/serviceaccounts/default")
        })?;
        Ok(())
    }

    pub(crate) fn authority(&self) -> anyhow::Result<&Authority> {
        Ok(&self.owner()?.authority)
    }

    pub(crate) fn walls(&self) -> Walls {
        self.walls
    }

    fn owner(&self) -> anyhow::Result<&Owner> {
        let owner = self.owner.as_ref();
        owner.context("only the process that started a cluster can add to it")
    }

    pub(crate) fn parts(&self) -> MutexGuard<'_, Vec<Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&mut self, lease: Lease) -> anyhow::Result<()> {
        lease.end()?;
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        parts.drain(..).try_for_each(Part::wait)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            // Nothing to do about a fault here, and the cluster ends with this process anyway.
            self.end(owner.lease).ok();
        }
    }
}

/// Every cgroup that any cluster has on the machine; tests look here for what was left.
pub fn cgroups_on_machine() -> anyhow::Result<Vec<PathBuf>> {
    cgroups::left_over()
}

/// A name that no other cluster has: the process and a count.
fn free_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{count}", std::process::id())
}
