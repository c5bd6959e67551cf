//! What the API server makes of the definitions and policies: a real one, with objects of every version.

use crate::support::{fixtures, install, job, jobs_path, kubectl_file, labelled, prepare, put};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::Cluster;

const VERSIONS: [&str; 4] = ["v1alpha1", "v1alpha2", "v1", "v2beta1"];

pub(crate) fn stored_as_written(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    for version in VERSIONS {
        let mut object = job(version, &format!("as-written-{version}"));
        object["spec"]["unheardOf"] = json!({"a": [1, {"b": null}]});
        let stored = cluster.api().create(&jobs_path(version), &object)?;
        ensure!(stored["spec"] == object["spec"], "{version}: {}", stored["spec"]);
        for served in VERSIONS {
            let name = stored["metadata"]["name"].as_str().context("no name")?;
            let seen = cluster.api().get(&format!("{}/{name}", jobs_path(served)))?;
            ensure!(seen["spec"] == stored["spec"], "{version} as {served}: {}", seen["spec"]);
        }
    }
    Ok(())
}

pub(crate) fn good_files(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    for namespace in ["lab", "physics"] {
        cluster.kubectl(&["create", "namespace", namespace])?;
    }
    let mut taken = 0;
    for (path, bytes) in fixtures()? {
        for reading in unisono_dialect::read(&bytes, &unisono_dialect::Options::default()) {
            if reading.has_faults() || reading.dialect.is_none() {
                continue;
            }
            let output = kubectl_file(cluster, &["create", "--dry-run=server"], &path)?;
            let told = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{}: {told}", path.display());
            taken += 1;
        }
    }
    ensure!(taken >= 10, "only {taken} files were good");
    Ok(())
}

pub(crate) fn refused(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let roles = "/spec/mpiReplicaSpecs";
    let cases = [
        (
            "v1alpha1",
            "/spec/replicas",
            Value::Null,
            "exactly one of gpus, processingUnits and replicas",
        ),
        ("v1alpha1", "/spec/gpus", json!(8), "exactly one of gpus, processingUnits and replicas"),
        ("v1alpha1", "/spec/template/spec/containers", json!([]), "at least one container"),
        ("v1alpha2", &format!("{roles}/Worker/replicas"), json!(0), "greater than or equal to 1"),
        ("v1alpha2", &format!("{roles}/Launcher/replicas"), json!(2), "less than or equal to 1"),
        ("v1alpha2", "/spec/slotsPerWorker", json!(0), "greater than or equal to 1"),
        ("v1", &format!("{roles}/Launcher"), Value::Null, "needs Launcher"),
        ("v1", &format!("{roles}/worker"), json!({}), "exactly the keys Launcher and Worker"),
        (
            "v2beta1",
            &format!("{roles}/Worker/template/spec/containers"),
            json!([]),
            "at least one container",
        ),
        ("v2beta1", &format!("{roles}/Worker/replicas"), json!(0), "greater than or equal to 1"),
        (
            "v2beta1",
            &format!("{roles}/Launcher/restartPolicy"),
            json!("Always"),
            "supported values",
        ),
        ("v2beta1", "/metadata/name", json!("x".repeat(60)), "leaves room for -worker-N"),
        ("v2beta1", "/metadata/name", json!("1st"), "begins with a letter"),
        ("v2beta1", "/spec/slotsPerWorker", json!("2"), "must be of type integer"),
    ];
    for (version, pointer, value, reason) in cases {
        let mut object = job(version, "refused");
        put(&mut object, pointer, value.clone())?;
        let fault = match cluster.api().create(&jobs_path(version), &object) {
            Ok(_) => anyhow::bail!("{version} {pointer}={value} was taken"),
            Err(fault) => fault.to_string(),
        };
        ensure!(fault.contains(reason), "{version} {pointer}={value}: {fault}");
    }
    Ok(())
}

/// The definition that v1alpha2 had checked bounds of numbers, and nothing else; that of v1 took any word for a policy.
pub(crate) fn taken_as_before(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let roles = "/spec/mpiReplicaSpecs";
    let folder = tempfile::tempdir()?;
    let (old, v1) = ("v1alpha2", "v1");
    let cases = [
        (old, format!("{roles}/Worker"), Value::Null, "needs Worker"),
        (old, format!("{roles}/Worker/replicas"), Value::Null, "needs replicas, at least 1"),
        (old, format!("{roles}/Launcher"), Value::Null, "needs Launcher"),
        (old, format!("{roles}/Launcher/restartPolicy"), json!("never"), ""),
        (old, format!("{roles}/Worker/restartPolicy"), json!("maybe"), ""),
        (old, "/spec/cleanPodPolicy".to_owned(), json!("running"), ""),
        (old, "/spec/runPolicy".to_owned(), json!({"cleanPodPolicy": "never"}), ""),
        (old, "/spec/mpiDistribution".to_owned(), json!("Intel"), ""),
        (v1, "/spec/cleanPodPolicy".to_owned(), json!("running"), ""),
        (v1, "/spec/runPolicy".to_owned(), json!({"cleanPodPolicy": "never"}), ""),
    ];
    for (index, (version, pointer, value, warning)) in cases.into_iter().enumerate() {
        let mut object = job(version, &format!("as-before-{index}"));
        put(&mut object, &pointer, value.clone())?;
        let path = folder.path().join("job.json");
        std::fs::write(&path, object.to_string())?;
        let output = kubectl_file(cluster, &["create"], &path)?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{pointer}={value}: {told}");
        ensure!(told.contains(warning), "{pointer}={value}: {told}");
        ensure!(told.is_empty() == warning.is_empty(), "{pointer}={value}: {told}");
    }
    Ok(())
}

pub(crate) fn misspelt(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let mut object = job("v1alpha2", "misspelt");
    let container = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0";
    put(&mut object, &format!("{container}/resources"), json!({"request": {"cpu": 1}}))?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("job.json");
    std::fs::write(&path, object.to_string())?;
    let output = kubectl_file(cluster, &["apply"], &path)?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    let place = "Worker.template.spec.containers[].resources has a key that nobody reads; it takes limits, requests, claims";
    ensure!(told.contains(place), "{told}");
    ensure!(told.lines().count() == 1, "more than one warning: {told}");
    let stored = cluster.api().get(&format!("{}/misspelt", jobs_path("v1")))?;
    ensure!(stored.pointer(&format!("{container}/resources/request/cpu")) == Some(&json!(1)));
    Ok(())
}

/// `kubectl label`, `kubectl edit` and queues use a version of their own choice.
pub(crate) fn edited_elsewhere(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    for version in VERSIONS {
        let name = format!("edited-{version}");
        cluster.api().create(&jobs_path(version), &job(version, &name))?;
        for other in VERSIONS {
            let path = format!("{}/{name}", jobs_path(other));
            let fields =
                json!({"metadata": {"labels": {"through": other}}, "spec": {"note": other}});
            let edited = cluster.api().merge(&path, &fields);
            edited.with_context(|| format!("a {version} job through {other}"))?;
        }
    }
    let mut object = job("v2beta1", "managed");
    object["spec"]["runPolicy"] = json!({"managedBy": "kueue.x-k8s.io/multikueue"});
    cluster.api().create(&jobs_path("v2beta1"), &object)?;
    let fields = json!({"spec": {"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}});
    let path = format!("{}/managed", jobs_path("v2beta1"));
    let fault = cluster.api().merge(&path, &fields).err().context("the manager was changed")?;
    ensure!(fault.to_string().contains("managedBy cannot change"), "{fault}");
    Ok(())
}

pub(crate) fn scaled(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    for version in VERSIONS {
        let name = format!("scaled-{version}");
        cluster.api().create(&jobs_path(version), &job(version, &name))?;
        let resource = format!("mpijobs.{version}.kubeflow.org/{name}");
        cluster.kubectl(&["scale", &resource, "--replicas=5"])?;
        let scaled = cluster.api().get(&format!("{}/{name}", jobs_path(version)))?;
        let at = if version == "v1alpha1" {
            "/spec/replicas"
        } else {
            "/spec/mpiReplicaSpecs/Worker/replicas"
        };
        ensure!(scaled.pointer(at) == Some(&json!(5)), "{version}: {scaled}");
    }
    let mut by_gpus = job("v1alpha1", "scaled-gpus");
    put(&mut by_gpus, "/spec/replicas", Value::Null)?;
    put(&mut by_gpus, "/spec/gpus", json!(8))?;
    cluster.api().create(&jobs_path("v1alpha1"), &by_gpus)?;
    let mut alone = job("v1", "scaled-alone");
    put(&mut alone, "/spec/mpiReplicaSpecs/Worker", Value::Null)?;
    cluster.api().create(&jobs_path("v1"), &alone)?;
    // Without a version `kubectl` takes v1.
    let as_v1 = "kubectl scale mpijobs.v1alpha1.kubeflow.org/NAME --replicas=N";
    for (resource, name, advice) in [
        ("mpijob", "scaled-v1alpha1", as_v1),
        ("mpijobs.v2beta1.kubeflow.org", "scaled-v1alpha1", as_v1),
        ("mpijobs.v1alpha1.kubeflow.org", "scaled-gpus", "spec.gpus"),
        ("mpijob", "scaled-alone", "no spec.mpiReplicaSpecs.Worker to scale"),
    ] {
        let path = format!("{}/{name}", jobs_path("v2beta1"));
        let before = cluster.api().get(&path)?;
        let words = ["scale", &format!("{resource}/{name}"), "--replicas=3"];
        let output = cluster.try_kubectl(&words)?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && told.contains(advice), "{words:?}: {told}");
        ensure!(cluster.api().get(&path)?["spec"] == before["spec"], "{words:?}: {before}");
        // It may still be edited.
        cluster.api().merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))?;
    }
    Ok(())
}

pub(crate) fn explained(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let explain = |version: &str, path: &str| {
        let version = format!("--api-version=kubeflow.org/{version}");
        cluster.kubectl(&["explain", &version, path])
    };
    let slots = explain("v2beta1", "mpijob.spec.slotsPerWorker")?;
    ensure!(slots.contains("Ranks on each worker. Default: 1."), "{slots}");
    let units = explain("v1alpha1", "mj.spec.processingUnits")?;
    ensure!(units.contains("a multiple of 8"), "{units}");
    let policy = explain("v2beta1", "mpij.spec.runPolicy.cleanPodPolicy")?;
    ensure!(policy.contains("ENUM:\n    None\n    Running\n    All\n"), "{policy}");
    let status = explain("v1alpha2", "mpijob.status.conditions")?;
    ensure!(status.contains("Why, as a sentence."), "{status}");
    cluster.api().create(&jobs_path("v1"), &job("v1", "columns"))?;
    let table = cluster.kubectl(&["get", "mpijobs", "columns", "--output=wide"])?;
    let heading: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    ensure!(
        heading == ["NAME", "STATE", "WORKERS", "REASON", "STARTED", "COMPLETED", "AGE"],
        "{table}"
    );
    Ok(())
}

pub(crate) fn repeated(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let versions = |cluster: &Cluster| -> anyhow::Result<Vec<Value>> {
        let objects = labelled(cluster)?;
        Ok(objects.iter().map(|it| it["metadata"]["resourceVersion"].clone()).collect())
    };
    let before = versions(cluster)?;
    install(cluster)?;
    ensure!(before.len() > 10, "only {} objects are labelled", before.len());
    ensure!(before == versions(cluster)?, "a second installation changed something");
    Ok(())
}
