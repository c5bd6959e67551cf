//! What a host is to be, in a file that only its keeper and its process 1 read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Bounds, Cable, SetUpError};

/// Everything that makes one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its host name.
    pub name: String,
    /// How far it is kept apart from the machine.
    pub isolation: Isolation,
    /// An empty directory of the machine on which its root is built, unseen by anybody else.
    pub stage: PathBuf,
    /// The text of its `/etc/hosts`.
    pub etc_hosts: String,
    /// Files that exist only inside it.
    pub files: Vec<HostFile>,
    /// Programs of the machine that appear inside under other paths: where they are, and where they appear.
    pub programs: Vec<(PathBuf, PathBuf)>,
    /// Folders of the machine that appear inside under other paths.
    pub folders: Vec<(PathBuf, PathBuf)>,
    /// Links that exist only inside: where each is, and what it points to.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Folders under `/tmp` that stay visible although the host has a `/tmp` of its own.
    pub visible_in_tmp: Vec<PathBuf>,
    /// Size of `/dev/shm` in MiB.
    pub shm_mib: u64,
    /// Where the command runs.
    pub working_dir: PathBuf,
    /// The whole environment of the command.
    pub environment: Vec<(String, String)>,
    /// The command, which becomes process 1.
    pub argv: Vec<String>,
    /// Its place on the job's private network; without one it is on the machine's.
    pub cable: Option<Cable>,
    /// Limits on what it may use.
    pub bounds: Option<Bounds>,
    /// How many files its command may have open, where its keeper may have more.
    pub open_files: Option<u64>,
    /// Folders of the machine that are made for it and removed with it; only hosts without namespaces need any.
    pub own_folders: Vec<PathBuf>,
}

/// A file that exists only inside a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFile {
    /// Its path inside.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub text: String,
}

/// How far a host is kept apart from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Namespaces, made by root.
    Namespaces,
    /// Namespaces inside a user namespace, made by an ordinary user.
    UserNamespace,
    /// Not at all: plain processes, where the machine refuses namespaces.
    Processes,
}

impl Isolation {
    /// Its name on a command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::UserNamespace => "user-namespace",
            Self::Processes => "processes",
        }
    }

    /// The isolation of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Namespaces, Self::UserNamespace, Self::Processes]
            .into_iter()
            .find(|isolation| isolation.name() == name)
    }
}

impl HostSpec {
    pub(super) fn read(path: &Path) -> Result<Self, SetUpError> {
        let failed = |error| SetUpError::Spec(path.display().to_string(), error);
        let text = std::fs::read(path).map_err(failed)?;
        serde_json::from_slice(&text).map_err(|error| failed(error.into()))
    }
}
