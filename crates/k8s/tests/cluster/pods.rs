//! Pods that are hard to start in: restricted, without a shell, with an entry point of their own, on their node's network.

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_plan::Verdict;
use unisono_testcluster::{Cluster, Image};

use crate::story::{Story, tell};
use crate::versions::{LINE, job, ranks_are_placed, succeeds};

fn pod<'job>(job: &'job mut Value, role: &str) -> &'job mut Value {
    &mut job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
}

pub(crate) fn restricted(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "strict", async |story: &Story<'_>| {
        let enforce =
            json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        story.cluster.api().merge("/api/v1/namespaces/strict", &enforce)?;
        let mut job = job("careful", LINE);
        for role in ["Launcher", "Worker"] {
            let pod = pod(&mut job, role);
            // A user that no passwd knows, and nothing to write to but a folder in memory.
            pod["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]);
            let container = &mut pod["containers"][0];
            container["volumeMounts"] = json!([{"name": "tmp", "mountPath": "/tmp"}]);
            container["resources"] = json!({"limits": {"cpu": "500m", "memory": "256Mi"}});
            container["securityContext"] = json!({
                "runAsNonRoot": true,
                "runAsUser": 4711,
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            });
        }
        story.submit(&job)?;
        story.drive("careful", |status| status.running_since.is_some()).await?;
        for pod in story.pods()? {
            ensure!(pod["status"]["qosClass"] == "Guaranteed", "{pod}");
            let token = pod.to_string().contains("serviceAccountToken");
            ensure!(!token, "the pod has a token: {pod}");
        }
        succeeds(story, "careful", "job/careful-launcher").await
    })
}

pub(crate) fn without_a_shell(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "bare", async |story: &Story<'_>| {
        let mut job = job("bare", "");
        job["spec"]["mpiImplementation"] = json!("MPICH");
        for role in ["Launcher", "Worker"] {
            pod(&mut job, role)["containers"][0]["image"] = json!(Image::Bare.reference());
        }
        let line = ["/opt/mpich/bin/mpiexec.hydra", "-n", "4", "/programs/mpich/hello"];
        pod(&mut job, "Launcher")["containers"][0]["command"] = json!(line);
        story.submit(&job)?;
        let status = story.finish("bare").await?;
        let said = story.kubectl(&["logs", "job/bare-launcher"])?;
        ensure!(
            status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
            "{status:?} {said}"
        );
        ranks_are_placed(&said, "bare")
    })
}

pub(crate) fn kept_entry(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "entry", async |story: &Story<'_>| {
        let mut job = job("entry", "");
        let container = &mut pod(&mut job, "Launcher")["containers"][0];
        container["command"] = Value::Null;
        container["args"] = json!(["sh", "-c", LINE]);
        story.submit(&job)?;
        succeeds(story, "entry", "job/entry-launcher").await
    })
}

pub(crate) fn host_network(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "fabric", async |story: &Story<'_>| {
        let mut job = job("fabric", "mpirun -n 4 /programs/openmpi4/hello");
        let worker = pod(&mut job, "Worker");
        worker["hostNetwork"] = json!(true);
        worker["nodeSelector"] = json!({"kubernetes.io/hostname": "node-1"});
        story.submit(&job)?;
        let status = story.finish("fabric").await?;
        let said = story.kubectl(&["logs", "job/fabric-launcher"])?;
        ensure!(
            status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
            "{status:?} {said}"
        );
        for rank in 0..4 {
            ensure!(said.contains(&format!("rank {rank} of 4 on node-1")), "{said}");
        }
        Ok(())
    })
}

pub(crate) fn alone(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "alone", async |story: &Story<'_>| {
        let mut job = job("alone", "mpirun --oversubscribe /programs/openmpi4/hello");
        job["spec"]["runLauncherAsWorker"] = json!(true);
        job["spec"]["slotsPerWorker"] = json!(4);
        if let Some(roles) = job["spec"]["mpiReplicaSpecs"].as_object_mut() {
            roles.remove("Worker");
        }
        story.submit(&job)?;
        let status = story.finish("alone").await?;
        let said = story.kubectl(&["logs", "job/alone-launcher"])?;
        ensure!(
            status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
            "{status:?} {said}"
        );
        ensure!(said.contains("rank 3 of 4 on alone-launcher"), "{said}");
        Ok(())
    })
}

pub(crate) fn unschedulable(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "nowhere", async |story: &Story<'_>| {
        let mut job = job("huge", LINE);
        pod(&mut job, "Worker")["nodeSelector"] = json!({"disk": "quantum"});
        story.submit(&job)?;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            story.tick("huge").await?;
            let object = story.object("huge").await?.as_json().clone();
            let why = object["status"]["unisono"]["why"].to_string();
            if why.contains("it cannot be scheduled: 0/2 nodes are available") {
                return Ok(());
            }
            ensure!(std::time::Instant::now() < deadline, "it says {why}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
}
