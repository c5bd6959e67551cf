//! How often Open MPI 5 loses output that has no line ends, by transport: is it the transport's fault?
//!
//! Runs only when it is asked for by name.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use unisono_testbed::cluster::Cluster;
use unisono_testbed::mpi::{self, Flavour, Installation};

use crate::arm::Arm;
use crate::report::table;

/// Two hosts with a rank each.
const HOSTS: usize = 2;

/// What each rank writes, without a line's end.
const BYTES: usize = 1_000_000;

/// Runs on each transport, unless another number is asked for.
const RUNS: usize = 20;

/// How long nobody reads what was written: pipes are full by then.
const SLOWLY: Duration = Duration::from_millis(300);

pub(crate) fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let runs = arguments.iter().find_map(|it| it.parse().ok()).unwrap_or(RUNS);
    let mpi = mpi::find(Flavour::OpenMpi5)?;
    let mut losses = [Arm::Floor, Arm::Agent, Arm::SshCurve25519].map(|arm| (arm, 0));
    for _ in 0..runs {
        for (arm, losses) in &mut losses {
            let cluster = arm.joined(HOSTS, 1)?;
            *losses += usize::from(loses(&cluster, &mpi)?);
        }
    }
    let rows: Vec<Vec<String>> = losses
        .iter()
        .map(|(arm, losses)| vec![arm.name().to_owned(), format!("{losses} of {runs}")])
        .collect();
    table("Runs of Open MPI 5 that lost output and ended well", &["transport", "lost"], &rows);
    Ok(())
}

/// Whether something is missing although the launcher says that all went well.
fn loses(cluster: &Cluster, mpi: &Installation) -> anyhow::Result<bool> {
    let write = format!("head -c {BYTES} /dev/zero | tr '\\0' x; sleep 0.2");
    let mut command = cluster.mpirun(mpi);
    command.args(["-np", &HOSTS.to_string(), "--map-by", "node", "sh", "-c", &write]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    std::thread::sleep(SLOWLY);
    let mut written = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_end(&mut written)?;
    }
    let status = child.wait()?;
    Ok(status.success() && written.iter().filter(|it| **it == b'x').count() < HOSTS * BYTES)
}
