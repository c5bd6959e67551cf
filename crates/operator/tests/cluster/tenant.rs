//! An operator with rights in one namespace only.

use anyhow::ensure;
use unisono_operator::manifests;
use unisono_testcluster::Cluster;

use crate::operator::Start;
use crate::story::{HELLO, job, tell_alone};
use crate::support::install_objects;

/// It runs the jobs there, and no others.
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
