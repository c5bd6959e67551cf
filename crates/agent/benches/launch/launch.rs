//! `mpirun -np N hostname` over N hosts: wall, processor time of all processes on all hosts, and the transport's share.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;
use unisono_testbed::mpi::{self, Flavour, Installation};

use crate::arm::{Arm, REPEATS};
use crate::report::{median, milliseconds, seconds, table};

/// Launches per cluster; a cluster's own processor time is known only when it has ended.
const RUNS: u32 = 2;

/// All figures of one arm at one number of hosts.
#[derive(Default)]
struct Figures {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

/// The numbers of hosts unless others are asked for.
const HOSTS: [usize; 4] = [1, 8, 32, 64];

pub(crate) fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let asked: Vec<usize> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    let without_ssh = arguments.iter().any(|it| it == "no-ssh");
    let arms: &[Arm] = if without_ssh { &Arm::ALL[..2] } else { &Arm::ALL };
    let mpi = mpi::find(Flavour::OpenMpi4)?;
    for hosts in if asked.is_empty() { HOSTS.to_vec() } else { asked } {
        let mut figures: Vec<Figures> = arms.iter().map(|_| Figures::default()).collect();
        for _ in 0..REPEATS {
            for (arm, figures) in arms.iter().zip(&mut figures) {
                repeat(*arm, hosts, &mpi, figures)?;
            }
        }
        table(
            &format!("`mpirun -np {hosts} --map-by node hostname` over {hosts} hosts"),
            &["transport", "wall", "wall ÷ floor", "CPU", "(CPU − floor) ÷ hosts"],
            &rows_of(hosts, arms, &figures),
        );
    }
    Ok(())
}

fn repeat(arm: Arm, hosts: usize, mpi: &Installation, figures: &mut Figures) -> anyhow::Result<()> {
    let idle = arm.cluster(hosts)?.end_when_quiet();
    let cluster = arm.cluster(hosts)?;
    let mut cpu = Duration::ZERO;
    for _ in 0..RUNS {
        let mut command = cluster.mpirun(mpi);
        command.args(["-np", &hosts.to_string(), "--map-by", "node", "hostname"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let (output, of_launcher) = cluster.measured(&mut command)?;
        figures.wall.push(start.elapsed());
        cpu += of_launcher;
        let lines = output.stdout.iter().filter(|it| **it == b'\n').count();
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && lines == hosts, "{}: {complaints}", arm.name());
    }
    cpu += cluster.end_when_quiet().saturating_sub(idle);
    figures.cpu.push(cpu / RUNS);
    Ok(())
}

/// One row per arm; the first arm is the floor.
fn rows_of(hosts: usize, arms: &[Arm], figures: &[Figures]) -> Vec<Vec<String>> {
    let floor = &figures[0];
    arms.iter()
        .zip(figures)
        .map(|(arm, Figures { wall, cpu })| {
            let ratio = median(wall).as_secs_f64() / median(&floor.wall).as_secs_f64();
            let share = median(cpu).as_secs_f64() - median(&floor.cpu).as_secs_f64();
            vec![
                arm.name().to_owned(),
                seconds(median(wall)),
                format!("{ratio:.2}"),
                seconds(median(cpu)),
                match arm {
                    Arm::Floor => "–".to_owned(),
                    _ => milliseconds_signed(share / hosts as f64),
                },
            ]
        })
        .collect()
}

/// Noise can make a cheap transport look cheaper than the floor.
fn milliseconds_signed(seconds: f64) -> String {
    let text = milliseconds(Duration::from_secs_f64(seconds.abs()));
    if seconds < 0.0 { format!("−{text}") } else { text }
}
