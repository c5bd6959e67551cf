//! Where downloads and compiled programs are kept between runs: outside the checkout, safe for several users at once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// `$UNISONO_CACHE`, else `$XDG_CACHE_HOME/unisono`, else `~/.cache/unisono`.
pub(crate) fn root() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    variable("UNISONO_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("unisono")))
        .or_else(|| Some(variable("HOME")?.join(".cache/unisono")))
        .unwrap_or_else(|| std::env::temp_dir().join("unisono-cache"))
}

/// Returns `folder`, filled by `fill` unless an earlier call finished doing so.
///
/// A half-filled folder (no `complete` mark in it) is removed first; a lock keeps two fillers apart.
pub(crate) fn filled<E: From<io::Error>>(
    folder: PathBuf,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let mark = folder.join("complete");
    if mark.exists() {
        return Ok(folder);
    }
    let shelf = folder.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(shelf)?;
    let lock = File::create(shelf.join(".lock"))?;
    lock.lock()?;
    if !mark.exists() {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fill(&folder)?;
        fs::write(&mark, "")?;
    }
    Ok(folder)
}

/// A short name for content (64-bit FNV-1a): equal content, equal name, on every machine.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_filled_folder_is_filled_again_and_a_full_one_is_not() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("thing-1.0");
        let broken = filled(folder.clone(), |it| {
            fs::write(it.join("half"), "")?;
            Err(io::Error::other("power cut"))
        });
        assert_eq!(broken.unwrap_err().to_string(), "power cut");

        let whole = filled(folder.clone(), |it| fs::write(it.join("whole"), "")).unwrap();
        assert!(whole.join("whole").exists() && !whole.join("half").exists());

        filled(folder, |_| Err(io::Error::other("filled twice"))).unwrap();
    }

    #[test]
    fn a_digest_tells_where_parts_end() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"ab", b"c"]), digest(&[b"ab", b"c"]));
    }
}
