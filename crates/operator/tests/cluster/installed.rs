//! The operator in its own image, as an installation leaves it: two pods of a Deployment, of which one works.

use std::time::Duration;

use anyhow::{Context, ensure};
use unisono_operator::{Step, manifests};
use unisono_testcluster::{Cluster, OPERATOR, operator_archive, unisono_archive, wait};

use crate::operator::{Operator, Start};
use crate::story::{HELLO, create, get, holds, job, remove};
use crate::support::install_objects;

pub(crate) fn runs_jobs(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.load(&operator_archive()?)?;
    let options =
        manifests::Options { image: OPERATOR.to_owned(), ..manifests::Options::default() };
    let steps = install_objects(cluster, &manifests::objects(&options))
        .with_context(|| words(cluster, &["describe", "pods"]))?;
    ensure!(steps.last() == Some(&Step::Ready), "{steps:?}");
    let waited = |step: &Step| matches!(step, Step::Waiting { kind, .. } if kind == "Deployment");
    ensure!(steps.iter().any(waited), "nobody was told to wait: {steps:?}");

    create(cluster, &job("v2beta1", "installed", HELLO))?;
    wait::until(Duration::from_secs(120), "the job to succeed", || {
        Ok(holds(&get(cluster, "installed")?, "Succeeded").then_some(()))
    })
    .with_context(|| {
        words(cluster, &["logs", "--selector=app.kubernetes.io/name=unisono-operator"])
    })?;
    remove(cluster, "installed")?;
    cluster.kubectl(&["delete", "namespace", "unisono-system", "--wait"])?;
    Ok(())
}

/// With rights in one namespace only it runs the jobs there, and no others.
pub(crate) fn one_namespace(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.kubectl(&["create", "namespace", "tenant"])?;
    cluster.load(&unisono_archive()?)?;
    let options = manifests::Options {
        namespace: "unisono-tenant".to_owned(),
        only_namespace: Some("tenant".to_owned()),
        ..manifests::Options::default()
    };
    let mut objects = manifests::objects(&options);
    objects.retain(|it| it["kind"] != "Deployment");
    install_objects(cluster, &objects)?;
    let start = Start {
        home: "unisono-tenant",
        only_namespace: Some("tenant"),
        identity: Some("tenants"),
        ..Start::default()
    };
    let operator = Operator::again(cluster, &start)?;
    create(cluster, &job("v2beta1", "elsewhere", HELLO))?;
    let jobs = "/apis/kubeflow.org/v2beta1/namespaces/tenant/mpijobs";
    cluster.api().create(jobs, &job("v2beta1", "here", HELLO))?;
    wait::until(Duration::from_secs(120), "the tenant's job to succeed", || {
        let job = cluster.api().get(&format!("{jobs}/here"))?;
        Ok(holds(&job, "Succeeded").then_some(()))
    })
    .with_context(|| operator.log())?;
    ensure!(get(cluster, "elsewhere")?["status"].is_null(), "a job of another namespace was run");
    operator.terminate()?;
    remove(cluster, "elsewhere")?;
    cluster.kubectl(&["delete", "namespace", "tenant", "unisono-tenant", "--wait"])?;
    Ok(())
}

/// What kubectl says about the operator's namespace.
fn words(cluster: &Cluster, command: &[&str]) -> String {
    let said = cluster.kubectl(&[command, &["--namespace=unisono-system"]].concat());
    said.unwrap_or_else(|fault| fault.to_string())
}
