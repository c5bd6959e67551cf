//! Rules that a program can keep: sources enter, every breach with its place leaves.

mod architecture;
mod files;
mod modules;
mod pure;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// One file of the repository, as git knows it.
struct RepositoryFile {
    /// Its path from the root.
    path: PathBuf,
    /// Its text; empty for what is no text.
    text: String,
}

#[expect(clippy::print_stderr, reason = "the breaches are what the task is for")]
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = tracked(&root)?;
    let mut breaches = files::breaches(&files);
    breaches.extend(modules::breaches(&files));
    breaches.extend(architecture::breaches(&files));
    breaches.extend(pure::breaches(&root)?);
    breaches.iter().for_each(|breach| eprintln!("{breach}"));
    if !breaches.is_empty() {
        bail!("{} tidy rules are broken", breaches.len());
    }
    Ok(())
}

/// Every file that git tracks or would add.
fn tracked(root: &Path) -> anyhow::Result<Vec<RepositoryFile>> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("run git to list the files")?;
    let names = String::from_utf8(listed.stdout).context("a file name is no text")?;
    let files = names.split_terminator('\0').filter_map(|name| {
        // A file that was deleted is still listed until the next commit.
        let bytes = std::fs::read(root.join(name)).ok()?;
        Some(RepositoryFile {
            path: name.into(),
            text: String::from_utf8(bytes).unwrap_or_default(),
        })
    });
    Ok(files.collect())
}

impl RepositoryFile {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|it| it == "rs")
    }

    fn breach(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path.display())
    }
}
