//! What a cluster has only when a test asks for it: fake nodes, a name server, gangs, queues.
//!
//! Each is a process of the cluster, in the router's network, with all rights and a user of its own,
//! so that its requests can be told from everybody else's.

mod coredns;
mod coscheduling;
mod kueue;
mod kwok;
mod pod_groups;

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::cluster::Cluster;
use crate::control_plane::in_cluster;
use crate::namespaces::HOME;
use crate::part::{self, Part};

pub use coscheduling::SCHEDULER;
pub use kwok::{FAKE_NODE_TAINT, fake_node_name};
pub use pod_groups::PodGroups;

impl Cluster {
    /// Starts one more program of the cache as a part of the cluster.
    fn start_part(&self, name: &str, program: &Path, arguments: &[String]) -> anyhow::Result<()> {
        let program = in_cluster(program)?;
        let part = Part::start(self.walls(), name, &program, arguments)?;
        self.parts().push(part);
        Ok(())
    }

    fn has_part(&self, name: &str) -> bool {
        self.parts().iter().any(|part| part.name() == name)
    }

    /// Waits, in the cluster's network, for something that its parts bring about.
    fn wait_for_parts(
        &self,
        what: &str,
        mut look: impl FnMut() -> anyhow::Result<Option<()>> + Send,
    ) -> anyhow::Result<()> {
        let walls = self.walls();
        part::wait(&mut self.parts(), what, || walls.inside(&mut look))
    }

    /// Writes a file of the cluster and returns its path, as the cluster's processes see it.
    fn write_file(&self, name: &str, text: &str) -> anyhow::Result<String> {
        let path = format!("{HOME}/{name}");
        let outside = self.outside(&path);
        if let Some(folder) = outside.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("make room for {name}"))?;
        }
        std::fs::write(outside, text).with_context(|| format!("write {name}"))?;
        Ok(path)
    }

    /// A file of the cluster, as seen from the machine.
    fn outside(&self, path: &str) -> PathBuf {
        self.walls().path(path)
    }

    /// Writes a kubeconfig for a user with all rights and returns its path.
    fn write_kubeconfig(&self, user: &str) -> anyhow::Result<String> {
        let authority = self.authority()?;
        let identity = authority.client(user, Some("system:masters"))?;
        self.write_file(&format!("{user}.kubeconfig"), &authority.kubeconfig(&identity))
    }

    /// Writes `PATH.crt` and `PATH.key` for a server in the router's network, and returns the
    /// certificate of the authority that vouches for it.
    fn write_server_identity(&self, path: &str) -> anyhow::Result<String> {
        let authority = self.authority()?;
        let identity = authority.server()?;
        self.write_file(&format!("{path}.crt"), &identity.certificate)?;
        self.write_file(&format!("{path}.key"), &identity.key)?;
        Ok(authority.identity.certificate.clone())
    }

    /// Makes the API server know the kinds that the manifests in a folder define.
    fn define_kinds(&self, folder: &Path) -> anyhow::Result<()> {
        let folder = folder.to_str().context("a path that is text")?;
        self.kubectl(&["apply", "--server-side", "-f", folder])?;
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", folder])?;
        Ok(())
    }
}
