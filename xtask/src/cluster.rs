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
    let fault = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "unisono-testcluster", "--"])
        .args(&args.arguments)
        .exec();
    Err(fault).context("run cargo")
}
