//! The operator: controllers over the engine for Kubernetes, the manifests it is installed with, and how it lives in a cluster.
//!
//! [`manifests`] is pure: settings enter, objects leave. [`install()`] gives them to a cluster. [`run()`] is the operator
//! itself.

mod allocator;
mod install;
mod log;
pub mod manifests;
mod resources;
mod run;

pub use allocator::Allocator;
pub use install::{InstallError, Step, install};
pub use log::log;
pub use run::{Gang, LONGEST_LOOK, LeaseLost, RunError, RunOptions, UnknownGang, run};
