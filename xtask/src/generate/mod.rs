//! Writes every file that follows from the code: schema, field reference, command reference, list of codes, manifests.

#[cfg(feature = "kubernetes")]
mod codes;
#[cfg(feature = "kubernetes")]
mod commands;
#[cfg(feature = "kubernetes")]
mod files;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a file is out of date.
    #[arg(long)]
    check: bool,
}

#[cfg(feature = "kubernetes")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    files::write(args.check)
}

/// The operator's commands and manifests are among the files, and this program was built without it.
#[cfg(not(feature = "kubernetes"))]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let check = args.check.then_some("--check");
    let options = ["--package", "xtask", "--features", "kubernetes"];
    crate::cargo::become_run(&options, ["generate"].into_iter().chain(check))
}
