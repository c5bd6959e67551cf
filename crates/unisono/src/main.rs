//! Reads any MPI job file and runs it, on this machine or on Kubernetes.

fn main() {}
