//! Writes every file that follows from the field tables. A test of the dialect crate tells when one is out of date.

use std::fs;
use std::path::Path;

use anyhow::Context;

pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in unisono_dialect::generated_files() {
        let file = root.join(&path);
        let folder = file.parent().context("a generated file has no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}
