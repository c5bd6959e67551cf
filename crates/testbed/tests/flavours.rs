//! Every MPI runs over isolated hosts through the floor transport: what this shows is the settings, not the agent.

use std::collections::BTreeMap;

use unisono_testbed::cluster::{Cluster, Launcher, Shape};
use unisono_testbed::hosts::Network;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};
use unisono_testbed::transport::{Floor, KeyExchange, Ssh, Transport};

fn ranks_per_host(flavour: Flavour, cluster: &Cluster, extra: &[&str]) -> BTreeMap<String, usize> {
    let mpi = mpi::find(flavour).unwrap();
    let program = compile(Program::Allreduce, &mpi).unwrap();
    let output = cluster.mpirun(&mpi).args(extra).args(["-np", "6"]).arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flavour:?} {}: {text}{complaints}", output.status);
    let mut hosts = BTreeMap::new();
    for line in text.lines().filter(|it| it.ends_with(": sums right")) {
        let host = line.split_whitespace().nth(5).unwrap().trim_end_matches(':');
        *hosts.entry(host.to_owned()).or_default() += 1;
    }
    hosts
}

fn two_on_each(hosts: usize) -> BTreeMap<String, usize> {
    (0..hosts).map(|it| (format!("worker-{it}"), 2)).collect()
}

fn start(network: Network, transport: &mut dyn Transport) -> Cluster {
    let shape = Shape { hosts: 3, slots: 2, network, launcher: Launcher::FirstHost };
    Cluster::start(shape, transport).unwrap()
}

#[test]
fn six_ranks_over_three_hosts_by_the_floor() {
    for network in [Network::Shared, Network::Private] {
        let cluster = start(network, &mut Floor::default());
        for flavour in Flavour::ALL {
            assert_eq!(ranks_per_host(flavour, &cluster, &[]), two_on_each(3), "{flavour:?}");
        }
    }
}

#[test]
fn six_ranks_over_three_hosts_by_ssh() {
    let cluster = start(Network::Shared, &mut Ssh::new(KeyExchange::Default));
    for flavour in Flavour::ALL {
        assert_eq!(ranks_per_host(flavour, &cluster, &[]), two_on_each(3), "{flavour:?}");
    }
}
