//! Why a command could not do its work: each kind with its exit code and its advice.

use std::io;
use std::path::PathBuf;

use unisono_dialect::ksonnet::KsError;

use crate::exit::Exit;
use crate::{input, settings};

/// Why a command ended early. Faults of job files are not errors: they are what commands report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file could not be read.
    #[error(transparent)]
    Input(#[from] input::InputError),
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    /// A command of ksonnet that cannot be done.
    #[error(transparent)]
    Ks(#[from] KsError),
    /// What was typed is well-formed, but means nothing.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: Option<String>,
    },
    /// A file or folder could not be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The job could not be run.
    #[error("{message}")]
    Run {
        /// What was tried.
        message: String,
        /// What to do.
        hint: Option<String>,
        /// Why it failed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Our own output could not be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

impl Error {
    /// A wrong use, with advice.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// A job that could not be run, and why.
    pub(crate) fn run(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Run { message: message.into(), hint: None, source: Some(Box::new(source)) }
    }

    /// What only a build with the feature can do.
    #[cfg(not(feature = "kubernetes"))]
    pub(crate) fn without_kubernetes(what: &str) -> Self {
        Self::Run {
            message: format!("this build of unisono cannot talk to a cluster: no `{what}`"),
            hint: Some("build it with the feature `kubernetes`, which is on by default".to_owned()),
            source: None,
        }
    }

    /// The exit code that goes with it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
            Self::Run { .. } => Exit::COULD_NOT_RUN,
            Self::Input(_)
            | Self::Settings(_)
            | Self::Ks(_)
            | Self::Unwritable { .. }
            | Self::Usage { .. }
            | Self::Output(_) => Exit::Usage,
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Input(error) => error.hint(),
            Self::Settings(error) => error.hint(),
            Self::Ks(error) => error.hint(),
            Self::Usage { hint, .. } | Self::Run { hint, .. } => hint.clone(),
            Self::Unwritable { .. } | Self::Output(_) => None,
        }
    }
}
