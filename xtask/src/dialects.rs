//! The table of one program in every dialect: the test that runs them makes it, this puts it into the documentation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

const PAGE: &str = "docs/submit.md";
const BEGIN: &str = "<!-- written by `cargo xtask dialects` -->\n";
const END: &str = "<!-- end -->";

pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().context("make a folder for the table")?;
    let path = folder.path().join("table.md");
    let status = Command::new(env!("CARGO"))
        .args(["test", "--package", "unisono", "--test", "cluster", "--", "every_dialect"])
        .current_dir(&root)
        .env("UNISONO_TABLE", &path)
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "the test ended with {status}");
    let table = std::fs::read_to_string(&path).context("read the table")?;
    let page = std::fs::read_to_string(root.join(PAGE)).context("read the page")?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the table has no end")?;
    let page = format!("{before}{BEGIN}\n{table}\n{END}{after}");
    std::fs::write(root.join(PAGE), page).context("write the page")
}
