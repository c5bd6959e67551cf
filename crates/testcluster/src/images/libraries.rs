//! What a program needs beside it in an image that has no distribution of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Everything that these programs load, as the machine's loader finds it, first of all in their `own` folder.
pub(super) fn libraries(
    programs: impl IntoIterator<Item = PathBuf>,
    own: &Path,
) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for program in programs {
        let output = Command::new("ldd").arg(&program).env("LD_LIBRARY_PATH", own).output();
        let output = output.context("run ldd")?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !text.contains("not found"), "ldd: {text}");
        let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
        found.extend(paths.map(PathBuf::from));
    }
    Ok(found)
}
