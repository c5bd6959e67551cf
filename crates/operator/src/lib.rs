//! The operator: controllers over the engine for Kubernetes, the manifests it is installed with, and how it lives in a cluster.
//!
//! [`manifests`] is pure: settings enter, objects leave. [`install()`] gives them to a cluster. [`run()`] is the operator
//! itself.

mod install;
mod log;
pub mod manifests;
mod resources;
mod run;

pub use install::{InstallError, Step, install};
pub use log::log;
/// The allocator for programs that are operators. What watches tell is read and thrown away all the time; the C library's own takes a
/// third of an operator's processor time for that, this one half as much.
pub use mimalloc::MiMalloc as Allocator;
pub use run::{Gang, LONGEST_LOOK, LeaseLost, RunError, RunOptions, UnknownGang, run};
