//! The other MPIs: each finds its hosts through the agent, by the variables that every job has.

use anyhow::ensure;
use serde_json::json;
use unisono_plan::Verdict;
use unisono_testcluster::{Cluster, Image};

use crate::story::{Story, tell};
use crate::versions::{job, ranks_are_placed};

pub(crate) fn open_mpi_5(cluster: &Cluster) -> anyhow::Result<()> {
    places(cluster, "openmpi5", "OpenMPI", "mpirun")
}

pub(crate) fn mpich(cluster: &Cluster) -> anyhow::Result<()> {
    places(cluster, "mpich", "MPICH", "mpiexec.hydra")
}

pub(crate) fn intel_mpi(cluster: &Cluster) -> anyhow::Result<()> {
    places(cluster, "intelmpi", "Intel", "mpiexec.hydra")
}

fn places(cluster: &Cluster, flavour: &str, stated: &str, launcher: &str) -> anyhow::Result<()> {
    tell(cluster, flavour, async |story: &Story<'_>| {
        let line =
            format!("PATH=/opt/{flavour}/bin:$PATH; {launcher} -n 4 /programs/{flavour}/hello");
        let mut job = job("other", &line);
        job["spec"]["mpiImplementation"] = json!(stated);
        for role in ["Launcher", "Worker"] {
            let pod = &mut job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"];
            pod["containers"][0]["image"] = json!(Image::OtherMpis.reference());
        }
        story.submit(&job)?;
        let status = story.finish("other").await?;
        let said = story.kubectl(&["logs", "job/other-launcher"])?;
        ensure!(
            status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
            "{status:?} {said}"
        );
        ranks_are_placed(&said, "other")
    })
}
