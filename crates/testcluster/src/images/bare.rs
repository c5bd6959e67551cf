//! An image with an MPI and nothing else: MPICH's launcher, its libraries and one program. No shell, no ssh, no package of any
//! distribution but the C library.

use std::fs;
use std::path::Path;

use anyhow::Context;
use unisono_testbed::mpi::{self, Flavour};

use super::archive::Configuration;
use super::libraries::{below, copy_libraries};
use super::{Recipe, programs};
use crate::cache::Key;

/// What starts ranks, here and on other hosts.
const LAUNCHERS: [&str; 2] = ["mpiexec.hydra", "hydra_pmi_proxy"];

/// Launchers in `/opt/mpich/bin`, programs in `/programs/mpich`.
pub(super) const BARE: Recipe = Recipe {
    name: "bare",
    configuration: Configuration {
        user: "65534:65534",
        environment: &["PATH=/opt/mpich/bin"],
        command: &["/programs/mpich/hello"],
    },
    key: || {
        let prefix = mpi::find(Flavour::Mpich)?.prefix;
        Ok(programs::key(Key::new()).with(prefix.as_os_str().as_encoded_bytes()).with("bare"))
    },
    fill,
};

fn fill(root: &Path) -> anyhow::Result<()> {
    programs::compile_all(Flavour::Mpich, root)?;
    let prefix = mpi::find(Flavour::Mpich)?.prefix;
    let mpich = root.join("opt/mpich");
    fs::create_dir_all(mpich.join("bin")).context("create a folder for programs")?;
    for launcher in LAUNCHERS {
        let from = prefix.join("bin").join(launcher);
        fs::copy(&from, mpich.join("bin").join(launcher)).context("copy a launcher")?;
    }
    let programs = LAUNCHERS.map(|launcher| mpich.join("bin").join(launcher));
    let programs = programs.into_iter().chain([root.join("programs/mpich/hello")]);
    copy_libraries(programs, &prefix.join("lib"), |library| match library.strip_prefix(&prefix) {
        Ok(own) => mpich.join(own),
        Err(_) => below(root, library),
    })
}
