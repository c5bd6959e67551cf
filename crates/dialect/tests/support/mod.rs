//! Where the tests find their job files.

use std::path::{Path, PathBuf};

/// Every job file below a folder, in order; reviewed results are none.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    for entry in entries.map(|entry| entry.expect("the folder can be read").path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if entry.extension().is_some_and(|it| it == "yaml" || it == "json") {
            found.push(entry);
        }
    }
    found.sort();
    found
}
