//! What every measurement does around itself.

use std::process::ExitCode;

use crate::operator;

/// Takes a measurement, unless this process is to play the operator of one or the machine cannot hold a cluster.
pub(crate) fn take(measurement: fn() -> anyhow::Result<()>) -> ExitCode {
    if let Some(code) = operator::take_over() {
        return code;
    }
    let missing = unisono_testcluster::prerequisites::missing();
    if !missing.is_empty() {
        print(&format!("left out; missing: {}", missing.join(", ")));
        return ExitCode::SUCCESS;
    }
    match measurement() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            print(&format!("{fault:?}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the tables are what the measurement is for")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}
