//! Reads any MPI job file and runs it, on this machine or on Kubernetes.

use std::ffi::OsString;
use std::process::ExitCode;

#[cfg(feature = "kubernetes")]
#[global_allocator]
static ALLOCATOR: unisono_operator::Allocator = unisono_operator::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    unisono::answer_as_another(&arguments).unwrap_or_else(|| unisono::run(arguments))
}
