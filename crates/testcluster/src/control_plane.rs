//! Starts etcd, the API server, the controller manager and the scheduler, as root's processes in the
//! cluster's network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::api::Api;
use crate::certificates::{Authority, Identity};
use crate::namespaces::{CACHE, HOME, Walls};
use crate::network;
use crate::part::{self, Part};

/// The program, and the part of the cluster.
pub(crate) const API_SERVER: &str = "kube-apiserver";

/// Every request is logged once, when it was answered, by who asked for what.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{ "level": "Metadata" }]
}"#;

/// How long a silent node counts as ready. The usual 50 s would make every test of a lost node
/// wait as long; the kubelets speak every 2 s, but later where two cores have much to do.
const NODE_GRACE: &str = "12s";

/// How long the pods of a lost node are tolerated on it. The usual value is 300.
const EVICTION_SECONDS: &str = "5";

/// Where the cluster's programs are, as its own processes see them, and what they are told besides.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// The path of a folder of the cache, as the cluster's processes see it.
pub(crate) fn in_cluster(folder: &Path) -> anyhow::Result<PathBuf> {
    let root = crate::cache::cluster_root()?;
    let inner = folder.strip_prefix(root).context("use what is cached")?;
    Ok(Path::new(CACHE).join(inner))
}

/// Starts all four and returns when the API server answers.
pub(crate) fn start(
    walls: Walls,
    api: &Api,
    programs: &Programs,
    parts: &mut Vec<Part>,
) -> anyhow::Result<()> {
    let start = |name: &str, arguments: &[String]| {
        Part::start(walls, name, &programs.folder.join(name), arguments)
    };
    parts.push(start("etcd", &etcd_arguments())?);
    // The API server waits for etcd by itself; the other two would give up.
    start_api_server(walls, api, programs, parts)?;
    parts.push(start("kube-controller-manager", &controller_arguments())?);
    parts.push(start("kube-scheduler", &scheduler_arguments())?);
    Ok(())
}

/// Starts the API server and returns when it answers.
pub(crate) fn start_api_server(
    walls: Walls,
    api: &Api,
    programs: &Programs,
    parts: &mut Vec<Part>,
) -> anyhow::Result<()> {
    let mut arguments = api_server_arguments();
    arguments.extend_from_slice(&programs.api_server_flags);
    let program = programs.folder.join(API_SERVER);
    parts.push(Part::start(walls, API_SERVER, &program, &arguments)?);
    part::wait(parts, "the API server", || Ok(api.get("/readyz").is_ok().then_some(())))
}

/// Writes what the four read.
pub(crate) fn write_files(
    walls: Walls,
    authority: &Authority,
    admin: &Identity,
) -> anyhow::Result<()> {
    let write = |name: &str, text: &str| {
        fs::write(walls.path(Path::new(HOME).join(name)), text)
            .with_context(|| format!("write {name}"))
    };
    let write_identity = |name: &str, identity: &Identity| {
        write(&format!("{name}.crt"), &identity.certificate)?;
        write(&format!("{name}.key"), &identity.key)
    };
    write_identity("ca", &authority.identity)?;
    write_identity("server", &authority.server()?)?;
    write_identity("kubelet-client", &authority.client("kube-apiserver", Some("system:masters"))?)?;
    // Only the keys of this one are used: they sign the tokens of service accounts.
    write_identity("service-accounts", &authority.client("service-accounts", None)?)?;
    write_identity("admin", admin)?;
    write("admin.kubeconfig", &authority.kubeconfig(admin))?;
    for user in ["kube-controller-manager", "kube-scheduler"] {
        let identity = authority.client(&format!("system:{user}"), None)?;
        write(&format!("{user}.kubeconfig"), &authority.kubeconfig(&identity))?;
    }
    write("audit-policy.json", AUDIT_POLICY)?;
    write("scheduler.json", &scheduler_configuration())
}

fn etcd_arguments() -> Vec<String> {
    flags(&[
        ("data-dir", "/mnt/etcd"),
        ("unsafe-no-fsync", "true"),
        ("log-level", "warn"),
        ("listen-client-urls", crate::usage::ETCD_URL),
        ("advertise-client-urls", crate::usage::ETCD_URL),
        ("listen-peer-urls", "http://127.0.0.1:2380"),
    ])
}

fn api_server_arguments() -> Vec<String> {
    flags(&[
        ("etcd-servers", crate::usage::ETCD_URL),
        // The service's own port: pods reach 10.96.0.1:443 without a proxy between.
        ("secure-port", "443"),
        ("advertise-address", network::ROUTER),
        ("service-cluster-ip-range", network::SERVICES),
        ("tls-cert-file", "/mnt/server.crt"),
        ("tls-private-key-file", "/mnt/server.key"),
        ("client-ca-file", "/mnt/ca.crt"),
        ("kubelet-client-certificate", "/mnt/kubelet-client.crt"),
        ("kubelet-client-key", "/mnt/kubelet-client.key"),
        ("kubelet-preferred-address-types", "InternalIP"),
        ("service-account-issuer", "https://kubernetes.default.svc"),
        ("service-account-key-file", "/mnt/service-accounts.crt"),
        ("service-account-signing-key-file", "/mnt/service-accounts.key"),
        ("authorization-mode", "Node,RBAC"),
        ("enable-admission-plugins", "NodeRestriction"),
        // Webhooks named by a service are called at its endpoints, again without a proxy.
        ("enable-aggregator-routing", "true"),
        ("allow-privileged", "true"),
        ("default-not-ready-toleration-seconds", EVICTION_SECONDS),
        ("default-unreachable-toleration-seconds", EVICTION_SECONDS),
        ("audit-policy-file", "/mnt/audit-policy.json"),
        ("audit-log-path", crate::audit::LOG),
        // Rotation would lose the beginning of what is counted.
        ("audit-log-maxsize", "4000"),
    ])
}

fn controller_arguments() -> Vec<String> {
    flags(&[
        ("kubeconfig", "/mnt/kube-controller-manager.kubeconfig"),
        ("leader-elect", "false"),
        ("use-service-account-credentials", "true"),
        ("service-account-private-key-file", "/mnt/service-accounts.key"),
        ("root-ca-file", "/mnt/ca.crt"),
        ("cluster-signing-cert-file", "/mnt/ca.crt"),
        ("cluster-signing-key-file", "/mnt/ca.key"),
        ("node-monitor-period", "1s"),
        ("node-monitor-grace-period", NODE_GRACE),
        // What is measured is the operator, not the controller manager's client.
        ("kube-api-qps", "1000"),
        ("kube-api-burst", "2000"),
    ])
}

fn scheduler_arguments() -> Vec<String> {
    flags(&[("config", "/mnt/scheduler.json")])
}

fn scheduler_configuration() -> String {
    serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": {
            "kubeconfig": "/mnt/kube-scheduler.kubeconfig",
            "qps": 1000,
            "burst": 2000,
        },
    })
    .to_string()
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(flag, value)| format!("--{flag}={value}")).collect()
}
