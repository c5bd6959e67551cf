//! Memory as the kernel shares it out (PSS): of a serving process that nobody called yet, and of each held connection.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use unisono_testbed::cluster::Cluster;
use unisono_testbed::hosts::Host;
use unisono_testbed::leaks;

use crate::arm::Arm;
use crate::report::table;

/// Connections held at the same time, all to one host.
const HELD: usize = 32;

pub(crate) fn measure() -> anyhow::Result<()> {
    let mut rows = vec![];
    for arm in Arm::ALL {
        let cluster = arm.cluster(1)?;
        let worker = &cluster.hosts[1];
        let idle = transport_bytes(worker);
        let launcher_idle = transport_bytes(&cluster.hosts[0]);
        let held = hold(&cluster)?;
        let server = transport_bytes(worker).saturating_sub(idle) / HELD as u64;
        let client = transport_bytes(&cluster.hosts[0]).saturating_sub(launcher_idle) / HELD as u64;
        for mut child in held {
            child.kill()?;
            child.wait()?;
        }
        rows.push([idle, client, server].map(mebibytes).to_vec());
        rows.last_mut().expect("just pushed").insert(0, arm.name().to_owned());
    }
    table(
        &format!("Memory (PSS), {HELD} connections held"),
        &["transport", "idle server", "per connection, client", "per connection, server"],
        &rows,
    );
    Ok(())
}

fn hold(cluster: &Cluster) -> anyhow::Result<Vec<Child>> {
    let sleeping = || {
        let lines = leaks::command_lines_in(cluster.hosts[1].pid());
        lines.iter().filter(|it| it.as_str() == "sleep 600").count()
    };
    let mut held = vec![];
    for _ in 0..HELD {
        let mut command = cluster.command(&cluster.rsh_agent());
        command.args(["worker-0", "sleep", "600"]).stdin(Stdio::null());
        held.push(command.spawn()?);
    }
    let end = Instant::now() + Duration::from_secs(60);
    while sleeping() < HELD {
        ensure!(Instant::now() < end, "only {} of {HELD} connections stand", sleeping());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(held)
}

/// The memory of all processes in a host but the commands themselves.
fn transport_bytes(host: &Host) -> u64 {
    leaks::processes_in(host.pid())
        .filter(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            !["sh", "sleep"].contains(&name.trim())
        })
        .map(pss)
        .sum()
}

fn pss(pid: u32) -> u64 {
    let table = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kibibytes = table.lines().find_map(|it| it.strip_prefix("Pss:")?.split_whitespace().next());
    kibibytes.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20))
}
