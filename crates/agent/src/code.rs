//! A job's code: the pieces of an archive enter, the folder that commands start in leaves.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tar::{Archive, EntryType};
use thiserror::Error;

/// Code that could not be unpacked.
#[derive(Debug, Error)]
pub(crate) enum CodeError {
    /// A piece or a file.
    #[error("cannot unpack the job's code to {}", path.display())]
    Unpack {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A name that leads out of the folder, or something that is no file.
    #[error("the job's code holds `{0}`, which cannot be unpacked")]
    Odd(String),
}

/// Unpacks the archive whose pieces are the files of a folder, in order of their names. Whoever a pod runs its command as may
/// not be whom it is unpacked as, so that everybody may read and change what comes out.
pub(crate) fn unpack(pieces: &Path, to: &Path) -> Result<(), CodeError> {
    let fault = |source| CodeError::Unpack { path: to.to_owned(), source };
    open_to_all(to).map_err(fault)?;
    let mut archive = Archive::new(joined(pieces).map_err(fault)?);
    for entry in archive.entries().map_err(fault)? {
        let mut entry = entry.map_err(fault)?;
        let path = entry.path().map_err(fault)?.into_owned();
        let odd = || CodeError::Odd(path.display().to_string());
        if entry.header().entry_type() != EntryType::Regular {
            return Err(odd());
        }
        let mode = entry.header().mode().map_err(fault)?;
        for folder in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if folder.components().any(|it| !matches!(it, std::path::Component::Normal(_))) {
                return Err(odd());
            }
            open_to_all(&to.join(folder)).map_err(fault)?;
        }
        if !entry.unpack_in(to).map_err(fault)? {
            return Err(odd());
        }
        let open = if mode & 0o111 == 0 { 0o666 } else { 0o777 };
        fs::set_permissions(to.join(&path), Permissions::from_mode(open)).map_err(fault)?;
    }
    Ok(())
}

/// All pieces as one stream.
fn joined(pieces: &Path) -> io::Result<Box<dyn Read>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(pieces)? {
        let entry = entry?;
        // The kubelet keeps what it writes in folders of such names.
        if !entry.file_name().as_encoded_bytes().starts_with(b"..") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut stream: Box<dyn Read> = Box::new(io::empty());
    for path in paths {
        stream = Box::new(stream.chain(File::open(path)?));
    }
    Ok(stream)
}

/// Makes a folder, if it is not there, in which anybody may write.
fn open_to_all(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, mode, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(*mode);
            builder.append_data(&mut header, path, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(archive: &[u8], pieces: usize) -> Result<tempfile::TempDir, CodeError> {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("..data")).unwrap();
        for (at, piece) in archive.chunks(archive.len().div_ceil(pieces)).enumerate() {
            fs::write(from.path().join(format!("{at:04}")), piece).unwrap();
        }
        unpack(from.path(), &to.path().join("code")).map(|()| to)
    }

    #[test]
    fn pieces_become_the_folder_they_were_made_of_open_to_all() {
        let large = vec![7; 3000];
        let archive =
            archive(&[("run.sh", 0o755, b"#!/bin/sh\n"), ("lib/deep/a.bin", 0o600, &large)]);
        let to = unpacked(&archive, 3).unwrap();
        let code = to.path().join("code");
        assert_eq!(fs::read(code.join("lib/deep/a.bin")).unwrap(), large);
        let mode = |path: &str| fs::metadata(code.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode("run.sh"), mode("lib/deep/a.bin"), mode("lib/deep")),
            (0o777, 0o666, 0o777)
        );
    }

    #[test]
    fn names_that_lead_out_of_the_folder_and_links_are_refused() {
        let mut archive = archive(&[("aa/x", 0o644, b"x")]);
        // The library would not write such a name itself.
        archive.splice(0..4, *b"../x");
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(archive.get(..512).unwrap());
        header.set_cksum();
        archive.splice(..512, header.as_bytes().iter().copied());
        assert!(matches!(unpacked(&archive, 1), Err(CodeError::Odd(_))));

        let mut builder = tar::Builder::new(Vec::new());
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(EntryType::Symlink);
        link.set_size(0);
        builder.append_link(&mut link, "link", "/etc/passwd").unwrap();
        assert!(matches!(unpacked(&builder.into_inner().unwrap(), 1), Err(CodeError::Odd(_))));
    }

    #[test]
    fn a_missing_piece_is_an_error() {
        let whole = archive(&[("a", 0o644, &[7; 3000])]);
        assert!(unpacked(whole.get(..1000).unwrap(), 1).is_err());
    }
}
