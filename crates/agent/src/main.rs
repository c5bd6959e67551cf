//! The static program that goes into containers: parse, run, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    unisono_agent::main(&arguments)
}
