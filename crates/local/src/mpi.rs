//! The MPI on this machine: where it is, which flavour and version it is, and whether it is the one a job is for.

use std::path::{Path, PathBuf};
use std::process::Command;

use unisono_agent::tags::TagForm;
use unisono_job::{Flavour, MpiChoice, MpiFrom, Note};

use crate::notes::OTHER_MPI;

/// Where MPIs are installed that do not put themselves on the `PATH`.
const USUAL_PLACES: [&str; 4] = [
    "/opt/intel/oneapi/mpi/latest/bin",
    "/usr/lib64/openmpi/bin",
    "/usr/lib64/mpich/bin",
    "/usr/local/bin",
];

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
    /// How its launcher tags lines when asked to.
    pub(crate) tag_form: Option<TagForm>,
}

/// Finds `mpirun` in a folder the user named; else the first on the `PATH`, or, when a flavour is wanted, the first of that
/// flavour on the `PATH` or where such things are usually installed.
pub fn find(named: Option<&Path>, path: &str, wanted: Option<Flavour>) -> Option<Mpi> {
    if let Some(folder) = named {
        let launcher = launchers([folder.join("bin"), folder.to_owned()]).next()?;
        return look_at(launcher, path, true);
    }
    let first = launchers(std::env::split_paths(path)).next();
    let first = first.and_then(|launcher| look_at(launcher, path, false));
    let fits = |mpi: &Mpi| wanted.is_none() || mpi.flavour == wanted;
    if first.as_ref().is_some_and(fits) || wanted.is_none() {
        return first;
    }
    let places = std::env::split_paths(path).chain(USUAL_PLACES.map(PathBuf::from));
    let others = launchers(places).filter_map(|launcher| look_at(launcher, path, true));
    others.into_iter().find(fits).or(first)
}

/// The launcher of every folder that has one.
fn launchers(folders: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = PathBuf> {
    let launcher = |folder: PathBuf| {
        let named = ["mpirun", "mpiexec"].map(|name| folder.join(name));
        named.into_iter().find(|candidate| candidate.is_file())
    };
    folders.into_iter().filter_map(launcher)
}

/// Asks a launcher who it is. `named`: its folder must be put on the `PATH`.
fn look_at(mpirun: PathBuf, path: &str, named: bool) -> Option<Mpi> {
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
        named,
        tag_form: TagForm::of(&text),
    })
}

impl Mpi {
    /// The folder that holds its `bin`.
    pub fn prefix(&self) -> Option<PathBuf> {
        self.mpirun.parent()?.parent().map(Path::to_owned)
    }

    /// Whether it is run by root and would refuse to be, if variables of ours did not allow it.
    pub fn is_allowed_as_root(&self) -> bool {
        self.flavour == Some(Flavour::OpenMpi) && rustix::process::geteuid().is_root()
    }

    /// Puts a mark into the tags of one run's lines, where that can be done, so that nothing a rank writes is taken for one.
    pub fn mark_tags(&mut self, mark: u32) {
        self.tag_form = self.tag_form.map(|form| form.marked(mark));
    }

    /// The folder to put on the `PATH`, if any.
    pub(crate) fn added_bin(&self) -> Option<String> {
        let folder = self.mpirun.parent().filter(|_| self.named)?;
        Some(folder.display().to_string())
    }

    /// Whether its launcher takes long options with two dashes only: Open MPI from version 5 on.
    pub(crate) fn wants_two_dashes(&self) -> bool {
        self.tag_form == Some(TagForm::Prrte)
    }

    /// What the stand-in for the launcher is told: which launcher is known, and how it tags lines, if that is wanted.
    pub(crate) fn tag_request(&self, wanted: bool) -> String {
        let options = self.tag_form.filter(|_| wanted).map(TagForm::options);
        std::iter::once(self.mpirun.display().to_string())
            .chain(options.unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A warning when a job is for another MPI than the one that was found.
///
/// A default that the file does not state is no wish, and Intel MPI's options are MPICH's as well.
pub fn mismatch(wanted: MpiChoice, found: &Mpi) -> Option<Note> {
    let (wanted, from) = (wanted.flavour?, wanted.from);
    let is = found.flavour?;
    let differs = match from {
        MpiFrom::Stated => wanted != is,
        MpiFrom::LaunchLine => (wanted == Flavour::OpenMpi) != (is == Flavour::OpenMpi),
        MpiFrom::Default | MpiFrom::Unknown => false,
    };
    differs.then(|| {
        let why = if from == MpiFrom::Stated { "the file says" } else { "its launch line says" };
        let message =
            format!("the job is for {}, as {why}, but {} is here", wanted.name(), is.name());
        Note::new(&OTHER_MPI, message)
            .hint(format!("{}, or name its folder with --mpi DIR", how_to_install(Some(wanted))))
    })
}

/// What to type to have an MPI.
pub const fn how_to_install(flavour: Option<Flavour>) -> &'static str {
    match flavour {
        Some(Flavour::OpenMpi) | None => "install it with `apt install openmpi-bin`",
        Some(Flavour::Mpich) => "install it with `apt install mpich`",
        Some(Flavour::Intel) => "install it with `pip install impi-rt`",
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

    /// A folder with a launcher that says this of itself.
    fn installed(says: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let launcher = folder.path().join("mpirun");
        std::fs::write(&launcher, format!("#!/bin/sh\necho '{says}'\n")).expect("write it");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(launcher, executable).expect("make it executable");
        folder
    }

    #[test]
    fn the_wanted_flavour_is_found_behind_another_and_put_first() {
        let (open, hydra) = (installed("mpirun (Open MPI) 4.1.4"), installed("HYDRA build"));
        let path = format!("{}:{}:/usr/bin:/bin", open.path().display(), hydra.path().display());
        let found = |wanted| {
            let mpi = find(None, &path, wanted).expect("one is there");
            (mpi.flavour, mpi.added_bin().is_some())
        };
        assert_eq!(found(None), (Some(Flavour::OpenMpi), false));
        assert_eq!(found(Some(Flavour::OpenMpi)), (Some(Flavour::OpenMpi), false));
        assert_eq!(found(Some(Flavour::Mpich)), (Some(Flavour::Mpich), true));
        assert_eq!(found(Some(Flavour::Intel)), (Some(Flavour::OpenMpi), false));
        let named = find(Some(hydra.path()), &path, Some(Flavour::OpenMpi)).expect("it is there");
        assert_eq!(named.flavour, Some(Flavour::Mpich), "what the user names is taken");
    }

    #[test]
    fn a_stated_mpi_is_a_wish_and_a_default_is_none() {
        let folder = installed("HYDRA build");
        let mpich = find(Some(folder.path()), "", None).expect("it is there");
        let told = |flavour, from| mismatch(MpiChoice { flavour: Some(flavour), from }, &mpich);
        assert!(told(Flavour::Intel, MpiFrom::Stated).is_some());
        assert!(told(Flavour::OpenMpi, MpiFrom::LaunchLine).is_some());
        assert_eq!(told(Flavour::Intel, MpiFrom::LaunchLine), None);
        assert_eq!(told(Flavour::OpenMpi, MpiFrom::Default), None);
        assert_eq!(told(Flavour::Mpich, MpiFrom::Stated), None);
    }
}
