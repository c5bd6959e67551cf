//! A real Kubernetes on one machine, for tests and benchmarks.
//!
//! Enters: how many nodes and which images. Leaves: a [`Cluster`] that answers, with real kubelets
//! that run real containers, and that leaves nothing behind. `docs/cluster.md` says how it is built.
//!
//! A fault here is read by a person and never matched on: hence `anyhow`, as in tests.

pub mod audit;
pub mod cache;
pub mod prerequisites;
pub mod usage;
pub mod wait;

mod ahead;
mod api;
mod binaries;
mod certificates;
mod cgroups;
mod cluster;
mod control_plane;
mod extras;
mod images;
mod namespaces;
mod network;
mod node;
mod part;
mod progress;
mod suite;

pub use api::Api;
pub use cluster::{Cluster, Options, cgroups_on_machine};
pub use extras::{FAKE_NODE_TAINT, PodGroups, SCHEDULER as COSCHEDULER, fake_node_name};
pub use images::{Image, UNISONO, operator_archive, unisono_archive};
pub use node::Node;
pub use suite::Suite;
