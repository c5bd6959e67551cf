//! Reads any MPI job file and runs it, on this machine or on Kubernetes.

use std::process::ExitCode;

fn main() -> ExitCode {
    unisono::run(std::env::args_os())
}
