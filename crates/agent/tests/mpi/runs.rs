//! Runs that succeed: sums, standard input, many hosts, names that cannot be resolved, environment.

use std::io::Write as _;
use std::process::Stdio;

use unisono_testbed::cluster::{Cluster, Launcher, Shape};
use unisono_testbed::hosts::Network;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};

use crate::run::{THREE, assert_hosts_are_quiet, cluster, mpirun, spread, start, start_command};

crate::for_every_flavour!(
    sums_are_right_over_three_hosts,
    sums_are_right_over_three_private_networks,
    hosts_can_be_listed_by_address,
    standard_input_reaches_rank_0,
    seventy_hosts_in_one_job,
    workers_need_not_resolve_the_launcher,
    ranks_inherit_the_hosts_environment,
);

fn sums_are_right_over_three_hosts(flavour: Flavour) {
    sums_are_right(flavour, THREE);
}

fn sums_are_right_over_three_private_networks(flavour: Flavour) {
    sums_are_right(flavour, Shape { network: Network::Private, ..THREE });
}

/// As on Kubernetes: the host file has no names, and nobody can resolve any.
fn hosts_can_be_listed_by_address(flavour: Flavour) {
    let cluster = cluster(Shape { network: Network::Private, ..THREE });
    cluster.list_by_address().unwrap();
    assert_sums_are_right(&cluster, flavour);
}

fn sums_are_right(flavour: Flavour, shape: Shape) {
    assert_sums_are_right(&cluster(shape), flavour);
}

fn assert_sums_are_right(cluster: &Cluster, flavour: Flavour) {
    let ended = start(cluster, flavour, 6, Program::Allreduce, &[]).end().expect_success();
    assert_eq!(ended.stdout.matches("sums right").count(), 6, "{}", ended.stdout);
    assert_eq!(ended.ranks_per_host(), spread(3, 2));
    assert_hosts_are_quiet(&cluster.hosts, std::time::Duration::from_secs(5));
}

fn standard_input_reaches_rank_0(flavour: Flavour) {
    let cluster = cluster(THREE);
    // Little, because Hydra gives up on a rank that reads more slowly than it is fed.
    let sent: String = (0..200).map(|it| format!("line {it}\n")).collect();
    let mut command = mpirun(&cluster, flavour, 6, Program::Echo, &[]);
    let mut running = start_command(&cluster, command.stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all(sent.as_bytes()).unwrap();
    stdin.write_all(b"end\n").unwrap();
    drop(stdin);
    let ended = running.end().expect_success();
    assert_eq!(ended.stdout.len(), sent.len());
    assert!(ended.stdout == sent, "the same number of bytes came back, but not the same bytes");
}

/// With a policy of its own choosing Open MPI 5 would put all of them on the first host, and exit 0.
#[test]
fn a_users_oversubscribe_does_not_gather_the_ranks_on_one_host() {
    let cluster = cluster(THREE);
    for flavour in [Flavour::OpenMpi4, Flavour::OpenMpi5] {
        let mpi = mpi::find(flavour).unwrap();
        let program = compile(Program::Hello, &mpi).unwrap();
        let mut command = cluster.mpirun(&mpi);
        command.args(["--oversubscribe", "-np", "6"]).arg(program).stdin(Stdio::null());
        let ended = start_command(&cluster, &mut command).end().expect_success();
        assert_eq!(ended.ranks_per_host(), spread(3, 2), "{flavour:?}");
    }
}

fn seventy_hosts_in_one_job(flavour: Flavour) {
    let cluster = cluster(Shape { hosts: 70, slots: 1, ..THREE });
    let ended = start(&cluster, flavour, 70, Program::Hello, &[]).end().expect_success();
    assert_eq!(ended.ranks_per_host(), spread(70, 1));
}

fn workers_need_not_resolve_the_launcher(flavour: Flavour) {
    let shape = Shape { network: Network::Private, launcher: Launcher::UnknownToWorkers, ..THREE };
    let mut cluster = cluster(shape);
    let asked = cluster.hosts[1].command("getent").args(["hosts", "launcher"]).output().unwrap();
    assert_eq!(asked.status.code(), Some(2), "the name can be resolved after all");
    cluster.set("HYDRA_IFACE", "eth0");
    cluster.set("I_MPI_HYDRA_IFACE", "eth0");
    let ended = start(&cluster, flavour, 6, Program::Hello, &[]).end().expect_success();
    assert_eq!(ended.ranks_per_host(), spread(3, 2));
}

fn ranks_inherit_the_hosts_environment(flavour: Flavour) {
    let cluster = cluster(THREE);
    let (name, mark) = cluster.watch.variable();
    let name = name.to_str().unwrap();
    let expected = format!("{name}={}", mark.display());
    let ended = start(&cluster, flavour, 6, Program::Environment, &[name]).end().expect_success();
    for rank in 0..6 {
        let host = rank / 2;
        let line = format!("{rank} worker-{host} {expected}");
        assert!(ended.stdout.lines().any(|it| it == line), "no {line:?} in {}", ended.stdout);
    }
}
