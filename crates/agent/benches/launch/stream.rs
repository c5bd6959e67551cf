//! 1 GB of standard output through one connection: wall, and processor time on both hosts.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::arm::{Arm, REPEATS};
use crate::report::{median, seconds, table};

const BYTES: &str = "1000000000";

pub(crate) fn measure() -> anyhow::Result<()> {
    let mut figures = Arm::ALL.map(|_| (vec![], vec![]));
    for _ in 0..REPEATS {
        for (arm, (walls, cpus)) in Arm::ALL.into_iter().zip(&mut figures) {
            let (wall, cpu) = one(arm)?;
            walls.push(wall);
            cpus.push(cpu);
        }
    }
    let rows: Vec<Vec<String>> = Arm::ALL
        .into_iter()
        .zip(&figures)
        .map(|(arm, (walls, cpus))| {
            vec![arm.name().to_owned(), seconds(median(walls)), seconds(median(cpus))]
        })
        .collect();
    table("1 GB of standard output", &["transport", "wall", "CPU, both hosts"], &rows);
    Ok(())
}

fn one(arm: Arm) -> anyhow::Result<(Duration, Duration)> {
    let idle = arm.cluster(1)?.end_when_quiet();
    let cluster = arm.cluster(1)?;
    let mut command = cluster.command(&cluster.rsh_agent());
    command
        .args(["worker-0", "head", "-c", BYTES, "/dev/zero"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let start = Instant::now();
    let (output, cpu) = cluster.measured(&mut command)?;
    let wall = start.elapsed();
    ensure!(output.status.success(), "{}: {}", arm.name(), output.status);
    Ok((wall, cpu + cluster.end_when_quiet().saturating_sub(idle)))
}
