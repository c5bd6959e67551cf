//! Code folders on their way to a cluster: a folder enters, the pieces of one archive leave, or how large it is and what
//! makes it so. What the folder's own ignore file leaves out stays at home.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// The most that travels with a job. The API server keeps it in memory.
pub(super) const MOST: u64 = 16 << 20;

/// One piece: what a ConfigMap may hold is 1 MiB, with its keys.
const PIECE: usize = 1_000_000;

/// Azure's ignore file; without one it looks at git's.
const IGNORE_FILES: [&str; 2] = [".amlignore", ".gitignore"];

/// A folder, packed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packed {
    /// The pieces of the archive.
    pub(super) pieces: Vec<Vec<u8>>,
    /// Files in it.
    pub(super) files: usize,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Why a folder cannot travel.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodeError {
    /// It is not there.
    #[error("there is no code folder {}", .0.display())]
    Missing(PathBuf),
    /// It is no folder.
    #[error("the code {} is no folder", .0.display())]
    NoFolder(PathBuf),
    /// It is too large.
    #[error(
        "the code folder {} takes {} in {files} files, and {} is the most that travels with a job; the largest: {}",
        folder.display(), megabytes(*bytes), megabytes(MOST), listed(largest)
    )]
    TooLarge {
        /// The folder.
        folder: PathBuf,
        /// How large it is, packed.
        bytes: u64,
        /// How many files it has.
        files: usize,
        /// The largest files, the largest first.
        largest: Vec<(PathBuf, u64)>,
    },
    /// Something in it cannot be read.
    #[error("the code folder {} cannot be read", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl CodeError {
    /// What to do about it.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::TooLarge { .. } => "list what the job does not need in .amlignore; or copy the folder into a volume and name it: --code-volume CLAIM/FOLDER".to_owned(),
            Self::Missing(_) | Self::NoFolder(_) => {
                "the path is relative to the job file".to_owned()
            }
            Self::Unreadable { .. } => "list it in .amlignore if the job does not need it".to_owned(),
        }
    }
}

/// Packs a folder.
pub(super) fn pack(folder: &Path) -> Result<Packed, CodeError> {
    let unreadable = |source| CodeError::Unreadable { folder: folder.to_owned(), source };
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CodeError::Missing(folder.to_owned()));
        }
        Ok(found) if !found.is_dir() => return Err(CodeError::NoFolder(folder.to_owned())),
        Err(error) => return Err(unreadable(error)),
        Ok(_) => {}
    }
    let mut files = files(folder).map_err(unreadable)?;
    let bytes = files.iter().map(|(_, size)| size).sum();
    // Looked at before anything is read, and again with what names and padding add.
    if bytes > MOST {
        return Err(too_large(folder, bytes, files));
    }
    files.sort();
    let archive = archive(folder, &files).map_err(unreadable)?;
    let size = archive.len() as u64;
    if size > MOST {
        return Err(too_large(folder, size, files));
    }
    let pieces = archive.chunks(PIECE).map(<[u8]>::to_vec).collect();
    Ok(Packed { pieces, files: files.len(), bytes })
}

fn too_large(folder: &Path, bytes: u64, mut files: Vec<(PathBuf, u64)>) -> CodeError {
    let count = files.len();
    files.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    files.truncate(3);
    CodeError::TooLarge { folder: folder.to_owned(), bytes, files: count, largest: files }
}

/// Every file below a folder that is not left out, with its size. Links lead to what they stand for.
fn files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let ignore_file = IGNORE_FILES.iter().find(|name| folder.join(name).is_file());
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false).follow_links(true);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    if let Some(name) = ignore_file {
        walk.add_custom_ignore_filename(name);
    }
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = entry.map_err(io::Error::other)?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let size = entry.metadata().map_err(io::Error::other)?.len();
            let inside = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            files.push((inside.to_owned(), size));
        }
    }
    Ok(files)
}

/// The archive: names, permissions and contents, in order of their names, so that the same folder gives the same archive.
fn archive(folder: &Path, files: &[(PathBuf, u64)]) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut builder = tar::Builder::new(Vec::new());
    for (path, _) in files {
        let content = fs::read(folder.join(path))?;
        let mode = fs::metadata(folder.join(path))?.permissions().mode();
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode & 0o777);
        builder.append_data(&mut header, path, content.as_slice())?;
    }
    builder.into_inner()
}

/// A size for people.
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

fn listed(files: &[(PathBuf, u64)]) -> String {
    let shown =
        files.iter().map(|(path, size)| format!("{} ({})", path.display(), megabytes(*size)));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn names(parcel: &Packed) -> Vec<String> {
        let bytes = parcel.pieces.concat();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap();
        entries.map(|it| it.unwrap().path().unwrap().display().to_string()).collect()
    }

    #[test]
    fn the_same_folder_gives_the_same_pieces_and_leaves_out_what_is_ignored() {
        let folder = folder(&[
            ("train.py", b"x"),
            ("lib/a.py", b"y"),
            ("data/big", b"z"),
            (".git/HEAD", b"ref"),
            (".amlignore", b"data/\n"),
            (".gitignore", b"*.py\n"),
        ]);
        let parcel = pack(folder.path()).unwrap();
        assert_eq!(names(&parcel), [".amlignore", ".gitignore", "lib/a.py", "train.py"]);
        assert_eq!(parcel, pack(folder.path()).unwrap());
        assert_eq!(parcel.files, 4);
    }

    #[test]
    fn without_azures_ignore_file_gits_counts() {
        let folder = folder(&[("a.py", b"x"), ("a.pyc", b"y"), (".gitignore", b"*.pyc\n")]);
        assert_eq!(names(&pack(folder.path()).unwrap()), [".gitignore", "a.py"]);
    }

    #[test]
    fn a_large_folder_is_refused_with_its_size_and_its_largest_files() {
        let folder = folder(&[("small", b"x")]);
        let large = fs::File::create(folder.path().join("model.bin")).unwrap();
        large.set_len(MOST).unwrap();
        let error = pack(folder.path()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("16.0 MiB in 2 files"), "{text}");
        assert!(text.contains("model.bin (16.0 MiB)"), "{text}");
        assert!(error.hint().contains("--code-volume"));
    }

    #[test]
    fn many_small_files_are_too_large_when_their_archive_is() {
        let folder = folder(&[]);
        // Each takes a kilobyte of the archive, and two bytes by itself.
        for at in 0..17 * 1024 {
            fs::write(folder.path().join(at.to_string()), b"xx").unwrap();
        }
        let text = pack(folder.path()).unwrap_err().to_string();
        assert!(text.contains("takes 17.0 MiB in 17408 files"), "{text}");
    }

    #[test]
    fn pieces_fit_into_config_maps() {
        let folder = folder(&[("a", &vec![7; 2 * PIECE])]);
        let parcel = pack(folder.path()).unwrap();
        assert_eq!(parcel.pieces.len(), 3);
        assert!(parcel.pieces.iter().all(|it| it.len() <= PIECE));
    }

    #[test]
    fn what_is_not_there_is_told() {
        let folder = folder(&[("file", b"x")]);
        let told = |name: &str| pack(&folder.path().join(name)).unwrap_err().to_string();
        assert!(told("none").contains("there is no code folder"));
        assert!(told("file").contains("is no folder"));
    }
}
