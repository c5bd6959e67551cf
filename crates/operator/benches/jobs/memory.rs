//! What the operator has in memory: with nothing to do among objects of somebody else, and with many jobs that run and have ended.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use unisono_testcluster::{Cluster, usage, wait};

use crate::arms::{V1, clear, create_all};
use crate::inside::{all_have, inside, jobs};
use crate::kubelet::{Begun, end_launchers};
use crate::measure::print;
use crate::operator::{Operator, USER};
use crate::support::jobs_path;
use crate::{PATIENCE, Size, mib};

/// How many objects of somebody else there are.
const FOREIGN: u32 = 700;

/// How many jobs there are, and of how many workers.
const MANY: Size = Size { jobs: 1000, workers: 2 };

/// How long nothing happens.
const QUIET: Duration = Duration::from_secs(60);

pub(crate) fn print_all(cluster: &Cluster) -> anyhow::Result<()> {
    print("| memory in use | MiB |");
    print("|---|---|");
    idle(cluster)?;
    crowd(cluster)?;
    print("");
    Ok(())
}

fn tell(operator: &Operator, what: &str) -> anyhow::Result<()> {
    let used = usage::of_process(operator.pid())?;
    print(&format!("| {what} | {:.1} (peak {:.1}) |", mib(used.resident), mib(used.peak)));
    Ok(())
}

/// An operator that has nothing to do, among many objects that are none of its business.
fn idle(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    settle(cluster)?;
    tell(&operator, "nothing to do")?;
    let filling = "x".repeat(200_000);
    for number in 0..FOREIGN {
        let map =
            json!({"metadata": {"name": format!("foreign-{number}")}, "data": {"x": filling}});
        cluster.api().create("/api/v1/namespaces/default/configmaps", &map)?;
    }
    settle(cluster)?;
    tell(&operator, &format!("the same, with {FOREIGN} ConfigMaps of 200 KB of somebody else"))?;
    operator.terminate()?;
    // They would only take room in the API server from now on.
    cluster.kubectl(&["delete", "configmaps", "--all", "--namespace=default"]).map(|_| ())
}

/// An operator with many jobs: all of them run, nothing happens for a minute, all of them have ended.
fn crowd(cluster: &Cluster) -> anyhow::Result<()> {
    let Size { jobs: count, workers } = MANY;
    let operator = Operator::start(cluster)?;
    operator.says("working")?;
    let wait_for = |condition: &'static str| {
        inside(cluster, async move |client| all_have(jobs(&client, V1), count, condition).await)
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        create_all(cluster, MANY, V1)?;
        wait_for("Running")?;
        settle(cluster)?;
        tell(&operator, &format!("{count} jobs of {workers} workers that have just begun"))?;
        let mark = cluster.audit_mark()?;
        std::thread::sleep(QUIET);
        tell(&operator, "the same, a minute later")?;
        let asked = cluster.requests_since(mark)?.of_user(USER);
        let writes = asked.count(|it| !matches!(it.verb.as_str(), "get" | "list" | "watch"));
        let reads = asked.count(|it| it.verb != "watch") - writes;
        let end = |client| end_launchers(client, count, Begun::WhenLetGo);
        let ends = scope.spawn(move || inside(cluster, end));
        wait_for("Succeeded")?;
        ends.join().map_err(|_| anyhow::anyhow!("the launchers' thread panicked"))??;
        settle(cluster)?;
        tell(&operator, &format!("{count} jobs that have ended"))?;
        print(&format!("\nIn a minute in which nothing happened: {writes} writes, {reads} reads."));
        Ok(())
    })
    .with_context(|| operator.log())?;
    operator.terminate()?;
    clear(cluster, V1)
}

/// Waits until a job that cannot be read was refused: everything before it has been seen then.
fn settle(cluster: &Cluster) -> anyhow::Result<()> {
    let path = jobs_path("v2beta1");
    let job = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "settle"},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"name": "x"}]}}}}},
    });
    cluster.api().create(&path, &job)?;
    wait::until(PATIENCE, "a job to be refused", || {
        let job = cluster.api().get(&format!("{path}/settle"))?;
        Ok(job["status"]["conditions"].is_array().then_some(()))
    })?;
    cluster.api().delete(&format!("{path}/settle")).map(|_| ())
}
