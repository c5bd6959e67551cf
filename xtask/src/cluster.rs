//! Hands over to the test cluster's own program, which only who uses clusters has to build.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// `up`, `down`, `exec`, `status` or `images`, and what belongs to it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo told this program about itself would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"CARGO_PKG_") || name_bytes.starts_with(b"CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let fault = cargo
        .args(["run", "--quiet", "--package", "unisono-testcluster", "--"])
        .args(&args.arguments)
        .exec();
    Err(fault).context("run cargo")
}
