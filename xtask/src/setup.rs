//! Installs the Debian packages that a Make target needs and the machine lacks.

use std::process::Command;

use anyhow::{Context, bail};

/// What each Make target needs beyond Rust: a program or file that shows a package is there, and the package.
const NEEDS: &[(For, &str, &str)] = &[
    (For::Demo, "/usr/bin/mpirun", "openmpi-bin"),
    (For::Test, "/usr/bin/mpicc", "libopenmpi-dev"),
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
    let missing: Vec<&str> = NEEDS
        .iter()
        .filter(|(purpose, evidence, _)| {
            *purpose <= args.purpose && !std::path::Path::new(evidence).exists()
        })
        .map(|(_, _, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing Debian packages: {}", missing.join(" "));
    apt(&["update", "-qq"])?;
    apt(&[
        &["install", "--yes", "-qq", "--no-install-recommends"],
        &missing[..],
    ]
    .concat())
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
