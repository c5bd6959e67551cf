//! Writes every file that follows from the code: schema, field reference, command reference, list of codes.

mod codes;
mod commands;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a file is out of date.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = Vec::new();
    for (path, text) in files() {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|found| found == text) {
            continue;
        }
        stale.push(path.clone());
        if !args.check {
            let folder = file.parent().context("a generated file has no folder")?;
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        }
    }
    if args.check && !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(())
}

fn files() -> Vec<(String, String)> {
    let mut files = unisono_dialect::generated_files();
    files.push(("docs/reference/commands.md".to_owned(), commands::page()));
    files.push(("docs/reference/codes.md".to_owned(), codes::page()));
    files
}
