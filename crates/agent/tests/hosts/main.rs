//! Launches on real hosts of this machine, with everything that can go wrong: attacks, faults of the network, of launchers and of hosts,
//! and roots that hold nothing but the program.

mod attack_callers;
mod attack_connections;
mod fault_launches;
mod fault_network;
mod static_program;
mod support;
