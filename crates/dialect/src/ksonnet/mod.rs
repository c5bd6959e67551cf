//! The `ks` command line of ksonnet, as far as the package `mpi-job` needs it: words and files enter, edits and text leave.
//!
//! Nothing here opens a file. [`run`] takes what was typed and what the application folder holds, and says what to write,
//! what to print, and which objects to hand to a cluster. Jsonnet is not run: components are known by their prototype,
//! parameters are literal values.

mod app;
mod command;
mod component;
mod flags;
mod lexer;
mod literal;
mod objects;
mod operator;
mod params;
mod prototype;

use std::collections::BTreeMap;

pub use app::AppError;
pub use literal::LiteralError;
pub use objects::NoSuchParam;
pub use prototype::PrototypeError;

/// What an application folder holds.
#[derive(Clone, Debug, Default)]
pub struct Application {
    /// Texts by path inside the folder: `app.yaml`, and everything under `components` and `environments`.
    pub files: BTreeMap<String, String>,
    /// The text of the file that `--values-file` names.
    pub values_file: Option<String>,
}

/// What a command comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Files to write or remove, in this order; all of them or none.
    pub edits: Vec<Edit>,
    /// What is printed: data.
    pub output: String,
    /// What is told besides.
    pub remarks: Vec<String>,
    /// The folder of a new application: paths begin with it, and it may not hold an application yet.
    pub new_folder: Option<String>,
    /// What a cluster is to be given.
    pub handover: Option<Handover>,
}

/// A change of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The file gets this text.
    Write {
        /// Where, inside the application's folder; for a new application, inside the working directory.
        path: String,
        /// What.
        text: String,
    },
    /// The file goes, and its folder when nothing else is in it.
    Remove {
        /// Where.
        path: String,
    },
}

/// Objects for a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover {
    /// Whether they are made or removed.
    pub deletes: bool,
    /// The environment that was named.
    pub environment: String,
    /// The address of its API server; empty when the application does not state it.
    pub server: String,
    /// The objects.
    pub objects: Vec<serde_json::Value>,
}

/// Why a command cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KsError {
    /// What was typed makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: Option<String>,
    },
    /// No application is here.
    #[error("this is not inside a ksonnet application: there is no app.yaml here or above")]
    NoApplication,
    /// Prototype or parameter.
    #[error(transparent)]
    Prototype(#[from] PrototypeError),
    /// `app.yaml`.
    #[error(transparent)]
    App(#[from] AppError),
    /// A parameter file.
    #[error("{path}:{line}:{column}: {source}")]
    Literal {
        /// The file.
        path: String,
        /// The line of the fault.
        line: usize,
        /// Its column.
        column: usize,
        /// The fault.
        source: LiteralError,
    },
    /// A component whose parameters are incomplete.
    #[error("component `{component}`: {missing}")]
    Params {
        /// The component.
        component: String,
        /// What is missing.
        missing: NoSuchParam,
    },
}

impl KsError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    pub(crate) fn advised(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// A fault of a parameter file, at its place.
    fn literal(path: &str, text: &str, source: LiteralError) -> Self {
        let before = text.get(..source.at()).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Literal {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            source,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::NoApplication => {
                Some("make one with `ks init NAME`, then work inside the folder NAME".to_owned())
            }
            Self::Prototype(PrototypeError::UnknownParam(_)) => {
                Some("`ks prototype describe PROTOTYPE` lists the parameters".to_owned())
            }
            Self::Prototype(PrototypeError::NoNumber { .. }) => {
                Some("give a number such as 8".to_owned())
            }
            Self::Prototype(_) => Some("`ks prototype list` shows what there is".to_owned()),
            Self::Params { component, missing } => {
                Some(format!("set it: `ks param set {component} {} VALUE`", missing.0))
            }
            Self::App(_) | Self::Literal { .. } => None,
        }
    }
}

/// Does what was typed. Without an application only `init`, `help` and looking at prototypes work.
///
/// # Errors
///
/// When the words make no sense, or a file of the application is not understood.
pub fn run(arguments: &[String], application: Option<&Application>) -> Result<Outcome, KsError> {
    command::run(arguments, application)
}

/// The file that `--values-file` names, for the caller to read before [`run`].
pub fn values_file(arguments: &[String]) -> Option<String> {
    flags::Line::read(arguments).ok()?.take("values-file")
}
