//! Which files are generated, and whether they are up to date.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use unisono_operator::manifests;

use super::{codes, commands};

/// Writes what is out of date; with `check` it only fails because of it.
pub(super) fn write(check: bool) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = Vec::new();
    for (path, text) in all() {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|found| found == text) {
            continue;
        }
        stale.push(path.clone());
        if !check {
            let folder = file.parent().context("a generated file has no folder")?;
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        }
    }
    if check && !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(())
}

fn all() -> Vec<(String, String)> {
    let mut files = unisono_dialect::generated_files();
    files.push(("docs/reference/commands.md".to_owned(), commands::page()));
    files.push(("docs/reference/codes.md".to_owned(), codes::page()));
    let objects = manifests::objects(&manifests::Options::default());
    let header =
        "# Written by `cargo xtask generate`, as `unisono operator manifests` prints it.\n";
    let text = format!("{header}{}", manifests::to_yaml(&objects));
    files.push(("deploy/operator.yaml".to_owned(), text));
    files
}
