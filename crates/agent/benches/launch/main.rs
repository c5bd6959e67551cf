//! What reaching other hosts costs: this agent, OpenSSH and the floor (a plain-text agent of a page of C), side by side.
//!
//! Needs root, Open MPI and OpenSSH (`cargo xtask setup bench`). Prints Markdown tables; the arms take turns in every
//! repeat, so that a busy moment of the machine meets all of them. `cargo bench --bench launch -- memory` runs one
//! part, `… -- launch 8 64` one part with other numbers of hosts, and `no-ssh` leaves the
//! slow arms out. `… -- hangs 30` and `… -- losses 20` answer questions of docs/mpi.md and are not
//! run otherwise.

mod arm;
mod cold;
mod hangs;
mod launch;
mod losses;
mod memory;
mod report;
mod stream;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let Some(command) = cold::timed_command(&arguments) {
        return cold::time(command);
    }
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|it| it == part);
    if wanted("cold") {
        cold::measure()?;
    }
    if wanted("memory") {
        memory::measure()?;
    }
    if wanted("stream") {
        stream::measure()?;
    }
    if wanted("launch") {
        launch::measure(&arguments)?;
    }
    if arguments.iter().any(|it| it == "hangs") {
        hangs::measure(&arguments)?;
    }
    if arguments.iter().any(|it| it == "losses") {
        losses::measure(&arguments)?;
    }
    Ok(())
}
