//! Real MPIs and isolated hosts for tests and benchmarks: what enters is a wish (a flavour, a number of hosts), what
//! leaves is something that runs, and that leaves nothing behind.

mod cache;
pub mod cluster;
pub mod horovod;
pub mod hosts;
pub mod kernel;
pub mod leaks;
pub mod mpi;
pub mod program;
pub mod transport;
pub mod wheels;
