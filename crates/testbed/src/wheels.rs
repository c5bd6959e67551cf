//! Python packages for tests: what enters is a list with exact versions, what leaves is a virtual environment that holds them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a package could not be installed.
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
    #[error("prepare the cache of Python packages")]
    Cache(#[from] io::Error),
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

/// Makes a virtual environment with exactly these packages; what builds one of them sees these variables.
pub(crate) fn install(
    packages: &[&str],
    variables: &[(&str, &str)],
    target: &Path,
) -> Result<(), InstallError> {
    let python = python().ok_or(InstallError::NoPython)?;
    run(Command::new(python).args(["-m", "venv"]).arg(target))?;
    run(Command::new(target.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
        .args(packages)
        .envs(variables.iter().copied()))
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
