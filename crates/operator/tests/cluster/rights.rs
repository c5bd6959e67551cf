//! What the operator asks the API server for: nothing while nothing happens, and nothing that it is not granted.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use unisono_operator::manifests;
use unisono_testcluster::{Cluster, audit, wait};

use crate::operator::{Operator, USER};
use crate::story::{HELLO, job, tell_alone};

/// How long nothing may be written while nothing happens: longer than any of the operator's own delays.
const QUIET: Duration = Duration::from_secs(10);

/// The operator is the one that runs the jobs of all namespaces.
pub(crate) fn quiet(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "quiet", |story| {
        let operator = Operator::start(cluster)?;
        story.create(&job("v2beta1", "quiet", "sleep 600"))?;
        story.create(&job("v2beta1", "over", HELLO))?;
        let told = |job: &Value, reason: &str| {
            story.events(job).is_ok_and(|all| all.iter().any(|it| it.1 == reason))
        };
        story.until("quiet", "told to run", |job| told(job, "MPIJobRunning"))?;
        story.until("over", "told to be over", |job| told(job, "MPIJobSucceeded"))?;
        let launcher = format!("{}/over-launcher", story.path("/apis/batch/v1", "jobs"));
        story.until("over", "complete as a Job", |_| {
            cluster.api().get(&launcher).is_ok_and(|it| it["status"]["completionTime"].is_string())
        })?;
        // A worker may be seen up after its launcher, or even after the job's end, and mere counts are written later.
        for name in ["quiet", "over"] {
            story.until(name, "told to have two workers up", |job| {
                job["status"]["unisono"]["groups"][1]["active"] == 2
            })?;
        }
        let mark = cluster.audit_mark()?;
        std::thread::sleep(QUIET);
        let own = cluster.requests_since(mark)?.of_user(USER);
        let requests: Vec<String> =
            own.iter().map(|(it, count)| format!("{} {} x{count}", it.verb, it.resource)).collect();
        ensure!(requests.is_empty(), "{requests:?}");
        operator.terminate()
    })
}

/// Every grant was used by the stories before, and nothing that is not granted was asked for.
pub(crate) fn granted_is_used(cluster: &Cluster) -> anyhow::Result<()> {
    let used: BTreeSet<(String, String)> = cluster
        .requests_since(audit::Mark::BEGINNING)?
        .of_user(USER)
        .iter()
        .filter(|(it, _)| !it.resource.starts_with('/'))
        .map(|(it, _)| (it.verb.clone(), it.resource.clone()))
        .collect();
    let mut granted = BTreeSet::new();
    let is_its_own = |role: &Value| {
        let name = role["metadata"]["name"].as_str();
        name.is_some_and(|name| name.starts_with("unisono-operator"))
    };
    for role in
        manifests::objects(&manifests::Options::default()).iter().filter(|it| is_its_own(it))
    {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let group = rule["apiGroups"][0].as_str().context("no group")?;
            for resource in rule["resources"].as_array().context("no resources")? {
                let resource = resource.as_str().context("no resource")?;
                let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
                let mut full = resource.to_owned();
                for (separator, more) in [('.', group), ('/', part)] {
                    if !more.is_empty() {
                        full.push(separator);
                        full.push_str(more);
                    }
                }
                for verb in rule["verbs"].as_array().context("no verbs")? {
                    granted.insert((verb.as_str().context("no verb")?.to_owned(), full.clone()));
                }
            }
        }
    }
    let unused: Vec<_> = granted.difference(&used).collect();
    let missing: Vec<_> = used.difference(&granted).collect();
    ensure!(
        unused.is_empty() && missing.is_empty(),
        "granted and not used: {unused:?}; used and not granted: {missing:?}"
    );
    Ok(())
}

/// Whoever may edit a namespace may run jobs there; whoever may only view it may look at them.
pub(crate) fn of_people(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "people", |story| {
        let namespace = format!("--namespace={}", story.namespace);
        for (role, user) in [("edit", "editor"), ("view", "viewer")] {
            let role_flag = format!("--clusterrole={role}");
            let user_flag = format!("--user={user}");
            cluster.kubectl(&[
                "create",
                "rolebinding",
                role,
                &role_flag,
                &user_flag,
                &namespace,
            ])?;
        }
        let may = |user: &str, verb: &str, resource: &str| {
            let user = format!("--as={user}");
            // It ends with 1 when the answer is no.
            let asked = cluster.kubectl(&["auth", "can-i", verb, resource, &namespace, &user]);
            asked.is_ok_and(|answer| answer.trim() == "yes")
        };
        let jobs =
            ["mpijobs.kubeflow.org", "unisonojobs.unisono.dev", "mpis.scheduling.incubator.k8s.io"];
        // The cluster's own controller puts roles together, a moment later.
        wait::until(Duration::from_secs(30), "people's roles", || {
            let all =
                jobs.iter().all(|it| may("editor", "create", it) && may("viewer", "list", it));
            Ok(all.then_some(()))
        })?;
        for resource in jobs {
            ensure!(!may("viewer", "create", resource), "who views {resource} may create them");
        }
        ensure!(may("editor", "patch", "mpijobs.kubeflow.org/scale"), "who edits may not scale");
        Ok(())
    })
}
