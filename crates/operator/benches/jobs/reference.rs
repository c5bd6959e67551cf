//! Another operator for MPIJobs, v2beta1, as a ready program that the environment names. It is told not to hold itself back.

use std::fs::File;
use std::process::{Child, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use unisono_testcluster::{Cluster, wait};

use crate::{PATIENCE, setting};

/// Who asks, as the audit log says it.
pub(crate) const USER: &str = "system:serviceaccount:default:reference";

/// The namespace of its lease.
const NAMESPACE: &str = "default";

/// The program, if there is one.
pub(crate) fn program() -> Option<String> {
    setting("REF_OPERATOR_BIN")
}

/// A running reference. It is killed when this value goes.
pub(crate) struct Reference {
    child: Child,
    folder: TempDir,
}

impl Reference {
    /// Starts it, and returns when it has its lease.
    pub(crate) fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, write_account(cluster)?)?;
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
        cluster.api().delete(&leases)?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = cluster.command(program().context("REF_OPERATOR_BIN is not set")?)?;
        // It would be preferred to the flag.
        command.env_remove("KUBECONFIG");
        command.args([
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "--controller-queue-rate-limit=1000",
            "--controller-queue-burst=1000",
            "--threadiness=16",
            "--monitoring-port=0",
        ]);
        command.arg(format!("--lock-namespace={NAMESPACE}"));
        command.arg(format!("--kubeConfig={}", kubeconfig.display()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let mut reference = Self { child, folder };
        let child = &mut reference.child;
        wait::until(PATIENCE, "the reference to have its lease", || {
            if let Some(status) = child.try_wait()? {
                bail!("the reference ended with {status}");
            }
            let list = cluster.api().get(&leases)?;
            let leases = list["items"].as_array().context("no list")?;
            Ok(leases.iter().any(|it| it["spec"]["holderIdentity"].is_string()).then_some(()))
        })
        .with_context(|| reference.log())?;
        Ok(reference)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A kubeconfig for an account that may do everything, so that its requests can be told from everybody else's.
fn write_account(cluster: &Cluster) -> anyhow::Result<String> {
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    if cluster.api().find(&format!("{accounts}/reference"))?.is_none() {
        cluster.api().create(&accounts, &json!({"metadata": {"name": "reference"}}))?;
        let subject =
            json!({"kind": "ServiceAccount", "name": "reference", "namespace": NAMESPACE});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
        let binding =
            json!({"metadata": {"name": "reference"}, "roleRef": role, "subjects": [subject]});
        cluster.api().create(bindings, &binding)?;
    }
    let token =
        cluster.api().create(&format!("{accounts}/reference/token"), &json!({"spec": {}}))?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(cluster.kubeconfig())?)?;
    config["users"][0]["user"] = json!({"token": token["status"]["token"]});
    Ok(config.to_string())
}
