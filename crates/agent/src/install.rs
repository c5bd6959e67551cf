//! Copies this very program into a folder, with the names it answers to: a folder goes in, an agent ready to be called comes out.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A copy that could not be made.
#[derive(Debug, Error)]
#[error("cannot install {}", path.display())]
pub(crate) struct InstallError {
    path: PathBuf,
    source: io::Error,
}

/// The links beside the program, and what each points to from where it lies.
const LINKS: [(&str, &str); 4] = [
    ("unisono-rsh", "unisono-agent"),
    ("bin/ssh", "../unisono-agent"),
    ("launchers/mpirun", "../unisono-agent"),
    ("launchers/mpiexec", "../unisono-agent"),
];

/// Installs `unisono-agent`, `unisono-rsh` (for mpirun, which takes a program and no arguments), `bin/ssh` and `launchers` (to be
/// put on the `PATH` where scripts are to find them). Each appears in one step; a program that is in use is replaced, not overwritten.
pub(crate) fn install(folder: &Path) -> Result<(), InstallError> {
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError { path, source }
    };
    for links in ["bin", "launchers"] {
        fs::create_dir_all(folder.join(links)).map_err(fault(folder))?;
    }
    let program = folder.join("unisono-agent");
    in_one_step(&program, |beside| {
        fs::copy("/proc/self/exe", beside)?;
        fs::set_permissions(beside, fs::Permissions::from_mode(0o755))
    })
    .map_err(fault(&program))?;
    for (name, target) in LINKS {
        let link = folder.join(name);
        in_one_step(&link, |beside| symlink(target, beside)).map_err(fault(&link))?;
    }
    Ok(())
}

fn in_one_step(path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    make(&beside)
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| drop(fs::remove_file(&beside)))
}
