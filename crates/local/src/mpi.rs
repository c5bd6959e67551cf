//! The MPI on this machine: where it is, which flavour and version it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use unisono_job::Flavour;

use crate::tagged::{TagForm, tag_form, tag_options};

/// An MPI that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    /// Its launcher.
    pub mpirun: PathBuf,
    /// Its flavour; absent when its `--version` tells none we know.
    pub flavour: Option<Flavour>,
    /// What `--version` says, on one line.
    pub version: String,
    /// Whether its folder must be put on the `PATH`, because the user named it.
    named: bool,
    tags: &'static [&'static str],
    pub(crate) tag_form: Option<TagForm>,
}

/// Finds `mpirun` in a folder the user named, or on a `PATH`.
pub fn find(named: Option<&Path>, path: &str) -> Option<Mpi> {
    let folders: Vec<PathBuf> = match named {
        Some(folder) => vec![folder.join("bin"), folder.to_owned()],
        None => std::env::split_paths(path).collect(),
    };
    let candidates =
        folders.iter().flat_map(|folder| ["mpirun", "mpiexec"].map(|name| folder.join(name)));
    let mpirun = candidates.into_iter().find(|candidate| candidate.is_file())?;
    // Intel MPI's mpirun is a script that looks for its other programs on the PATH.
    let folders =
        mpirun.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(path));
    let path = std::env::join_paths(folders).ok()?;
    let output = Command::new(&mpirun).arg("--version").env("PATH", path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(Mpi {
        mpirun,
        flavour: flavour(&text),
        version: version(&text),
        named: named.is_some(),
        tags: tag_options(&text),
        tag_form: tag_form(&text),
    })
}

impl Mpi {
    /// The folder that holds its `bin`.
    pub fn prefix(&self) -> Option<PathBuf> {
        self.mpirun.parent()?.parent().map(Path::to_owned)
    }

    /// The folder to put on the `PATH`, if any.
    pub(crate) fn added_bin(&self) -> Option<String> {
        let folder = self.mpirun.parent().filter(|_| self.named)?;
        Some(folder.display().to_string())
    }

    /// What the stand-in for the launcher is told: which launcher to tag, and how.
    pub(crate) fn tag_request(&self) -> String {
        std::iter::once(self.mpirun.display().to_string())
            .chain(self.tags.iter().map(|tag| (*tag).to_owned()))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

fn flavour(text: &str) -> Option<Flavour> {
    if text.contains("Open MPI") || text.contains("OpenRTE") {
        Some(Flavour::OpenMpi)
    } else if text.contains("Intel(R) MPI") {
        Some(Flavour::Intel)
    } else if text.contains("HYDRA") {
        Some(Flavour::Mpich)
    } else {
        None
    }
}

/// The line that tells the version, without the padding some put into it.
fn version(text: &str) -> String {
    let told = text.lines().find(|line| line.contains("Version")).or_else(|| text.lines().next());
    told.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_are_known_by_what_they_say() {
        let hydra = "HYDRA build details:\n    Version:                                 5.0.2\n";
        assert_eq!(
            (flavour(hydra), version(hydra).as_str()),
            (Some(Flavour::Mpich), "Version: 5.0.2")
        );
        let four = "mpirun (Open MPI) 4.1.4\n\nReport bugs\n";
        assert_eq!(
            (flavour(four), version(four).as_str()),
            (Some(Flavour::OpenMpi), "mpirun (Open MPI) 4.1.4")
        );
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 2026";
        assert_eq!(flavour(intel), Some(Flavour::Intel));
        assert_eq!(flavour("slurm 1"), None);
    }
}
