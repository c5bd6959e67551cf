//! Job files: paths enter, bounded bytes leave. The only place that opens them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use unisono_dialect::MAX_BYTES;

/// The path that means standard input.
const STDIN: &str = "-";
/// What a folder is walked for.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// A job file's content. One byte over the limit is kept, so that the reader can refuse it.
#[derive(Debug)]
pub(crate) struct Input {
    /// What messages call it.
    pub(crate) name: String,
    /// The name for jobs that have none of their own.
    pub(crate) stem: String,
    /// What it holds.
    pub(crate) bytes: Vec<u8>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// Opening or reading failed.
    #[error("cannot read {name}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A folder where one file is needed.
    #[error("{name} is a folder, and a job file is needed")]
    Folder {
        /// The folder.
        name: String,
    },
    /// A device, socket or named pipe: reading it could wait for ever.
    #[error("{name} is {kind}, not a file")]
    Special {
        /// The path.
        name: String,
        /// What it is.
        kind: &'static str,
    },
    /// A folder without anything to read.
    #[error("{name} holds no .yaml, .yml or .json file")]
    NothingInFolder {
        /// The folder.
        name: String,
    },
}

impl InputError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("`-` reads standard input".to_owned())
            }
            Self::Folder { name } => Some(format!(
                "name a file in it; `unisono check {name}` looks at every job file of a folder"
            )),
            Self::Special { name, .. } => {
                Some(format!("to read it all the same: `unisono … - < {name}`"))
            }
            Self::Unreadable { .. } | Self::NothingInFolder { .. } => None,
        }
    }
}

/// Reads one job file.
pub(crate) fn read(path: &Path) -> Result<Input, InputError> {
    let name = display(path);
    let unreadable = |source| InputError::Unreadable { name: name.clone(), source };
    let bytes = if path.as_os_str() == STDIN {
        bounded(io::stdin().lock()).map_err(unreadable)?
    } else {
        let kind = fs::metadata(path).map_err(unreadable)?.file_type();
        if kind.is_dir() {
            return Err(InputError::Folder { name });
        }
        if !kind.is_file() && !is_open_already(path) {
            return Err(InputError::Special { name, kind: special_kind(kind) });
        }
        File::open(path).and_then(bounded).map_err(unreadable)?
    };
    Ok(Input { stem: stem(path), name, bytes })
}

/// The job files that a path stands for: itself, or every job file below a folder, in order of their names.
pub(crate) fn walk(path: &Path) -> Result<Vec<PathBuf>, InputError> {
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |source| InputError::Unreadable { name: display(&folder), source };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (kind, path) = (entry.file_type().map_err(unreadable)?, entry.path());
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // Links to folders are not followed: they could lead in a circle.
            if kind.is_dir() && !hidden {
                folders.push(path);
            } else if !kind.is_dir() && is_job_file_name(&path) && path.is_file() {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        return Err(InputError::NothingInFolder { name: display(path) });
    }
    files.sort();
    Ok(files)
}

/// A path for people: control characters cannot reach the terminal.
pub(crate) fn display(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        return "<stdin>".to_owned();
    }
    let shown = path.to_string_lossy();
    shown.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| stem != STDIN && !stem.is_empty()).unwrap_or_else(|| "job".to_owned())
}

fn is_job_file_name(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| EXTENSIONS.iter().any(|it| it.eq_ignore_ascii_case(extension)))
}

/// A shell's `<(command)` and `/dev/stdin` are pipes that somebody already writes to.
fn is_open_already(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

fn special_kind(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_job_files_in_order_and_no_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/.git")).unwrap();
        for name in ["z.yaml", "a.YML", "b/c.json", "b/.git/x.yaml", "notes.md"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("b/circle")).unwrap();
        let found: Vec<_> = walk(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(found, ["a.YML", "b/c.json", "z.yaml"]);
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        assert_eq!(bounded(io::repeat(b'x')).unwrap().len(), MAX_BYTES + 1);
    }

    #[test]
    fn control_characters_of_a_path_do_not_reach_the_terminal() {
        assert_eq!(display(Path::new("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
    }
}
