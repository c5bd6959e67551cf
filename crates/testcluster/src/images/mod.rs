//! The images that the tests' pods run, made on this machine without a registry.

mod archive;
mod bare;
mod busybox;
mod debian;
mod layer;
mod libraries;
mod mpi;
mod programs;
mod sample;
mod static_program;
mod store;
mod unisono;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use archive::Configuration;

use crate::cache::{self, Key};
use crate::progress::Progress;

pub(crate) use store::import;
pub use unisono::{UNISONO, operator_archive, unisono_archive};

/// The image of every pod's sandbox.
pub(crate) const PAUSE: &str = "unisono.test/pause:1";

/// An image that nodes can have from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// A static busybox with all its commands: the smallest thing with a shell.
    Busybox,
    /// Debian with Open MPI 4; programs in `/programs/openmpi4`.
    OpenMpi4,
    /// Debian with Open MPI 5, MPICH and Intel MPI, each in `/opt/FLAVOUR`; programs in
    /// `/programs/FLAVOUR`.
    OtherMpis,
    /// MPICH in `/opt/mpich` with its programs in `/programs/mpich`, and the libraries that they load: no shell, no ssh.
    Bare,
    /// Nothing but `/hello`, an MPI program that is linked statically: no shell.
    Static,
    /// Open MPI 4 with an sshd on port 2222 for a user of uid 1000.
    Sample,
}

/// How an image is made.
struct Recipe {
    name: &'static str,
    configuration: Configuration,
    /// All that decides what comes out, besides this program.
    key: fn() -> anyhow::Result<Key>,
    /// Fills the empty root folder.
    fill: fn(&Path) -> anyhow::Result<()>,
}

impl Image {
    /// Every image there is.
    pub const ALL: &[Self] =
        &[Self::Busybox, Self::OpenMpi4, Self::OtherMpis, Self::Bare, Self::Static, Self::Sample];

    /// What a pod writes to have it; with `imagePullPolicy: Never` or `IfNotPresent`.
    pub fn reference(self) -> String {
        self.recipe().reference()
    }

    /// Makes the image anew, past the cache, as `image.tar` in an empty folder.
    pub fn make(self, folder: &Path) -> anyhow::Result<PathBuf> {
        self.recipe().make(folder)?;
        Ok(folder.join("image.tar"))
    }

    /// The image as a `docker save` archive, made now if it never was.
    pub fn archive(self) -> anyhow::Result<PathBuf> {
        self.recipe().archive()
    }

    fn recipe(self) -> &'static Recipe {
        match self {
            Self::Busybox => &busybox::BUSYBOX,
            Self::OpenMpi4 => &mpi::OPENMPI4,
            Self::OtherMpis => &mpi::WHEELS,
            Self::Bare => &bare::BARE,
            Self::Static => &static_program::STATIC,
            Self::Sample => &sample::SAMPLE,
        }
    }
}

impl Recipe {
    fn reference(&self) -> String {
        format!("unisono.test/{}:1", self.name)
    }

    fn archive(&self) -> anyhow::Result<PathBuf> {
        let key = (self.key)()?.with(format!("{:?}", self.configuration));
        let folder = cache::folder(&format!("image-{}", self.name), &key, |draft| {
            let progress = Progress::new(format!("making the image {}", self.name));
            let start = Instant::now();
            self.make(draft)?;
            progress.done(&format!("{} s", start.elapsed().as_secs()));
            Ok(())
        })?;
        Ok(folder.join("image.tar"))
    }

    /// Makes `image.tar` in an empty folder.
    fn make(&self, folder: &Path) -> anyhow::Result<()> {
        let root = folder.join("root");
        fs::create_dir(&root).context("create a root")?;
        (self.fill)(&root)?;
        let output = folder.join("image.tar");
        archive::write(&self.reference(), &root, self.configuration, &output)?;
        fs::remove_dir_all(&root).context("remove a root that is packed")
    }
}

/// The folder from which nodes mount these images, and the sandbox' own.
pub(crate) fn store(images: &[Image]) -> anyhow::Result<PathBuf> {
    let mut archives = vec![busybox::PAUSE.archive()?];
    for image in images {
        archives.push(image.archive()?);
    }
    store::with(&archives)
}
