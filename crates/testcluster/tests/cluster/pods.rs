//! Pods run, talk, are looked into, and are refused.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

/// A pod of the busybox image that runs a shell line on one node.
pub(crate) fn pod(name: &str, node: &str, script: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": Image::Busybox.reference(),
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", script],
            }],
        },
    })
}

/// Creates a pod in the default namespace.
pub(crate) fn create(cluster: &Cluster, pod: &Value) -> anyhow::Result<()> {
    cluster.api().create("/api/v1/namespaces/default/pods", pod)?;
    Ok(())
}

/// Waits until a pod of the default namespace is in this phase.
pub(crate) fn wait_for(cluster: &Cluster, name: &str, phase: &str) -> anyhow::Result<Value> {
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    let what = format!("pod {name} to be {phase}");
    wait::until(Duration::from_secs(60), &what, || {
        let pod = cluster.api().get(&path)?;
        Ok((pod["status"]["phase"] == phase).then_some(pod))
    })
}

/// Deletes a pod of the default namespace at once.
pub(crate) fn delete(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0");
    cluster.api().delete(&path)?;
    Ok(())
}

pub(crate) fn run_on_each_node(cluster: &Cluster) -> anyhow::Result<()> {
    for node in cluster.nodes() {
        let name = format!("on-{}", node.name());
        create(cluster, &pod(&name, node.name(), "hostname"))?;
    }
    for node in cluster.nodes() {
        let name = format!("on-{}", node.name());
        wait_for(cluster, &name, "Succeeded")?;
        ensure!(cluster.kubectl(&["logs", &name])?.trim() == name);
        delete(cluster, &name)?;
    }
    Ok(())
}

pub(crate) fn reach_each_other(cluster: &Cluster) -> anyhow::Result<()> {
    let serve =
        "mkdir /srv; echo from $(hostname) > /srv/index.html; exec httpd -f -p 8080 -h /srv";
    create(cluster, &pod("server", "node-1", serve))?;
    let server = wait_for(cluster, "server", "Running")?;
    let address = server["status"]["podIP"].as_str().context("no address")?;

    let ask = format!("until wget -q -O- http://{address}:8080/; do sleep 0.1; done");
    create(cluster, &pod("client", "node-2", &ask))?;
    wait_for(cluster, "client", "Succeeded")?;
    ensure!(cluster.kubectl(&["logs", "client"])?.contains("from server"));

    // A test's own process reaches pods, too.
    let mut wget = cluster.command("busybox")?;
    let output = wget.args(["wget", "-q", "-O-", &format!("http://{address}:8080/")]).output()?;
    ensure!(output.stdout == b"from server\n", "{output:?}");
    delete(cluster, "server")?;
    delete(cluster, "client")
}

pub(crate) fn logs_and_exec(cluster: &Cluster) -> anyhow::Result<()> {
    create(cluster, &pod("talker", "node-2", "echo hello; sleep 600"))?;
    wait_for(cluster, "talker", "Running")?;
    ensure!(cluster.kubectl(&["logs", "talker"])? == "hello\n");
    let said = cluster.kubectl(&["exec", "talker", "--", "hostname"])?;
    ensure!(said == "talker\n", "exec said {said:?}");
    let failed = cluster.try_kubectl(&["exec", "talker", "--", "sh", "-c", "exit 7"])?;
    ensure!(failed.status.code() == Some(7), "{failed:?}");
    delete(cluster, "talker")
}

pub(crate) fn restricted(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.api().create(
        "/api/v1/namespaces",
        &json!({ "metadata": {
            "name": "restricted",
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
        }}),
    )?;
    wait::until(Duration::from_secs(30), "a service account", || {
        cluster.api().find("/api/v1/namespaces/restricted/serviceaccounts/default")
    })?;
    let pods = "/api/v1/namespaces/restricted/pods";
    let mut pod = pod("careful", "node-1", "id -u");
    let refusal = cluster.api().create(pods, &pod).err();
    let refusal = refusal.context("a pod that may run as root was let in")?.to_string();
    ensure!(refusal.contains("violates PodSecurity \"restricted"), "{refusal}");

    pod["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true,
        "runAsUser": 1000,
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    cluster.api().create(pods, &pod)?;
    wait::until(Duration::from_secs(60), "a restricted pod", || {
        let pod = cluster.api().get(&format!("{pods}/careful"))?;
        Ok((pod["status"]["phase"] == "Succeeded").then_some(()))
    })?;
    let said = cluster.kubectl(&["logs", "--namespace=restricted", "careful"])?;
    ensure!(said == "1000\n", "it ran as {said:?}");
    cluster.api().delete("/api/v1/namespaces/restricted")?;
    Ok(())
}

pub(crate) fn api_service(cluster: &Cluster) -> anyhow::Result<()> {
    // What a client in a pod reads: the service's address, and the token of the pod's account.
    let ask = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null \
               && test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo reached";
    create(cluster, &pod("in-cluster", "node-3", ask))?;
    wait_for(cluster, "in-cluster", "Succeeded")?;
    ensure!(cluster.kubectl(&["logs", "in-cluster"])? == "reached\n");
    delete(cluster, "in-cluster")
}

pub(crate) fn entered(cluster: &Cluster) -> anyhow::Result<()> {
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(cluster.kubeconfig())?)?;
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().context("no server")?;
    let address = format!("{}:443", server.trim_start_matches("https://"));
    let links = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        text.lines().any(|line| line.trim_start().starts_with("node-1:"))
    };
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            cluster.enter()?;
            // A thread or a runtime that is started now is inside, too.
            let child = scope.spawn(links);
            ensure!(child.join().is_ok_and(|inside| inside), "a child stayed outside");
            std::net::TcpStream::connect(address).context("connect to the API server")
        });
        entered.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?
    })?;
    ensure!(!links(), "the thread that did not enter is inside");
    Ok(())
}
