//! How often launchers never end after the bad end of a rank, by transport: is it the transport's fault? Open MPI 5's, or that of
//! the flavours that are named.
//!
//! Runs only when it is asked for by name, because every hang costs its patience.

use std::process::Stdio;
use std::time::{Duration, Instant};

use unisono_testbed::cluster::Cluster;
use unisono_testbed::mpi::{self, Flavour, Installation};
use unisono_testbed::program::{Program, compile};

use crate::arm::Arm;
use crate::report::table;

/// Three hosts with two ranks each, as the tests have them.
const HOSTS: usize = 3;
const SLOTS: usize = 2;

/// Many times what a run takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs of each kind on each transport, unless another number is asked for.
const RUNS: usize = 30;

/// The bad ends: a name, and the program with its arguments.
const ENDS: [(&str, Program, &[&str]); 4] = [
    ("segmentation fault", Program::Segfault, &["5"]),
    ("`MPI_Abort`", Program::Abort, &["3", "42"]),
    ("exit code 3", Program::ExitCode, &["4", "3"]),
    ("the same before `MPI_Finalize`", Program::ExitCode, &["4", "3", "before-finalize"]),
];

pub(crate) fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let runs = arguments.iter().find_map(|it| it.parse().ok()).unwrap_or(RUNS);
    let is_named = |flavour: &Flavour| arguments.iter().any(|it| it == flavour.name());
    let mut flavours: Vec<Flavour> = Flavour::ALL.into_iter().filter(is_named).collect();
    if flavours.is_empty() {
        flavours.push(Flavour::OpenMpi5);
    }
    flavours.into_iter().try_for_each(|flavour| measure_one(flavour, runs))
}

fn measure_one(flavour: Flavour, runs: usize) -> anyhow::Result<()> {
    let mpi = mpi::find(flavour)?;
    let mut hangs = [Arm::Floor, Arm::Agent, Arm::SshCurve25519].map(|arm| (arm, [0; ENDS.len()]));
    for _ in 0..runs {
        for (arm, hangs) in &mut hangs {
            // A fresh cluster: what a hang leaves behind must not meet the next run.
            let cluster = arm.joined(HOSTS, SLOTS)?;
            for (count, (_, program, arguments)) in hangs.iter_mut().zip(ENDS) {
                *count += usize::from(!ends(&cluster, &mpi, program, arguments)?);
            }
        }
    }
    let rows: Vec<Vec<String>> = hangs
        .iter()
        .map(|(arm, hangs)| {
            let counts = hangs.iter().map(|count| format!("{count} of {runs}"));
            std::iter::once(arm.name().to_owned()).chain(counts).collect()
        })
        .collect();
    let heads: Vec<&str> =
        std::iter::once("transport").chain(ENDS.iter().map(|end| end.0)).collect();
    table(&format!("Launchers of {} that never ended", flavour.name()), &heads, &rows);
    Ok(())
}

/// Whether the launcher ends by itself.
fn ends(
    cluster: &Cluster,
    mpi: &Installation,
    program: Program,
    arguments: &[&str],
) -> anyhow::Result<bool> {
    let mut command = cluster.mpirun(mpi);
    command.args(["-np", &(HOSTS * SLOTS).to_string()]).arg(compile(program, mpi)?).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let end = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}
