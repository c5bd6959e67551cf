//! The map must name every crate, or nobody finds it.

use super::RepositoryFile;

pub(super) fn breaches(files: &[RepositoryFile]) -> Vec<String> {
    let map = files.iter().find(|file| file.path.to_str() == Some("ARCHITECTURE.md"));
    let Some(map) = map else {
        return vec!["ARCHITECTURE.md:1: the file is missing".to_owned()];
    };
    let crates = files.iter().filter_map(|file| {
        let path = file.path.to_str()?;
        path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
    });
    crates
        .filter(|name| !map.text.contains(&format!("`{name}`")))
        .map(|name| map.breach(1, &format!("the crate `{name}` is not on the map")))
        .collect()
}
