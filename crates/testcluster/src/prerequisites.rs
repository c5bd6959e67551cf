//! What a machine must have to hold a cluster, and what of it is missing here.

use std::path::Path;
use std::process::{Command, Stdio};

/// Programs that must be on the path, and who brings them.
const PROGRAMS: &[(&str, &str)] = &[
    ("go", "the Go toolchain, 1.25 or newer"),
    ("unshare", "the Debian package util-linux"),
    ("nsenter", "the Debian package util-linux"),
    ("ip", "the Debian package iproute2"),
    ("containerd", "the Debian package containerd"),
    ("ctr", "the Debian package containerd"),
    ("runc", "the Debian package runc"),
    ("debootstrap", "the Debian package debootstrap"),
    ("cc", "the Debian package gcc"),
    ("mpicc.openmpi", "the Debian package libopenmpi-dev"),
];

/// Files that must be there, and who brings them.
const FILES: &[(&str, &str)] = &[
    ("/usr/lib/cni/bridge", "the Debian package containernetworking-plugins"),
    ("/bin/busybox", "the Debian package busybox-static"),
];

/// Everything that is missing, each as a phrase that says what and where from. Empty: all is there.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("the rights of root".to_owned());
    }
    for (program, origin) in PROGRAMS {
        if !is_on_path(program) {
            missing.push(format!("{program} ({origin})"));
        }
    }
    for (file, origin) in FILES {
        if !Path::new(file).exists() {
            missing.push(format!("{file} ({origin})"));
        }
    }
    if crate::cgroups::hierarchies().map_or(true, |all| all.is_empty()) {
        missing.push("cgroups of version 1 in /sys/fs/cgroup".to_owned());
    }
    if missing.is_empty() && !namespaces_work() {
        missing.push("namespaces (unshare is refused)".to_owned());
    }
    missing
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn namespaces_work() -> bool {
    Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork"])
        .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
