//! What a program needs beside it in an image that has no distribution of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Copies everything that these programs load to where `place` wants it in an image's root.
pub(super) fn copy_libraries(
    programs: impl IntoIterator<Item = PathBuf>,
    own: &Path,
    place: impl Fn(&Path) -> PathBuf,
) -> anyhow::Result<()> {
    for library in libraries(programs, own)? {
        let place = place(&library);
        fs::create_dir_all(place.parent().context("no folder")?).context("create a folder")?;
        fs::copy(&library, place).with_context(|| format!("copy {}", library.display()))?;
    }
    Ok(())
}

/// The same path in an image's root.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Everything that these programs load, as the machine's loader finds it, first of all in their `own` folder.
fn libraries(
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
