//! Builds the static agent that goes into containers: its path is printed. Nothing is built again when nothing has changed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

#[expect(clippy::print_stdout, reason = "the path is what it is called for")]
pub(crate) fn run() -> anyhow::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    // Named, so that the static flags reach the program and not the build scripts of its libraries.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // A folder of its own: these flags would otherwise throw away what the other builds have made.
    let folder = root.join("target/static-agent");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(&root)
        .args(["build", "--quiet", "--package", "unisono-agent", "--bin", "unisono-agent"])
        .args(["--profile", "agent", "--target", &target, "--target-dir"])
        .arg(&folder)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("building the static agent ended with {status}");
    }
    println!("{}", folder.join(target).join("agent/unisono-agent").display());
    Ok(())
}
