//! Which MPI a job is for.

use serde::Serialize;

/// A family of MPI launchers that want the same host file and the same variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// Open MPI, any version.
    OpenMpi,
    /// Intel MPI.
    Intel,
    /// MPICH and its descendants (Hydra).
    Mpich,
}

impl Flavour {
    /// The name people use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Intel => "Intel MPI",
            Self::Mpich => "MPICH",
        }
    }
}

/// The flavour a job is for, and how we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MpiChoice {
    /// The flavour; absent when nothing tells it.
    pub flavour: Option<Flavour>,
    /// Which rule gave it.
    pub from: MpiFrom,
}

/// How the flavour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MpiFrom {
    /// The file says so.
    Stated,
    /// Options of the launch line belong to it.
    LaunchLine,
    /// The dialect's default.
    Default,
    /// Nothing tells it.
    Unknown,
}
