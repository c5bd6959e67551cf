//! The transports that are compared, and the clusters they are compared on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use unisono_testbed::cluster::{Cluster, Launcher, Shape};
use unisono_testbed::hosts::Network;
use unisono_testbed::transport::{Floor, KeyExchange, Ssh, Transport};

#[path = "../../tests/support/agent_transport.rs"]
mod agent_transport;

/// How often each figure is taken.
pub(crate) const REPEATS: usize = 5;

/// One transport of the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Floor,
    Agent,
    SshCurve25519,
    SshDefault,
}

impl Arm {
    /// All of them, the floor first.
    pub(crate) const ALL: [Self; 4] =
        [Self::Floor, Self::Agent, Self::SshCurve25519, Self::SshDefault];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Agent => "unisono-agent",
            Self::SshCurve25519 => "OpenSSH, curve25519",
            Self::SshDefault => "OpenSSH, default",
        }
    }

    fn transport(self) -> Box<dyn Transport> {
        match self {
            Self::Floor => Box::new(Floor::default()),
            Self::Agent => Box::new(agent_transport::Agent::new(static_agent())),
            Self::SshCurve25519 => Box::new(Ssh::new(KeyExchange::Curve25519)),
            Self::SshDefault => Box::new(Ssh::new(KeyExchange::Default)),
        }
    }

    /// A launcher and so many hosts with one slot each.
    pub(crate) fn cluster(self, hosts: usize) -> anyhow::Result<Cluster> {
        self.start(hosts, 1, Launcher::UnknownToWorkers)
    }

    /// Hosts with slots, the first of which launches.
    pub(crate) fn joined(self, hosts: usize, slots: usize) -> anyhow::Result<Cluster> {
        self.start(hosts, slots, Launcher::FirstHost)
    }

    fn start(self, hosts: usize, slots: usize, launcher: Launcher) -> anyhow::Result<Cluster> {
        let shape = Shape { hosts, slots, network: Network::Shared, launcher };
        Ok(Cluster::start(shape, &mut *self.transport())?)
    }
}

/// The agent as it goes into containers: the one that `UNISONO_BENCH_AGENT` names, or one built when it is first needed.
fn static_agent() -> &'static Path {
    static AGENT: LazyLock<PathBuf> = LazyLock::new(|| {
        if let Some(ready) = std::env::var_os("UNISONO_BENCH_AGENT") {
            return PathBuf::from(ready);
        }
        let output = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "xtask", "--", "agent"])
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo can be run");
        assert!(output.status.success(), "the static agent cannot be built");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    });
    &AGENT
}
