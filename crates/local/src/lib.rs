//! Engine: isolated hosts on this machine.
//!
//! A host is a process in its own UTS, mount, IPC and PID namespaces, with a host name, `/tmp`, `/dev/shm`, `/etc/hosts`
//! and the files its dialect promises. It shares the machine's network under a loopback address of its own, or has an
//! address on a private network of the job. Machines that have less get less, and notes say what.

mod control_groups;
mod devices;
mod door;
mod drive;
mod engine;
mod first_end;
mod furnish;
pub mod gpus;
pub mod host;
mod lives;
mod log_untagger;
pub mod means;
pub mod mpi;
pub mod notes;
pub mod open_files;
mod output;
mod post_mortem;
mod retention;
mod run_directory;
mod seats;
pub mod shim;
mod tagged;
mod tails;
mod untagger;

pub use door::{Door, usual_slots};
pub use drive::{Told, drive};
pub use engine::{EngineError, Happening, LocalEngine};
pub use furnish::Machine;
pub use log_untagger::LogUntagger;
pub use output::Written;
pub use post_mortem::failed_ranks;
pub use retention::{Limits, sweep};
pub use run_directory::{RunDirectory, RunLock, RunRecord};
pub use seats::{give_addresses, private_addresses};
use unisono_plan::complaints;
pub use unisono_plan::complaints::{Unrunnable, unrunnable};
pub use untagger::Piece;
