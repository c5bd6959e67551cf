//! The schema and the field reference in the repository are those that the field tables give.

use std::path::Path;

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in unisono_dialect::generated_files() {
        let found = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        assert!(found == text, "{path} is out of date: run `cargo xtask generate`");
    }
}
