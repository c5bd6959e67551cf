//! Kueue, which suspends jobs until a queue has room for them.

use std::process::Stdio;

use anyhow::{Context, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::binaries;
use crate::cluster::Cluster;
use crate::control_plane::in_cluster;
use crate::namespaces::HOME;
use crate::network;
use crate::part::Part;

const WEBHOOK_PORT: u16 = 9443;

/// Where Kueue's certificate is, below the cluster's home.
const CERTIFICATES: &str = "kueue-certificates";

/// Kueue wants a certificate for its metrics in a place that it does not let anyone choose. It gets
/// an `/etc` of its own.
const WITH_CERTIFICATES: &str = "mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && \
    ln -s \"$1\" /etc/kueue/metrics/certs && shift && exec \"$@\"";

impl Cluster {
    /// Starts Kueue for `batch/v1` jobs and, once their kind is known, for `MPIJob`s.
    pub fn start_kueue(&self) -> anyhow::Result<()> {
        let program = binaries::SCHEDULERS.build()?.join("kueue");
        let source = binaries::SCHEDULERS.source_of("sigs.k8s.io/kueue")?;
        let components = source.join("config/components");
        self.define_kinds(&components.join("crd/bases"))?;
        self.api()
            .create("/api/v1/namespaces", &json!({ "metadata": { "name": "kueue-system" } }))?;
        let kubeconfig = self.write_kubeconfig("kueue")?;
        let configuration = self.write_file("kueue.json", &configuration())?;
        let authority = self.write_server_identity(&format!("{CERTIFICATES}/tls"))?;
        let mut command = self.walls().command("unshare");
        command
            .args(["--mount", "sh", "-c", WITH_CERTIFICATES, "kueue"])
            .arg(format!("{HOME}/{CERTIFICATES}"))
            .arg(in_cluster(&program)?)
            .arg(format!("--config={configuration}"))
            .arg(format!("--kubeconfig={kubeconfig}"))
            // It would be an API server of its own, which nobody here asks.
            .arg("--feature-gates=VisibilityOnDemand=false");
        let part = Part::spawn(self.walls(), "kueue", command, Vec::new())?;
        self.parts().push(part);
        self.wait_for_parts("Kueue", || {
            let answer = ureq::get("http://127.0.0.1:8092/readyz").call();
            Ok(answer.is_ok().then_some(()))
        })?;
        // Only now: before, everything that they watch over would be refused.
        let manifests = components.join("webhook/manifests.yaml");
        let manifests = manifests.to_str().context("a path that is text")?;
        let list = self.kubectl(&["create", "--dry-run=client", "-o=json", "-f", manifests])?;
        for document in serde_json::Deserializer::from_str(&list).into_iter::<Value>() {
            self.apply_webhooks(document.context("read Kueue's webhooks")?, &authority)?;
        }
        Ok(())
    }

    /// Points webhooks at Kueue's process instead of a service that nobody routes to.
    fn apply_webhooks(&self, mut document: Value, authority: &str) -> anyhow::Result<()> {
        let webhooks = document["webhooks"].as_array_mut();
        for webhook in webhooks.context("no webhooks in Kueue's manifest")? {
            let path = webhook["clientConfig"]["service"]["path"].as_str();
            let path = path.context("a webhook without a path")?;
            webhook["clientConfig"] = json!({
                "url": format!("https://{}:{WEBHOOK_PORT}{path}", network::ROUTER),
                "caBundle": BASE64_STANDARD.encode(authority),
            });
        }
        // Those of kinds that are switched off have no one to answer.
        if let Some(webhooks) = document["webhooks"].as_array_mut() {
            webhooks.retain(|webhook| {
                let name = webhook["name"].as_str().unwrap_or_default();
                WEBHOOKS.iter().any(|wanted| name.starts_with(wanted))
            });
        }
        let kind = document["kind"].as_str().context("a manifest without a kind")?.to_owned();
        let file = self.write_file(&format!("{kind}.json"), &document.to_string())?;
        let mut kubectl = self.command("kubectl")?;
        let status =
            kubectl.args(["apply", "-f"]).arg(self.outside(&file)).stdout(Stdio::null()).status();
        ensure!(status.context("run kubectl")?.success(), "kubectl apply of {kind} failed");
        Ok(())
    }
}

/// How the names of the webhooks begin that are wanted: jobs, MPI jobs, and Kueue's own kinds.
const WEBHOOKS: &[&str] = &[
    "mjob.",
    "vjob.",
    "mmpijob.",
    "vmpijob.",
    "mworkload.",
    "vworkload.",
    "mclusterqueue.",
    "vclusterqueue.",
    "mresourceflavor.",
    "vresourceflavor.",
    "vcohort.",
];

fn configuration() -> String {
    json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": { "healthProbeBindAddress": "127.0.0.1:8092" },
        "metrics": { "bindAddress": "0" },
        "webhook": { "port": WEBHOOK_PORT, "certDir": format!("{HOME}/{CERTIFICATES}") },
        "leaderElection": { "leaderElect": false },
        "internalCertManagement": { "enable": false },
        "clientConnection": { "qps": 1000, "burst": 2000 },
        "integrations": { "frameworks": ["batch/job", "kubeflow.org/mpijob"] },
    })
    .to_string()
}
