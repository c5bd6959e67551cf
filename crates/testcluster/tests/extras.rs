//! The parts that a cluster has only when asked: names, gangs, queues.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{COSCHEDULER, Cluster, Image, Options, Suite, wait};

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const QUEUES: &str = "/apis/kueue.x-k8s.io/v1beta1";

fn main() -> ExitCode {
    Suite::new(Options::default())
        .exclusive("coredns_answers_for_pods", names)
        .exclusive("a_gang_starts_together_or_not_at_all", gang)
        .exclusive("kueue_holds_a_job_until_there_is_room", queue)
        .run()
}

fn names(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.start_coredns()?;
    cluster.api().create(
        "/api/v1/namespaces/default/services",
        &json!({
            "metadata": { "name": "web" },
            "spec": { "clusterIP": "None", "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
        }),
    )?;
    let mut server = pod("server", "sleep 600");
    server["metadata"]["labels"] = json!({ "app": "web" });
    server["spec"]["hostname"] = json!("server");
    server["spec"]["subdomain"] = json!("web");
    cluster.api().create(PODS, &server)?;
    let server = phase(cluster, "server", "Running")?;
    let address = server["status"]["podIP"].as_str().context("no address")?;

    let name = "server.web.default.svc.cluster.local";
    let ask = format!("until nslookup {name} | grep -F {address}; do sleep 0.5; done");
    cluster.api().create(PODS, &pod("asker", &ask))?;
    phase(cluster, "asker", "Succeeded")?;
    ensure!(cluster.kubectl(&["logs", "asker"])?.contains(address));
    Ok(())
}

fn gang(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.start_coscheduling()?;
    cluster.api().create(
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
        &json!({
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": { "name": "gang" },
            "spec": { "minMember": 3 },
        }),
    )?;
    let member = |number: u32| {
        let mut pod = pod(&format!("gang-{number}"), "sleep 600");
        pod["metadata"]["labels"] = json!({ "scheduling.x-k8s.io/pod-group": "gang" });
        pod["spec"]["schedulerName"] = json!(COSCHEDULER);
        pod
    };
    for number in 0..2 {
        cluster.api().create(PODS, &member(number))?;
    }
    for number in 0..2 {
        let name = format!("gang-{number}");
        wait::until(Duration::from_secs(60), "the scheduler to hold a pod", || {
            let pod = cluster.api().get(&format!("{PODS}/{name}"))?;
            ensure!(pod["spec"]["nodeName"].is_null(), "{name} went ahead");
            Ok(condition(&pod, "PodScheduled").filter(|it| it["reason"] == "Unschedulable"))
        })?;
    }
    cluster.api().create(PODS, &member(2))?;
    for number in 0..3 {
        phase(cluster, &format!("gang-{number}"), "Running")?;
    }
    Ok(())
}

fn queue(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.start_kueue()?;
    let kueue = "kueue.x-k8s.io/v1beta1";
    cluster.api().create(
        &format!("{QUEUES}/resourceflavors"),
        &json!({ "apiVersion": kueue, "kind": "ResourceFlavor", "metadata": { "name": "any" } }),
    )?;
    cluster.api().create(
        &format!("{QUEUES}/clusterqueues"),
        &json!({
            "apiVersion": kueue,
            "kind": "ClusterQueue",
            "metadata": { "name": "all" },
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{
                    "coveredResources": ["cpu"],
                    "flavors": [{
                        "name": "any",
                        "resources": [{ "name": "cpu", "nominalQuota": "100m" }],
                    }],
                }],
            },
        }),
    )?;
    cluster.api().create(
        &format!("{QUEUES}/namespaces/default/localqueues"),
        &json!({
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": { "name": "mine" },
            "spec": { "clusterQueue": "all" },
        }),
    )?;
    cluster.api().create(JOBS, &job("first"))?;
    suspended(cluster, "first", false)?;
    cluster.api().create(JOBS, &job("second"))?;
    wait::until(Duration::from_secs(60), "Kueue to hold the second job", || {
        let list = cluster.api().get(&format!("{QUEUES}/namespaces/default/workloads"))?;
        let workloads = list["items"].as_array().cloned().unwrap_or_default();
        let second =
            workloads.iter().find(|it| it["metadata"]["ownerReferences"][0]["name"] == "second");
        let reserved = second.and_then(|it| condition(it, "QuotaReserved"));
        Ok(reserved.filter(|it| it["status"] == "False"))
    })?;
    suspended(cluster, "second", true)?;
    cluster.api().delete(&format!("{JOBS}/first?propagationPolicy=Background"))?;
    suspended(cluster, "second", false)
}

fn suspended(cluster: &Cluster, job: &str, expected: bool) -> anyhow::Result<()> {
    let what = format!("suspend of {job} to be {expected}");
    wait::until(Duration::from_secs(60), &what, || {
        let object = cluster.api().get(&format!("{JOBS}/{job}"))?;
        Ok((object["spec"]["suspend"] == expected).then_some(()))
    })
}

fn job(name: &str) -> Value {
    let mut pod = pod("", "sleep 600");
    pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "labels": { "kueue.x-k8s.io/queue-name": "mine" } },
        "spec": { "template": { "spec": pod["spec"] } },
    })
}

fn pod(name: &str, script: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": Image::Busybox.reference(),
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
            }],
        },
    })
}

fn phase(cluster: &Cluster, name: &str, phase: &str) -> anyhow::Result<Value> {
    wait::until(Duration::from_secs(60), &format!("pod {name} to be {phase}"), || {
        let pod = cluster.api().get(&format!("{PODS}/{name}"))?;
        Ok((pod["status"]["phase"] == phase).then_some(pod))
    })
}

fn condition(object: &Value, kind: &str) -> Option<Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == kind).cloned()
}
