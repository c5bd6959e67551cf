//! One remote command that does nothing: from starting the rsh agent to its end, timed inside the launcher's host.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use unisono_testbed::cluster::Cluster;

use crate::arm::Arm;
use crate::report::{median, milliseconds, table};

const ROUNDS: usize = 41;

/// How this program is called inside a host to time a command there.
const TIME: &str = "--time-command";

pub(crate) fn measure() -> anyhow::Result<()> {
    let clusters =
        Arm::ALL.iter().map(|arm| arm.cluster(1)).collect::<anyhow::Result<Vec<Cluster>>>()?;
    let mut times = vec![vec![]; clusters.len()];
    for _ in 0..ROUNDS {
        for (cluster, times) in clusters.iter().zip(&mut times) {
            times.push(one(cluster)?);
        }
    }
    drop(clusters);
    let mut rows = vec![];
    for (arm, times) in Arm::ALL.into_iter().zip(&times) {
        let fastest = times.iter().copied().min().unwrap_or_default();
        let figures = [median(times), fastest, cpu_of_one(arm)?].map(milliseconds);
        rows.push([vec![arm.name().to_owned()], figures.to_vec()].concat());
    }
    table(
        "One cold remote command (`true`)",
        &["transport", "median wall", "fastest", "CPU, both hosts"],
        &rows,
    );
    Ok(())
}

/// Processor time of one of many commands, all of their processes on both hosts counted.
fn cpu_of_one(arm: Arm) -> anyhow::Result<Duration> {
    const COMMANDS: u32 = 50;
    let idle = arm.cluster(1)?.end_when_quiet();
    let cluster = arm.cluster(1)?;
    let agent = cluster.rsh_agent().display().to_string();
    let script = format!("for i in $(seq {COMMANDS}); do {agent} worker-0 true || exit 1; done");
    let mut command = cluster.command(Path::new("/bin/sh"));
    let (output, cpu) = cluster.measured(command.args(["-c", &script]).stdin(Stdio::null()))?;
    ensure!(output.status.success(), "{}: {}", arm.name(), output.status);
    Ok((cpu + cluster.end_when_quiet().saturating_sub(idle)) / COMMANDS)
}

fn one(cluster: &Cluster) -> anyhow::Result<Duration> {
    let mut command = cluster.command(&std::env::current_exe()?);
    let output = command.arg(TIME).arg(cluster.rsh_agent()).args(["worker-0", "true"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let microseconds = String::from_utf8(output.stdout)?.trim().parse();
    Ok(Duration::from_micros(microseconds.context("a number of microseconds")?))
}

/// The command to time, when this is such a call.
pub(crate) fn timed_command(arguments: &[String]) -> Option<&[String]> {
    arguments.strip_prefix(&[TIME.to_owned()])
}

#[expect(clippy::print_stdout, reason = "the time is read from there")]
pub(crate) fn time(command: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("a command to time")?;
    let start = Instant::now();
    let status = Command::new(program).args(arguments).status()?;
    let elapsed = start.elapsed();
    ensure!(status.success(), "{program} ended with {status}");
    println!("{}", elapsed.as_micros());
    Ok(())
}
