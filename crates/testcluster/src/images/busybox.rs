//! Two images of Debian's static busybox: one with all its commands, one that only sleeps.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::Recipe;
use super::archive::Configuration;
use crate::cache::Key;

const PROGRAM: &str = "/bin/busybox";

/// Every command that busybox has.
pub(super) const BUSYBOX: Recipe = Recipe {
    name: "busybox",
    configuration: Configuration { user: "", environment: &["PATH=/bin"], command: &["sh"] },
    key,
    fill,
};

/// A sandbox: it holds a pod's namespaces and does nothing.
pub(super) const PAUSE: Recipe = Recipe {
    name: "pause",
    configuration: Configuration {
        user: "65535:65535",
        environment: &["PATH=/bin"],
        command: &["/bin/sleep", "2147483647"],
    },
    key,
    fill,
};

fn key() -> anyhow::Result<Key> {
    Key::new().with_file(Path::new(PROGRAM))
}

fn fill(root: &Path) -> anyhow::Result<()> {
    let bin = root.join("bin");
    for folder in ["bin", "etc", "proc", "sys", "dev", "root"] {
        fs::create_dir(root.join(folder)).context("create a folder")?;
    }
    let tmp = root.join("tmp");
    fs::create_dir(&tmp).context("create a folder")?;
    fs::set_permissions(&tmp, std::os::unix::fs::PermissionsExt::from_mode(0o1777))
        .context("open a folder to everybody")?;
    fs::copy(PROGRAM, bin.join("busybox")).context("copy busybox")?;
    let list = Command::new(PROGRAM).arg("--list").output().context("run busybox")?;
    for command in String::from_utf8_lossy(&list.stdout).lines() {
        if command != "busybox" {
            symlink("busybox", bin.join(command)).context("link a command")?;
        }
    }
    fs::write(
        root.join("etc/passwd"),
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    )
    .context("write users")?;
    fs::write(root.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n").context("write groups")
}
