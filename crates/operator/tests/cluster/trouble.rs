//! What goes wrong in a cluster: objects nobody can read, operators that end, names that are taken.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::Cluster;

use crate::operator::Start;
use crate::story::{HELLO, Story, condition, holds, job, tell, tell_alone};
use crate::support::put;

pub(crate) fn malformed(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "malformed", |story, _| {
        let mut odd = job("v2beta1", "odd", HELLO);
        put(
            &mut odd,
            "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/args",
            json!([1]),
        )?;
        put(
            &mut odd,
            "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/image",
            Value::Null,
        )?;
        story.create(&odd)?;
        let mut alone = job("v1alpha2", "alone", HELLO);
        put(&mut alone, "/spec/mpiReplicaSpecs/Worker", Value::Null)?;
        story.create(&alone)?;
        story.create(&job("v2beta1", "even", HELLO))?;
        let told = story.until("odd", "told what is wrong", |job| holds(job, "Invalid"))?;
        let message = condition(&told, "Invalid").context("no condition")?["message"].to_string();
        for part in ["Launcher.template.spec.containers[0].args[0]", "needs `image`"] {
            ensure!(message.contains(part), "no {part} in {message}");
        }
        let warned = [("Warning".to_owned(), "ValidationError".to_owned())];
        story.until("odd", "warned of", |job| story.events(job).is_ok_and(|it| it == warned))?;
        let told = story.until("alone", "told what is wrong", |job| holds(job, "Invalid"))?;
        let message = condition(&told, "Invalid").context("no condition")?["message"].to_string();
        ensure!(message.contains("needs `Worker`"), "{message}");
        story.succeeds("even")?;

        let mended = job("v2beta1", "odd", HELLO);
        let specs = &mended["spec"]["mpiReplicaSpecs"];
        let templates = json!({
            "Launcher": {"template": {"spec": specs["Launcher"]["template"]["spec"]}},
            "Worker": {"template": {"spec": specs["Worker"]["template"]["spec"]}},
        });
        story.merge("odd", &json!({"spec": {"mpiReplicaSpecs": templates}}))?;
        let ended = story.succeeds("odd")?;
        ensure!(condition(&ended, "Invalid").is_none(), "{}", ended["status"]);
        Ok(())
    })
}

pub(crate) fn recreated(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "recreated", |story, _| {
        story.create(&job("v2beta1", "twice", "sleep 600"))?;
        story.until("twice", "running", |job| holds(job, "Running"))?;
        let path = format!("{}/twice?propagationPolicy=Background", story.jobs_path("v2beta1"));
        cluster.api().delete(&path)?;
        let second = story.create(&job("v2beta1", "twice", HELLO))?;
        let ended = story.succeeds("twice")?;
        ensure!(ended["metadata"]["uid"] == second["metadata"]["uid"], "it is another one");
        Ok(())
    })
}

pub(crate) fn handed_over(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "relay", |story| {
        let start = |identity| story.operator(&Start { identity, ..Start::default() });
        let first = start(Some("first"))?;
        first.says("working")?;
        let second = start(Some("second"))?;
        second.says("standing by")?;
        ensure!(second.answer(cluster, "/readyz")? == "ready\n", "a stand-by is ready");
        story.create(&job("v2beta1", "relay", HELLO))?;
        story.until("relay", "created", |job| holds(job, "Created"))?;
        ensure!(!second.log().contains("working"), "both work");
        first.terminate()?;
        second.says("working")?;
        story.succeeds("relay")?;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/unisono-system/leases";
        let holder = || -> anyhow::Result<Value> {
            let lease = cluster.api().get(&format!("{leases}/unisono-operator-relay"))?;
            Ok(lease["spec"]["holderIdentity"].clone())
        };
        ensure!(holder()? == "second", "{}", holder()?);
        second.terminate()?;
        ensure!(holder()? == "", "it was not given back");
        Ok(())
    })
}

/// Waits until the job says that a name it needs is taken.
pub(crate) fn taken(story: &Story<'_>, name: &str) -> anyhow::Result<()> {
    story
        .until(name, "told that a name is taken", |job| {
            let told = story.events(job).unwrap_or_default();
            told.contains(&("Warning".to_owned(), "ErrResourceExists".to_owned()))
        })
        .map(|_| ())
}

/// Objects of somebody else are in the way, one for each job; they are left alone, and once they are gone the jobs run.
pub(crate) fn names_taken(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "names-taken", |story, _| {
        let container = json!({"name": "x", "image": "lab/x:1", "imagePullPolicy": "Never"});
        let pod = json!({"containers": [container], "restartPolicy": "Never"});
        let (core, batch) = ("/api/v1", "/apis/batch/v1");
        let launcher = json!({"suspend": true, "template": {"spec": pod}});
        let obstacles = [
            ("taken-pod", core, "pods", "taken-pod-worker-0", pod),
            ("taken-service", core, "services", "taken-service", json!({"clusterIP": "None"})),
            ("taken-map", core, "configmaps", "taken-map-config", Value::Null),
            ("taken-secret", core, "secrets", "taken-secret-ssh", Value::Null),
            ("taken-job", batch, "jobs", "taken-job-launcher", launcher),
        ];
        for (name, api, plural, obstacle, spec) in &obstacles {
            let mut object = json!({"metadata": {"name": obstacle}});
            if !spec.is_null() {
                object["spec"] = spec.clone();
            }
            cluster.api().create(&story.path(api, plural), &object)?;
            story.create(&job("v2beta1", name, HELLO))?;
        }
        for (name, api, plural, obstacle, _) in &obstacles {
            taken(story, name)?;
            let path = format!("{}/{obstacle}", story.path(api, plural));
            cluster
                .api()
                .delete(&format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"))?;
        }
        for (name, ..) in &obstacles {
            story.succeeds(name)?;
        }
        Ok(())
    })
}
