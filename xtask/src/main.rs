//! What the Makefile calls: set-up, tidy checks, code generation.

mod setup;

use clap::Parser;

#[derive(Parser)]
enum Task {
    /// Installs what a Make target needs and the machine lacks, and says what.
    Setup(setup::Args),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Setup(args) => setup::run(&args),
    }
}
