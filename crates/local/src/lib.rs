//! Engine: isolated hosts on this machine.
//!
//! A host is a process in its own UTS, mount, IPC and PID namespaces, with a host name, `/tmp`, `/dev/shm`, `/etc/hosts`
//! and the files its dialect promises; it shares the machine's network under a loopback address of its own.

mod drive;
mod engine;
mod furnish;
pub mod host;
pub mod mpi;
mod output;
mod run_directory;
mod seats;
pub mod shim;
mod tagged;

pub use drive::{Told, drive};
pub use engine::{EngineError, Happening, LocalEngine};
pub use furnish::Machine;
pub use output::Written;
pub use run_directory::{RunDirectory, RunLock, RunRecord};
pub use seats::give_addresses;
