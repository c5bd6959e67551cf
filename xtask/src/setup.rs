//! Installs what a Make target needs and the machine lacks: Debian packages, and MPIs and horovodrun, which Debian does not carry.

use std::process::Command;

use anyhow::{Context, bail};

/// What each Make target needs beyond Rust: a program or file that shows a package is there, and the package.
const NEEDS: &[(For, &str, &str)] = &[
    (For::Demo, "/usr/bin/mpirun", "openmpi-bin"),
    (For::Test, "/usr/bin/cc", "gcc"),
    (For::Test, "/usr/include/stdio.h", "libc6-dev"),
    (For::Test, "/usr/bin/mpicc.openmpi", "libopenmpi-dev"),
    (For::Test, "/usr/bin/ip", "iproute2"),
    (For::Test, "/usr/sbin/sshd", "openssh-server"),
    (For::Test, "/usr/bin/ssh", "openssh-client"),
    (For::Test, "/usr/bin/containerd", "containerd"),
    (For::Test, "/usr/sbin/runc", "runc"),
    (For::Test, "/usr/lib/cni/bridge", "containernetworking-plugins"),
    (For::Test, "/usr/share/doc/busybox-static", "busybox-static"),
    (For::Test, "/usr/sbin/debootstrap", "debootstrap"),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the packages are for.
    #[arg(value_enum)]
    purpose: For,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum For {
    Demo,
    Test,
    Bench,
}

#[expect(clippy::print_stderr, reason = "set-up tells what it installs")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    install_packages(args.purpose)?;
    if args.purpose >= For::Test {
        unisono_testbed::mpi::install_all(|what| eprintln!("{what}"))?;
        unisono_testbed::horovod::install(|what| eprintln!("{what}"))?;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "set-up tells what it installs")]
fn install_packages(purpose: For) -> anyhow::Result<()> {
    let mut missing: Vec<&str> = NEEDS
        .iter()
        .filter(|(needed_for, evidence, _)| {
            *needed_for <= purpose && !std::path::Path::new(evidence).exists()
        })
        .map(|(_, _, package)| *package)
        .collect();
    if purpose >= For::Test && unisono_testbed::wheels::python().is_none() {
        missing.push("python3-venv");
    }
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing Debian packages: {}", missing.join(" "));
    apt(&["update", "-qq"])?;
    apt(&[&["install", "--yes", "-qq", "--no-install-recommends"], &missing[..]].concat())
}

/// Runs apt-get, by sudo when we are not root.
fn apt(arguments: &[&str]) -> anyhow::Result<()> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|it| {
        use std::os::unix::fs::MetadataExt;
        it.uid() == 0
    });
    let mut command = if root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    };
    let status = command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("run apt-get (Unisono's tests install Debian packages)")?;
    if !status.success() {
        bail!("apt-get {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}
