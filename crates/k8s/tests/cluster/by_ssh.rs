//! A worker that keeps its image's entry point is reached by that image's sshd, as MPI operators did it.

use anyhow::ensure;
use serde_json::json;
use unisono_plan::Verdict;
use unisono_testcluster::{Cluster, Image};

use crate::story::{Story, tell};
use crate::versions::{job, ranks_are_placed};

pub(crate) fn as_before(cluster: &Cluster) -> anyhow::Result<()> {
    // Here names must resolve; all other stories do without a name server.
    cluster.start_coredns()?;
    tell(cluster, "by-ssh", async |story: &Story<'_>| {
        // The names are there a moment after the pods are, and a name server remembers for a while that they were not.
        let line = "until getent hosts older-worker-0.older.by-ssh.svc older-worker-1.older.by-ssh.svc; do sleep 0.2; done; \
                    mpirun /programs/openmpi4/hello";
        let mut job = job("older", line);
        job["spec"]["sshAuthMountPath"] = json!("/home/mpiuser/.ssh");
        for role in ["Launcher", "Worker"] {
            let pod = &mut job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"];
            pod["containers"][0]["image"] = json!(Image::Sample.reference());
        }
        let worker = &mut job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
        worker["containers"][0]["args"] =
            json!(["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]);
        worker["containers"][0]["securityContext"] =
            json!({"capabilities": {"add": ["SYS_CHROOT"]}});
        story.submit(&job)?;
        let status = story.finish("older").await?;
        let said = story.kubectl(&["logs", "job/older-launcher"])?;
        ensure!(
            status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
            "{status:?} {said}"
        );
        ranks_are_placed(&said, "older")
    })
}
