//! The operator in its own image, as an installation leaves it: two pods of a Deployment, of which one works.

use std::time::Duration;

use anyhow::{Context, ensure};
use unisono_operator::{Step, manifests};
use unisono_testcluster::{Cluster, OPERATOR, operator_archive, wait};

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

/// What kubectl says about the operator's namespace.
fn words(cluster: &Cluster, command: &[&str]) -> String {
    let said = cluster.kubectl(&[command, &["--namespace=unisono-system"]].concat());
    said.unwrap_or_else(|fault| fault.to_string())
}
