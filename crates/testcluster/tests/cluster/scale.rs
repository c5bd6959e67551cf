//! What a benchmark needs: fake nodes, and counts of what happened.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use unisono_testcluster::{Cluster, FAKE_NODE_TAINT, wait};

pub(crate) fn counted(cluster: &Cluster) -> anyhow::Result<()> {
    let maps = "/api/v1/namespaces/default/configmaps";
    let mark = cluster.audit_mark()?;
    let revision = cluster.etcd_revision()?;
    for number in 0..3 {
        let name = format!("counted-{number}");
        cluster.api().create(maps, &json!({ "metadata": { "name": name } }))?;
    }
    cluster.api().get(&format!("{maps}/counted-0"))?;

    let requests = cluster.requests_since(mark)?.of_user("admin");
    let count = |verb: &str| {
        requests.count(|request| request.verb == verb && request.resource == "configmaps")
    };
    ensure!((count("create"), count("get"), count("delete")) == (3, 1, 0), "{requests:?}");
    let writes = cluster.etcd_revision()? - revision;
    ensure!(writes >= 3, "{writes} writes");
    for program in ["etcd", "kube-apiserver", "kubelet", "containerd"] {
        let usage = cluster.usage(program)?;
        ensure!(usage.processor > Duration::ZERO, "{program}: {usage:?}");
        ensure!(usage.peak >= usage.resident && usage.resident > 1 << 20, "{program}: {usage:?}");
    }
    Ok(())
}

pub(crate) fn fake_nodes(cluster: &Cluster) -> anyhow::Result<()> {
    const PODS: usize = 100;
    cluster.add_fake_nodes(4, 50)?;
    let spec = json!({
        "nodeSelector": { "type": "kwok" },
        "tolerations": [{ "key": FAKE_NODE_TAINT, "operator": "Exists" }],
        "restartPolicy": "Never",
        "containers": [{ "name": "main", "image": "none" }],
    });
    // Its pod comes first, and runs on until all others run, too.
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let template = json!({ "metadata": { "labels": { "app": "fake" } }, "spec": spec });
    let job = json!({ "metadata": { "name": "fake" }, "spec": { "template": template } });
    cluster.api().create(jobs, &job)?;
    for number in 1..PODS {
        let metadata = json!({ "name": format!("fake-{number}"), "labels": { "app": "fake" } });
        let pod = json!({ "metadata": metadata, "spec": spec });
        cluster.api().create("/api/v1/namespaces/default/pods", &pod)?;
    }
    let path = "/api/v1/namespaces/default/pods?labelSelector=app%3Dfake";
    wait::until(Duration::from_secs(90), "fake pods to run", || {
        let list = cluster.api().get(path)?;
        let pods = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        Ok((running == PODS).then_some(()))
    })?;
    cluster.api().delete(&format!("{jobs}/fake?propagationPolicy=Background"))?;
    cluster.api().delete(path)?;
    Ok(())
}
