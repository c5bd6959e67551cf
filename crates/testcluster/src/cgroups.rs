//! The one thing of a cluster that lives outside its namespaces: a cgroup per node, in every
//! hierarchy, so that a node's kubelet can have the whole tree below it for itself.
//!
//! The keeper removes them when the cluster ends. If the keeper itself was killed they stay, empty,
//! until the next cluster starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::process::Pid;

use crate::namespaces;

const HIERARCHIES: &str = "/sys/fs/cgroup";
const PREFIX: &str = "unisono-";

/// Makes the cgroups of one node.
pub(crate) fn create(cluster: &str, node: &str) -> anyhow::Result<()> {
    for hierarchy in hierarchies()? {
        let mut place = hierarchy.clone();
        for step in [format!("{PREFIX}{cluster}"), node.to_owned()] {
            let above = place.clone();
            place.push(step);
            fs::create_dir_all(&place).with_context(|| format!("create {}", place.display()))?;
            // A new cpuset is empty, and an empty one takes no process.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let from = above.join(file);
                if from.exists() {
                    let value = fs::read(&from).context("read a cpuset")?;
                    fs::write(place.join(file), value).context("fill a cpuset")?;
                }
            }
        }
    }
    Ok(())
}

/// The processes of a node, as the machine counts them, containers included.
pub(crate) fn processes(cluster: &str, node: &str) -> anyhow::Result<Vec<Pid>> {
    let complete = |path: &PathBuf| path.ends_with("pids") || path.ends_with("memory");
    let hierarchy = hierarchies()?.into_iter().find(complete);
    let hierarchy = hierarchy.context("no cgroup hierarchy with every process of a node")?;
    let mut found = Vec::new();
    collect(&hierarchy.join(format!("{PREFIX}{cluster}")).join(node), &mut found)
        .context("list the processes of a node")?;
    Ok(found)
}

/// Removes what killed keepers have left.
pub(crate) fn sweep() -> anyhow::Result<()> {
    let alive = namespaces::names()?;
    for left in left_over()? {
        let name = left.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_prefix(PREFIX)).unwrap_or("");
        if !alive.iter().any(|alive| alive == name) {
            remove(&left).with_context(|| format!("remove {}", left.display()))?;
        }
    }
    Ok(())
}

/// Every cgroup of every cluster, running or not.
pub(crate) fn left_over() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for hierarchy in hierarchies()? {
        for entry in fs::read_dir(&hierarchy).context("list cgroups")? {
            let entry = entry.context("list cgroups")?;
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// The mount points of all hierarchies of version 1, which a node takes part in.
pub(crate) fn hierarchies() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(HIERARCHIES).context("list cgroup hierarchies")? {
        let path = entry.context("list cgroup hierarchies")?.path();
        // Some distributions link `cpu` to `cpu,cpuacct`; and a version 2 tree may stand beside.
        let real = !path.is_symlink() && path.join("cgroup.procs").exists();
        if real && !path.join("cgroup.controllers").exists() {
            found.push(path);
        }
    }
    Ok(found)
}

fn collect(cgroup: &Path, found: &mut Vec<Pid>) -> io::Result<()> {
    let own = fs::read_to_string(cgroup.join("cgroup.procs"))?;
    found.extend(own.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)));
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            match collect(&entry.path(), found) {
                // A pod that ends meanwhile takes its cgroup along.
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

/// Removes a cgroup and all below it; somebody else may be at it, too.
fn remove(cgroup: &Path) -> io::Result<()> {
    match remove_tree(cgroup) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn remove_tree(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}
