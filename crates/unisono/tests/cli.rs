//! Runs every command that documentation shows, and the snapshots of every command's output.

use std::path::{Path, PathBuf};

/// Everything that stands in a `console` block is run at the root of the repository, and must print what stands there.
#[test]
fn what_documentation_and_snapshots_show_is_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(&root).expect("the repository is there");
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let cases = trycmd::TestCases::new();
    cases
        .env("HOME", home.path().to_str().expect("its name is text"))
        .env("XDG_CONFIG_HOME", "")
        .env("USER", "somebody")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("README.md")
        .case("examples/README.md")
        .case("crates/unisono/tests/cli/*.trycmd");
    for page in pages_with_console_blocks() {
        cases.case(page);
    }
    cases.run();
}

/// Pages of docs/ that show calls of the program; a block without a name would be taken for one.
fn pages_with_console_blocks() -> Vec<PathBuf> {
    let folders = ["docs", "docs/tutorials"].into_iter();
    let entries = folders.flat_map(|it| std::fs::read_dir(it).expect("the documentation is there"));
    let pages = entries.map(|entry| entry.expect("it can be listed").path());
    let shows_calls = |page: &PathBuf| {
        std::fs::read_to_string(page).is_ok_and(|text| text.contains("```console"))
    };
    pages.filter(|page| page.is_file()).filter(shows_calls).collect()
}
