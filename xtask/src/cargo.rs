//! Hands over to a program that only those build who need it.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

/// Becomes `cargo run OPTIONS -- ARGUMENTS`.
pub(crate) fn become_run<A: AsRef<OsStr>>(
    options: &[&str],
    arguments: impl IntoIterator<Item = A>,
) -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo told this program about itself would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"CARGO_PKG_") || name_bytes.starts_with(b"CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let fault = cargo.args(["run", "--quiet"]).args(options).arg("--").args(arguments).exec();
    Err(fault).context("run cargo")
}
