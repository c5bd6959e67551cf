//! Images as users have them: a Debian with its Open MPI 4; and a Debian with the three other MPIs,
//! each in a folder of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use unisono_testbed::horovod;
use unisono_testbed::mpi::{self, Flavour};

use super::archive::Configuration;
use super::{Recipe, debian, programs};
use crate::cache::Key;
use crate::progress::Progress;

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// No image of a user needs an sshd, and those with another MPI do not have Debian's.
const NO_SSHD: &[&str] = &["openssh-server"];
const NO_MPI: &[&str] = &["openmpi-bin", "openssh-client", "openssh-server", "python3"];

/// Which MPIs the second image has.
const OTHERS: [Flavour; 3] = [Flavour::OpenMpi5, Flavour::Mpich, Flavour::IntelMpi];

/// Open MPI 4, as Debian packages it, and horovodrun.
pub(super) const OPENMPI4: Recipe = Recipe {
    name: "openmpi4",
    configuration: Configuration { user: "", environment: &[PATH], command: &["bash"] },
    key: || {
        horovod::install(|what| drop(Progress::new(what.to_owned())))?;
        let packages = horovod::packages()?;
        Ok(programs::key(debian::key(NO_SSHD)).with(packages.as_os_str().as_encoded_bytes()))
    },
    fill: |root| {
        debian::install(NO_SSHD, root)?;
        add_horovod(root)?;
        programs::compile_all(Flavour::OpenMpi4, root)
    },
};

/// Open MPI 5, MPICH and Intel MPI, in `/opt/openmpi5`, `/opt/mpich` and `/opt/intelmpi`. Whoever
/// runs one puts its `bin` first on the path.
pub(super) const WHEELS: Recipe = Recipe {
    name: "mpis",
    configuration: Configuration { user: "", environment: &[PATH], command: &["bash"] },
    key: wheels_key,
    fill: |root| {
        debian::install(NO_MPI, root)?;
        OTHERS.into_iter().try_for_each(|flavour| {
            copy(flavour, root)?;
            programs::compile_all(flavour, root)
        })
    },
};

/// Where Debian's Python looks for what is not Debian's.
const PYTHON_PACKAGES: &str = "usr/local/lib/python3.11/dist-packages";

fn add_horovod(root: &Path) -> anyhow::Result<()> {
    let target = root.join(PYTHON_PACKAGES);
    std::fs::create_dir_all(&target).context("create a folder for Python packages")?;
    for entry in std::fs::read_dir(horovod::packages()?).context("list Python packages")? {
        let entry = entry.context("list Python packages")?;
        // Nobody installs anything in an image.
        if !entry.file_name().as_encoded_bytes().starts_with(b"pip") {
            let mut copy = Command::new("cp");
            copy.arg("--recursive").args([&entry.path(), &target]);
            ensure!(copy.status().context("run cp")?.success(), "copy {:?}", entry.path());
        }
    }
    let folder = root.join("usr/local/bin");
    horovod::write_launcher(Path::new("/usr/bin/python3"), &folder).context("write horovodrun")
}

fn wheels_key() -> anyhow::Result<Key> {
    mpi::install_all(|what| drop(Progress::new(what.to_owned())))?;
    let mut key = programs::key(debian::key(NO_MPI));
    for flavour in OTHERS {
        // The folder's name says the version.
        key = key.with(mpi::find(flavour)?.prefix.as_os_str().as_encoded_bytes());
    }
    Ok(key)
}

/// Copies an MPI without what its wheel was installed with.
fn copy(flavour: Flavour, root: &Path) -> anyhow::Result<()> {
    let target = root.join("opt").join(flavour.name());
    std::fs::create_dir_all(&target).context("create a folder for an MPI")?;
    let prefix = mpi::find(flavour)?.prefix;
    for folder in ["bin", "etc", "lib", "opt", "share"] {
        let from = prefix.join(folder);
        if from.exists() {
            let status = Command::new("cp").arg("--archive").args([&from, &target]).status();
            ensure!(status.context("run cp")?.success(), "copy {}", from.display());
        }
    }
    for entry in std::fs::read_dir(target.join("lib")).context("list libraries")? {
        let entry = entry.context("list libraries")?;
        if entry.file_name().as_encoded_bytes().starts_with(b"python") {
            std::fs::remove_dir_all(entry.path()).context("remove a Python")?;
        }
    }
    Ok(())
}
