//! What the Makefile calls: set-up, tidy checks, code generation.

mod cargo;
mod cluster;
mod demo;
mod dialects;
mod setup;
mod static_program;
mod tidy;

use clap::Parser;

#[derive(Parser)]
enum Task {
    /// Builds the static agent and prints its path.
    Agent,
    /// Builds the whole program statically, for the operator's image, and prints its path.
    Program,
    /// Plans one example of each dialect.
    Demo,
    /// Runs the same program in every dialect, on a real cluster and here, and writes the table of it into the documentation.
    Dialects,
    /// Writes the schema and the references from the code.
    Generate,
    /// Checks rules that no compiler knows.
    Tidy,
    /// Installs what a Make target needs and the machine lacks, and says what.
    Setup(setup::Args),
    /// Starts, uses and ends a real Kubernetes on this machine.
    #[command(disable_help_flag = true)]
    Cluster(cluster::Args),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Agent => static_program::run(static_program::AGENT),
        Task::Program => static_program::run(static_program::PROGRAM),
        Task::Demo => demo::run(),
        Task::Dialects => dialects::run(),
        Task::Generate => cargo::become_run::<&str>(&["--package", "unisono-generate"], []),
        Task::Tidy => tidy::run(),
        Task::Setup(args) => setup::run(&args),
        Task::Cluster(args) => cluster::run(&args),
    }
}
