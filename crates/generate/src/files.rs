//! Which files are generated, and which of them are out of date.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use unisono_operator::manifests;

use crate::{codes, commands};

/// Writes what is out of date.
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, text) in out_of_date() {
        let file = root().join(&path);
        let folder = file.parent().context("a generated file has no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// The paths and texts of those that are not as the code has them.
fn out_of_date() -> impl Iterator<Item = (String, String)> {
    let is_stale = |path: &String, text: &String| {
        !fs::read_to_string(root().join(path)).is_ok_and(|found| found == *text)
    };
    all().into_iter().filter(move |(path, text)| is_stale(path, text))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generated_file_is_as_the_code_has_it() {
        let stale: Vec<String> = out_of_date().map(|(path, _)| path).collect();
        assert!(stale.is_empty(), "out of date: {}; run `cargo xtask generate`", stale.join(", "));
    }
}
