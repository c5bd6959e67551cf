//! Enters: a root folder. Leaves: a tar of it that is the same for the same folder, wherever and
//! whenever it is packed: paths in order, no times, no names of users.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tar::{Builder, EntryType, Header};

/// Packs the folder into a tar.
pub(crate) fn pack(root: &Path, output: impl Write) -> anyhow::Result<()> {
    let mut layer = Layer { root, tar: Builder::new(output), linked: BTreeMap::new() };
    layer.add_folder(Path::new(""))?;
    layer.tar.finish().context("finish a layer")
}

struct Layer<'a, W: Write> {
    root: &'a Path,
    tar: Builder<W>,
    /// Files with several names: the first name they were met by.
    linked: BTreeMap<u64, PathBuf>,
}

impl<W: Write> Layer<'_, W> {
    fn add_folder(&mut self, inner: &Path) -> anyhow::Result<()> {
        let folder = self.root.join(inner);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            names.push(entry.context("list a folder")?.file_name());
        }
        names.sort();
        for name in names {
            let inner = inner.join(name);
            self.add(&inner).with_context(|| format!("pack {}", inner.display()))?;
        }
        Ok(())
    }

    fn add(&mut self, inner: &Path) -> anyhow::Result<()> {
        let path = self.root.join(inner);
        let metadata = fs::symlink_metadata(&path)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            let mut header = header(&metadata, EntryType::Directory);
            self.tar.append_data(&mut header, inner, std::io::empty())?;
            return self.add_folder(inner);
        }
        if kind.is_symlink() {
            let mut header = header(&metadata, EntryType::Symlink);
            self.tar.append_link(&mut header, inner, fs::read_link(&path)?)?;
        } else if kind.is_file() {
            return self.add_file(inner, &path, &metadata);
        }
        // Devices and sockets are the runtime's to make.
        Ok(())
    }

    fn add_file(&mut self, inner: &Path, path: &Path, metadata: &Metadata) -> anyhow::Result<()> {
        if metadata.nlink() > 1 {
            if let Some(first) = self.linked.get(&metadata.ino()) {
                let mut header = header(metadata, EntryType::Link);
                return Ok(self.tar.append_link(&mut header, inner, first)?);
            }
            self.linked.insert(metadata.ino(), inner.to_owned());
        }
        let mut header = header(metadata, EntryType::Regular);
        header.set_size(metadata.len());
        Ok(self.tar.append_data(&mut header, inner, fs::File::open(path)?)?)
    }
}

fn header(metadata: &Metadata, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(metadata.mode() & 0o7777);
    header.set_uid(metadata.uid().into());
    header.set_gid(metadata.gid().into());
    header.set_mtime(0);
    header.set_size(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same files, made in another order and at another time.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a", folder.path().join("z")).unwrap();
        folder
    }

    fn packed(folder: &tempfile::TempDir) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(folder.path(), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let one = packed(&folder(&["a", "b/c", "b/d"]));
        let other = packed(&folder(&["b/d", "b/c", "a"]));
        assert_eq!(one, other);
        assert_ne!(one, packed(&folder(&["a", "b/c"])));
    }

    #[test]
    fn a_file_with_two_names_is_stored_once() {
        let folder = folder(&["a"]);
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        let bytes = packed(&folder);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let kinds: Vec<EntryType> =
            archive.entries().unwrap().map(|entry| entry.unwrap().header().entry_type()).collect();
        assert_eq!(kinds, [EntryType::Regular, EntryType::Link, EntryType::Symlink]);
    }
}
