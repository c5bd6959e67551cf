//! Enters: what something is made of. Leaves: a folder that holds it, made at most once.
//!
//! Everything that takes long to make (programs, root file systems, unpacked images) is kept outside
//! the checkout, under a name that changes with what it is made of. A folder that is there is
//! complete: it is made beside its place and renamed into it.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use sha2::{Digest, Sha256};

/// Sixteen digits are enough to tell a few versions apart and short enough to read.
const KEY_DIGITS: usize = 16;

/// How long a folder is kept that nobody asks for.
const KEPT_UNUSED: Duration = Duration::from_secs(14 * 24 * 3600);

/// The folder that all checkouts of the project share: `$UNISONO_CACHE`, else `unisono` in
/// `$XDG_CACHE_HOME`, else in `~/.cache`.
pub fn root() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(root) = variable("UNISONO_CACHE") {
        return Ok(PathBuf::from(root));
    }
    if let Some(caches) = variable("XDG_CACHE_HOME") {
        return Ok(Path::new(&caches).join("unisono"));
    }
    let home = variable("HOME").context("neither UNISONO_CACHE nor HOME is set")?;
    Ok(Path::new(&home).join(".cache/unisono"))
}

/// The part of the cache that belongs to clusters.
pub(crate) fn cluster_root() -> anyhow::Result<PathBuf> {
    let root = root()?.join("cluster");
    fs::create_dir_all(&root).with_context(|| format!("create {}", root.display()))?;
    Ok(root)
}

/// Returns the folder `name-KEY`, after `make` has filled it if it was not there.
///
/// Whoever else asks for the same folder meanwhile, in any process, waits.
pub(crate) fn folder(
    name: &str,
    key: &Key,
    make: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let root = cluster_root()?;
    let place = place(&root, name, key);
    if place.exists() {
        note_use(&place)?;
        return Ok(place);
    }
    let lock = File::create(root.join(format!(".{name}.lock"))).context("create a lock")?;
    lock.lock().context("wait for a lock")?;
    if place.exists() {
        return Ok(place);
    }
    let prefix = format!(".{name}-");
    remove_drafts(&root, &prefix)?;
    let draft = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(&root)
        .context("create a folder to work in")?;
    make(draft.path()).with_context(|| format!("make {}", place.display()))?;
    let draft = draft.keep();
    fs::rename(&draft, &place).with_context(|| format!("rename to {}", place.display()))?;
    note_use(&place)?;
    remove_unused(&root, SystemTime::now())?;
    Ok(place)
}

/// Whether that folder is there.
pub(crate) fn has(name: &str, key: &Key) -> anyhow::Result<bool> {
    Ok(place(&cluster_root()?, name, key).exists())
}

fn place(root: &Path, name: &str, key: &Key) -> PathBuf {
    root.join(format!("{name}-{}", key.short()))
}

/// Other checkouts make the same folders or others, so what is used is known by when it was asked for last.
fn note_use(place: &Path) -> anyhow::Result<()> {
    let noted = File::open(place).and_then(|folder| folder.set_modified(SystemTime::now()));
    noted.with_context(|| format!("note that {} is used", place.display()))
}

/// Removes folders that nobody has asked for in a long time: those of versions that no checkout has any more.
fn remove_unused(root: &Path, now: SystemTime) -> anyhow::Result<()> {
    for entry in fs::read_dir(root).context("list the cache")? {
        let entry = entry.context("list the cache")?;
        let used = entry.metadata().and_then(|it| it.modified()).context("look at the cache")?;
        let unused = now.duration_since(used).unwrap_or_default();
        if is_made_here(&entry.file_name().to_string_lossy()) && unused > KEPT_UNUSED {
            fs::remove_dir_all(entry.path()).context("remove what nobody uses")?;
        }
    }
    Ok(())
}

/// Whether a name is one that this cache gives: a name and a key.
fn is_made_here(name: &str) -> bool {
    let key = name.rsplit_once('-').filter(|(name, _)| !name.starts_with('.')).map(|(_, key)| key);
    key.is_some_and(|key| key.len() == KEY_DIGITS && key.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// Removes what was begun by processes that were killed: while the lock is held, nobody works on it.
fn remove_drafts(root: &Path, prefix: &str) -> anyhow::Result<()> {
    for entry in fs::read_dir(root).context("list the cache")? {
        let entry = entry.context("list the cache")?;
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            fs::remove_dir_all(entry.path()).context("remove what was never finished")?;
        }
    }
    Ok(())
}

/// A name for what something is made of: the same parts, the same key.
#[derive(Clone)]
pub(crate) struct Key(Sha256);

impl Key {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a part; its length goes in too, so that parts cannot run into one another.
    pub(crate) fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    pub(crate) fn with_file(self, path: &Path) -> anyhow::Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        Ok(self.with(bytes))
    }

    pub(crate) fn short(&self) -> String {
        hexadecimal(&self.0.clone().finalize())[..KEY_DIGITS].to_owned()
    }
}

/// The SHA-256 of some bytes, as image digests are written.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_key_do_not_run_into_one_another() {
        assert_ne!(
            Key::new().with("ab").with("c").short(),
            Key::new().with("a").with("bc").short()
        );
    }

    #[test]
    fn only_what_this_cache_made_and_nobody_asks_for_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let unused = ["etcd-0123456789abcdef", "notes-of-mine", ".etcd.lock", "etcd-0123"];
        for name in unused.iter().chain(&["image-x-fedcba9876543210"]) {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let later = SystemTime::now() + KEPT_UNUSED + Duration::from_secs(60);
        let used = File::open(root.path().join("image-x-fedcba9876543210")).unwrap();
        used.set_modified(later).unwrap();
        remove_unused(root.path(), later).unwrap();
        let left = fs::read_dir(root.path()).unwrap().flatten().map(|it| it.file_name());
        let mut left: Vec<String> = left.map(|it| it.to_string_lossy().into_owned()).collect();
        left.sort();
        assert_eq!(left, [".etcd.lock", "etcd-0123", "image-x-fedcba9876543210", "notes-of-mine"]);
    }

    #[test]
    fn a_digest_is_written_as_hexadecimal() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
