//! The operator in its own image, as an installation leaves it: two pods of a Deployment, of which one works.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_operator::manifests;
use unisono_testcluster::{Cluster, OPERATOR, operator_archive, static_unisono, wait};

use crate::operator::Start;
use crate::story::{HELLO, job, tell_alone};
use crate::support::{install_objects, prepare};

/// The name of the Deployment.
const NAME: &str = "unisono-operator";

pub(crate) fn runs_jobs(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    cluster.load(&operator_archive()?)?;
    let rivals = "/apis/apps/v1/namespaces/default/deployments";
    cluster.api().create(rivals, &rival())?;
    let told = unisono(cluster, &["operator", "install", "--image", OPERATOR])
        .with_context(|| words(cluster, &["describe", "pods"]))?;
    cluster.api().delete(&format!("{rivals}/mpi-operator"))?;
    let lines: Vec<&str> = told.lines().collect();
    ensure!(told.starts_with("warning: mpi-operator in default runs MPI jobs, too"), "{told}");
    ensure!(lines.contains(&"applied Deployment unisono-operator"), "{told}");
    ensure!(told.contains("waiting for Deployment unisono-operator: "), "{told}");
    ensure!(lines.last() == Some(&"the operator is ready"), "{told}");
    let again = unisono(cluster, &["operator", "install", "--image", OPERATOR])?;
    ensure!(!again.contains("waiting for") && !again.contains("warning"), "{again}");

    tell_alone(cluster, "installed", |story| {
        story.create(&job("v2beta1", "installed", HELLO))?;
        story.succeeds("installed").map(|_| ())
    })
    .with_context(|| {
        words(cluster, &["logs", "--selector=app.kubernetes.io/name=unisono-operator"])
    })?;
    let (deployments, name) = ("/apis/apps/v1/namespaces/unisono-system/deployments", NAME);
    cluster.api().delete(&format!("{deployments}/{name}?propagationPolicy=Foreground"))?;
    wait::until(Duration::from_secs(60), "the operator to be gone", || {
        Ok(cluster.api().find(&format!("{deployments}/{name}"))?.is_none().then_some(()))
    })
}

/// What the program says, once it has ended well.
fn unisono(cluster: &Cluster, arguments: &[&str]) -> anyhow::Result<String> {
    let mut program = cluster.command(static_unisono()?)?;
    let output = program.args(arguments).stdin(std::process::Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {told}", output.status);
    Ok(told)
}

/// A Deployment as the other operator has it. Its pods cannot start here, and need not.
fn rival() -> Value {
    let labels = json!({"app": "mpi-operator"});
    json!({
        "metadata": {"name": "mpi-operator"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [
                    {"name": "main", "image": "unisono.test/none:1", "imagePullPolicy": "Never"},
                ]},
            },
        },
    })
}

/// With rights in one namespace only it runs the jobs there, and no others.
pub(crate) fn one_namespace(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "tenant", |story| {
        let home = "unisono-tenant";
        let options = manifests::Options {
            namespace: home.to_owned(),
            only_namespace: Some(story.namespace.to_owned()),
            ..manifests::Options::default()
        };
        let mut objects = manifests::objects(&options);
        objects.retain(|it| it["kind"] != "Deployment");
        install_objects(cluster, &objects)?;
        tell_alone(cluster, "neighbour", |neighbour| {
            neighbour.create(&job("v2beta1", "elsewhere", HELLO))?;
            let start = Start { home, identity: Some("tenants"), ..Start::default() };
            let operator = story.operator(&start)?;
            story.create(&job("v2beta1", "here", HELLO))?;
            story.succeeds("here")?;
            let elsewhere = neighbour.get("elsewhere")?;
            ensure!(elsewhere["status"].is_null(), "a job of another namespace was run");
            operator.terminate()
        })?;
        cluster.api().delete(&format!("/api/v1/namespaces/{home}")).map(|_| ())
    })
}

/// What kubectl says about the operator's namespace.
fn words(cluster: &Cluster, command: &[&str]) -> String {
    let said = cluster.kubectl(&[command, &["--namespace=unisono-system"]].concat());
    said.unwrap_or_else(|fault| fault.to_string())
}
