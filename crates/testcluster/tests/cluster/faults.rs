//! Nodes are lost and come back; a part that cannot start says why.

use std::time::Duration;

use anyhow::{Context, ensure};
use unisono_testcluster::{Cluster, Node, Options, wait};

use crate::pods;

pub(crate) fn lost_nodes(cluster: &Cluster) -> anyhow::Result<()> {
    let [stopped, frozen, cut_off] = cluster.nodes() else {
        anyhow::bail!("this test wants three nodes");
    };
    stopped.stop()?;
    frozen.freeze()?;
    cut_off.cut_off()?;
    for node in cluster.nodes() {
        wait_for(cluster, node, false)?;
    }
    cluster.start_node(stopped)?;
    frozen.thaw()?;
    cut_off.reconnect()?;
    for node in cluster.nodes() {
        wait_for(cluster, node, true)?;
    }
    pods::run_on_each_node(cluster)
}

fn wait_for(cluster: &Cluster, node: &Node, ready: bool) -> anyhow::Result<()> {
    let what = format!("ready of {} to be {ready}", node.name());
    wait::until(Duration::from_secs(60), &what, || {
        Ok((cluster.is_ready(node.name())? == ready).then_some(()))
    })
}

pub(crate) fn last_lines() -> anyhow::Result<()> {
    let fault = Cluster::start(&Options {
        nodes: 1,
        api_server_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    });
    let fault = format!("{:?}", fault.err().context("it started")?);
    ensure!(fault.contains("kube-apiserver ended (exit status: 1)"), "{fault}");
    ensure!(fault.contains("unknown flag: --no-such-flag"), "{fault}");
    Ok(())
}
