//! The real `horovodrun`, without any of the frameworks that it is for: what enters is a wish, what leaves is a folder for the `PATH`, or what an image needs.
//!
//! Built without a framework it refuses to launch, because it has no library for ranks to talk with. What it does to hosts does
//! not depend on that library, and the programs that tests launch bring an MPI of their own. So it is told that the library is there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::wheels::{self, InstallError};

/// It, and what it needs to launch.
const PACKAGES: [&str; 5] =
    ["horovod==0.28.1", "cloudpickle==3.1.2", "packaging==26.3", "psutil==7.2.2", "pyyaml==6.0.3"];

/// Leaves everything out that would have to be compiled, and what would compile it.
const WITHOUT: [(&str, &str); 6] = [
    ("HOROVOD_CMAKE", "true"),
    ("HOROVOD_WITHOUT_GLOO", "1"),
    ("HOROVOD_WITHOUT_MPI", "1"),
    ("HOROVOD_WITHOUT_MXNET", "1"),
    ("HOROVOD_WITHOUT_PYTORCH", "1"),
    ("HOROVOD_WITHOUT_TENSORFLOW", "1"),
];

/// The folder that holds `horovodrun` and nothing else.
const LAUNCHER: &str = "launcher";

/// Horovod is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error("horovod is not installed (no {}): run `cargo xtask setup test`", .0.display())]
pub struct NotInstalled(PathBuf);

/// Finds the folder that holds `horovodrun`, to be put on the `PATH`.
///
/// # Errors
/// When it is not installed, or its installation was never finished.
pub fn find() -> Result<PathBuf, NotInstalled> {
    let evidence = folder().join("complete");
    if evidence.exists() { Ok(folder().join(LAUNCHER)) } else { Err(NotInstalled(evidence)) }
}

/// Installs it unless it is there, and tells `say` about it.
///
/// # Errors
/// When Python is missing or a download fails; what was half installed is never used.
pub fn install(say: impl Fn(&str)) -> Result<(), InstallError> {
    cache::filled(folder(), |target| {
        say(&format!("installing {} in {}", PACKAGES[0], target.display()));
        wheels::install(&PACKAGES, &WITHOUT, target)?;
        let python = target.join("bin/python");
        write_launcher(&python, &target.join(LAUNCHER)).map_err(InstallError::from)
    })
    .map(drop)
}

/// The folder of the Python packages, for images.
///
/// # Errors
/// When it is not installed.
pub fn packages() -> Result<PathBuf, NotInstalled> {
    let library = folder().join("lib");
    let versions = fs::read_dir(&library).into_iter().flatten().filter_map(Result::ok);
    let mut found = versions.map(|it| it.path().join("site-packages")).filter(|it| it.exists());
    found.next().ok_or(NotInstalled(library))
}

/// Writes `horovodrun` into a folder, for this Python.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write_launcher(python: &Path, folder: &Path) -> std::io::Result<()> {
    let script = format!("#!{}\n{}", python.display(), include_str!("horovodrun.py"));
    let path = folder.join("horovodrun");
    fs::create_dir_all(folder)?;
    fs::write(&path, script)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn folder() -> PathBuf {
    let script: &[u8] = include_bytes!("horovodrun.py");
    let parts: Vec<&[u8]> = PACKAGES.iter().map(|it| it.as_bytes()).chain([script]).collect();
    cache::root().join("wheels").join(format!("horovod-{}", cache::digest(&parts)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn it_is_installed_and_says_who_it_is() {
        let launcher = find().unwrap().join("horovodrun");
        let output = Command::new(launcher).arg("--version").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0.28.1\n");
    }
}
