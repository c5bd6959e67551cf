//! Enters: image archives. Leaves: a folder of the cache with containerd's files after it has loaded
//! and unpacked them. Nodes mount it (`scripts/node.sh`), so that a node has gigabytes of images
//! without copying one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::cache::{self, Key};
use crate::progress::Progress;
use crate::wait;

/// The store with these archives, made now if it never was.
pub(crate) fn with(archives: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut key = Key::new().with(containerd_version()?);
    for archive in archives {
        // An archive's folder is named after all it was made of.
        key = key.with(archive.as_os_str().as_encoded_bytes());
    }
    cache::folder("store", &key, |draft| fill(draft, archives))
}

/// Loads an archive through a containerd's socket.
pub(crate) fn import(socket: &Path, archive: &Path) -> anyhow::Result<()> {
    let output = Command::new("ctr")
        .args(["--namespace", "k8s.io", "--address"])
        .arg(socket)
        .args(["images", "import"])
        .arg(archive)
        .stdin(Stdio::null())
        .output()
        .context("run ctr")?;
    ensure!(
        output.status.success(),
        "ctr images import {}: {}",
        archive.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}

fn fill(root: &Path, archives: &[PathBuf]) -> anyhow::Result<()> {
    let mut progress = Progress::new("unpacking images".to_owned());
    let start = Instant::now();
    let state = tempfile::tempdir().context("create a folder for containerd")?;
    let socket = state.path().join("containerd.sock");
    let log = state.path().join("log");
    let configuration = state.path().join("containerd.toml");
    // The CRI plugin would look for a network.
    let text = format!(
        "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\nroot = {root:?}\n\
         state = {:?}\n[grpc]\naddress = {socket:?}\n",
        state.path().join("state")
    );
    fs::write(&configuration, text).context("write a containerd.toml")?;
    let output = fs::File::create(&log).context("create a log")?;
    // Its mounts, and whatever it starts, end with it.
    let mut containerd = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["containerd", "--config"])
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("share a log")?)
        .stderr(output)
        .spawn()
        .context("start containerd")?;
    let outcome = wait::until(Duration::from_secs(30), "containerd", || {
        ensure!(
            containerd.try_wait().context("look after containerd")?.is_none(),
            "containerd ended:\n{}",
            fs::read_to_string(&log).unwrap_or_default()
        );
        Ok(socket.exists().then_some(()))
    })
    .and_then(|()| {
        archives.iter().enumerate().try_for_each(|(done, archive)| {
            progress.tell(&format!("{done} of {}", archives.len()));
            import(&socket, archive)
        })
    });
    containerd.kill().context("stop containerd")?;
    containerd.wait().context("wait for containerd")?;
    outcome?;
    progress.done(&format!("{} s", start.elapsed().as_secs()));
    Ok(())
}

fn containerd_version() -> anyhow::Result<Vec<u8>> {
    let output = Command::new("containerd").arg("--version").output();
    Ok(output.context("run containerd")?.stdout)
}
