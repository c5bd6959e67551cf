//! Hosts where namespaces are refused: plain processes, with files in the run's own folder and a `TMPDIR` of their own.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;

use super::{HostFile, HostSpec, SetUpError, io_step};

/// Lays out the host's files. All of them are below the run's folder; what all hosts share is made by whoever comes first.
pub(super) fn furnish(spec: &HostSpec) -> Result<(), SetUpError> {
    for folder in &spec.own_folders {
        io_step(fs::create_dir_all(folder), format!("make {}", folder.display()))?;
    }
    for file in &spec.files {
        io_step(write(file), format!("write {}", file.path.display()))?;
    }
    let programs = spec.programs.iter().map(|(from, to)| (to, from));
    for (at, target) in programs.chain(spec.links.iter().map(|(at, target)| (at, target))) {
        io_step(link(at, target), format!("link {}", at.display()))?;
    }
    Ok(())
}

/// Removes what must not outlive the host: its keys, and what it left in its `TMPDIR`.
pub(super) fn clear_away(spec: &HostSpec) {
    for folder in &spec.own_folders {
        // A run's folder can be removed as a whole later; nothing else is left to do here.
        let _removed = fs::remove_dir_all(folder);
    }
}

/// Writes beside, then renames: another host may read the same file at this moment.
fn write(file: &HostFile) -> io::Result<()> {
    use std::io::Write as _;
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let mut opened =
        fs::OpenOptions::new().write(true).create_new(true).mode(file.mode).open(&beside)?;
    opened.write_all(file.text.as_bytes())?;
    fs::rename(&beside, &file.path)
}

fn link(at: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(at.parent().unwrap_or(Path::new("/")))?;
    match symlink(target, at) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
