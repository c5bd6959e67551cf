//! Four real MPIs over isolated hosts, reached by the agent. Needs root and what `cargo xtask setup test` installs.

#[path = "../support/agent_transport.rs"]
mod agent_transport;
mod ends;
mod endurance;
mod proof;
mod run;
mod runs;

/// Makes one test per flavour out of each function that takes a flavour.
macro_rules! for_every_flavour {
    ($($test:ident),+ $(,)?) => {
        mod openmpi4 { $(#[test] fn $test() { super::$test(unisono_testbed::mpi::Flavour::OpenMpi4); })+ }
        mod openmpi5 { $(#[test] fn $test() { super::$test(unisono_testbed::mpi::Flavour::OpenMpi5); })+ }
        mod mpich { $(#[test] fn $test() { super::$test(unisono_testbed::mpi::Flavour::Mpich); })+ }
        mod intelmpi { $(#[test] fn $test() { super::$test(unisono_testbed::mpi::Flavour::IntelMpi); })+ }
    };
}
use for_every_flavour;
