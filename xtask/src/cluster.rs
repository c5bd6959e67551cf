//! Hands over to the test cluster's own program, which only who uses clusters has to build.

use std::ffi::OsString;

use crate::cargo;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// `up`, `down`, `exec`, `status` or `images`, and what belongs to it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    cargo::become_run(&["--package", "unisono-testcluster"], &args.arguments)
}
