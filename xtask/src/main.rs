//! What the Makefile calls: set-up, tidy checks, code generation.

mod agent;
mod cluster;
mod generate;
mod setup;

use clap::Parser;

#[derive(Parser)]
enum Task {
    /// Builds the static agent and prints its path.
    Agent,
    /// Writes the schema and the field reference from the tables that check job files.
    Generate,
    /// Installs what a Make target needs and the machine lacks, and says what.
    Setup(setup::Args),
    /// Starts, uses and ends a real Kubernetes on this machine.
    #[command(disable_help_flag = true)]
    Cluster(cluster::Args),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Agent => agent::run(),
        Task::Generate => generate::run(),
        Task::Setup(args) => setup::run(&args),
        Task::Cluster(args) => cluster::run(&args),
    }
}
