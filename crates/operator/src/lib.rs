//! The operator: controllers over the engine for Kubernetes, the manifests it is installed with, and how it lives in a cluster.
//!
//! [`manifests`] is pure: settings enter, objects leave. [`install()`] gives them to a cluster.

mod install;
pub mod manifests;
mod resources;

pub use install::{InstallError, Step, install};
