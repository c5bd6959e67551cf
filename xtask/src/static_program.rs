//! Builds the static programs that go into images: their path is printed. Nothing is built again when nothing has changed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

/// A program that can be built statically.
#[derive(Clone, Copy)]
pub(crate) struct StaticProgram {
    package: &'static str,
    profile: &'static str,
}

/// The agent: small, because one process of it runs per held connection.
pub(crate) const AGENT: StaticProgram =
    StaticProgram { package: "unisono-agent", profile: "agent" };

/// The whole program, for the operator's image.
pub(crate) const PROGRAM: StaticProgram = StaticProgram { package: "unisono", profile: "release" };

#[expect(clippy::print_stdout, reason = "the path is what it is called for")]
pub(crate) fn run(program: StaticProgram) -> anyhow::Result<()> {
    let StaticProgram { package, profile } = program;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    // Named, so that the static flags reach the program and not the build scripts of its libraries.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // A folder of its own: these flags would otherwise throw away what the other builds have made.
    let folder = root.join("target/static-agent");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(&root)
        .args(["build", "--quiet", "--package", package, "--bin", package])
        .args(["--profile", profile, "--target", &target, "--target-dir"])
        .arg(&folder)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("building the static {package} ended with {status}");
    }
    println!("{}", folder.join(target).join(profile).join(package).display());
    Ok(())
}
