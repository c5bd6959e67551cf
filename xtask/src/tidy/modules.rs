//! Every source file must be reachable from a `mod` line, or it is not even compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::RepositoryFile;

pub(super) fn breaches(files: &[RepositoryFile]) -> Vec<String> {
    let sources: Vec<&RepositoryFile> = files.iter().filter(|file| file.is_rust()).collect();
    let named: BTreeSet<PathBuf> = sources.iter().flat_map(|file| modules_of(file)).collect();
    sources
        .iter()
        .filter(|file| !is_root(&file.path) && !named.contains(&file.path))
        .map(|file| file.breach(1, "no `mod` line leads here, so it is never compiled"))
        .collect()
}

/// Files that Cargo finds by itself.
fn is_root(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).and_then(|it| it.to_str());
    let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let is_target_folder =
        matches!(folder, Some("tests" | "benches" | "examples" | "fuzz_targets" | "bin"));
    let is_source_root = folder == Some("src") && matches!(name, "main.rs" | "lib.rs");
    // `tests/name/main.rs` is a target too.
    let is_nested_target = name == "main.rs";
    name == "build.rs" || is_source_root || is_target_folder || is_nested_target
}

/// Every file that a `mod` line of this one can mean.
fn modules_of(file: &RepositoryFile) -> Vec<PathBuf> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let stem = file.path.file_stem().unwrap_or_default();
    let own_folder =
        if is_root(&file.path) || stem == "mod" { folder.to_owned() } else { folder.join(stem) };
    let mut paths = Vec::new();
    let lines = file.text.lines().map(str::trim);
    for line in lines {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|it| it.strip_suffix("\"]")) {
            paths.push(normal(&folder.join(path)));
        }
        if let Some(name) = module_name(line) {
            paths.push(own_folder.join(format!("{name}.rs")));
            paths.push(own_folder.join(name).join("mod.rs"));
        }
    }
    paths
}

fn module_name(line: &str) -> Option<&str> {
    let declaration = line.strip_suffix(';')?;
    let (before, name) = declaration.rsplit_once("mod ")?;
    let is_visibility = before.is_empty() || before.starts_with("pub") || before.ends_with("] ");
    is_visibility.then_some(name.trim())
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        if part.as_os_str() == ".." {
            whole.pop();
        } else {
            whole.push(part);
        }
        whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_mod_line_is_found() {
        let file =
            |path: &str, text: &str| RepositoryFile { path: path.into(), text: text.to_owned() };
        let files = [
            file("c/src/lib.rs", "mod a;\npub(crate) mod b;\n"),
            file("c/src/a.rs", "mod inner;\n"),
            file("c/src/a/inner.rs", ""),
            file("c/src/b/mod.rs", "#[cfg(test)]\nmod tests;\n"),
            file("c/src/b/tests.rs", ""),
            file("c/src/b/lost.rs", ""),
            file("c/tests/all.rs", "mod part;\n"),
            file("c/tests/part/mod.rs", ""),
        ];
        let told = breaches(&files);
        assert_eq!(told, ["c/src/b/lost.rs:1: no `mod` line leads here, so it is never compiled"]);
    }
}
