//! What goes wrong in a cluster: objects nobody can read, operators that die, watches that are cut, names that are taken.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_operator::manifests;
use unisono_testcluster::{COSCHEDULER, Cluster, audit, wait};

use crate::operator::{Operator, Start, USER};
use crate::story::{
    HELLO, condition, create, events, get, holds, job, merge, pods, remove, succeeds, until,
};
use crate::support::{jobs_path, put};
use crate::wire::Wire;

pub(crate) fn malformed(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let mut odd = job("v2beta1", "odd", HELLO);
    put(&mut odd, "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/args", json!([1]))?;
    put(&mut odd, "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/image", Value::Null)?;
    let created = create(cluster, &odd)?;
    create(cluster, &job("v2beta1", "even", HELLO))?;
    let told = until(cluster, &operator, "odd", "told what is wrong", |job| holds(job, "Invalid"))?;
    let message = condition(&told, "Invalid").context("no condition")?["message"].to_string();
    for part in ["Launcher.template.spec.containers[0].args[0]", "needs `image`"] {
        ensure!(message.contains(part), "no {part} in {message}");
    }
    ensure!(events(cluster, &created)? == [("Warning".to_owned(), "ValidationError".to_owned())]);
    succeeds(cluster, &operator, "even")?;

    let mended = job("v2beta1", "odd", HELLO);
    let specs = &mended["spec"]["mpiReplicaSpecs"];
    let templates = json!({
        "Launcher": {"template": {"spec": specs["Launcher"]["template"]["spec"]}},
        "Worker": {"template": {"spec": specs["Worker"]["template"]["spec"]}},
    });
    merge(cluster, "odd", &json!({"spec": {"mpiReplicaSpecs": templates}}))?;
    let ended = succeeds(cluster, &operator, "odd")?;
    ensure!(condition(&ended, "Invalid").is_none(), "{}", ended["status"]);
    remove(cluster, "odd")?;
    remove(cluster, "even")?;
    operator.terminate()
}

pub(crate) fn recreated(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    create(cluster, &job("v2beta1", "twice", "sleep 600"))?;
    until(cluster, &operator, "twice", "running", |job| holds(job, "Running"))?;
    let path = format!("{}/twice?propagationPolicy=Background", jobs_path("v2beta1"));
    cluster.api().delete(&path)?;
    let second = create(cluster, &job("v2beta1", "twice", HELLO))?;
    let ended = succeeds(cluster, &operator, "twice")?;
    ensure!(ended["metadata"]["uid"] == second["metadata"]["uid"], "it is another one");
    remove(cluster, "twice")?;
    operator.terminate()
}

/// Moments are told apart by how many requests the operator has made: each life ends a little later than the one before.
pub(crate) fn killed(cluster: &Cluster) -> anyhow::Result<()> {
    let mut operator = Operator::start(cluster)?;
    operator.says("working")?;
    let requests = |cluster: &Cluster, mark| -> anyhow::Result<u64> {
        Ok(cluster
            .requests_since(mark)?
            .of_user(USER)
            .count(|it| matches!(it.verb.as_str(), "create" | "patch" | "delete")))
    };
    create(cluster, &job("v2beta1", "robust", HELLO))?;
    for life in 1..=5 {
        let mark = cluster.audit_mark()?;
        wait::until(Duration::from_secs(60), "the operator to have written", || {
            let ended = holds(&get(cluster, "robust")?, "Succeeded");
            Ok((ended || requests(cluster, mark)? >= life).then_some(()))
        })
        .with_context(|| operator.log())?;
        operator.kill()?;
        operator = Operator::again(cluster, &Start::default())?;
    }
    let ended = succeeds(cluster, &operator, "robust")?;
    ensure!(
        ended["status"]["replicaStatuses"]["Launcher"]["failed"].is_null(),
        "{}",
        ended["status"]
    );
    ensure!(
        pods(cluster, "robust")?.iter().filter(|it| it.contains("launcher")).count() == 1,
        "two launches"
    );
    remove(cluster, "robust")?;
    operator.terminate()
}

pub(crate) fn handed_over(cluster: &Cluster) -> anyhow::Result<()> {
    let start = |identity, port| Start { identity: Some(identity), port, ..Start::default() };
    let first = Operator::start_with(cluster, &start("first", 8181))?;
    first.says("working")?;
    let second = Operator::again(cluster, &start("second", 8182))?;
    second.says("standing by")?;
    ensure!(second.answer(cluster, "/readyz")? == "ready\n", "a stand-by is ready");
    create(cluster, &job("v2beta1", "relay", HELLO))?;
    until(cluster, &first, "relay", "created", |job| holds(job, "Created"))?;
    ensure!(!second.log().contains("working"), "both work");
    first.terminate()?;
    second.says("working")?;
    succeeds(cluster, &second, "relay")?;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/unisono-system/leases/unisono-operator";
    ensure!(cluster.api().get(lease)?["spec"]["holderIdentity"] == "second");
    second.terminate()?;
    ensure!(cluster.api().get(lease)?["spec"]["holderIdentity"] == "", "it was not given back");
    remove(cluster, "relay")
}

/// All connections end twice, with events on the way.
pub(crate) fn watch_cut(cluster: &Cluster) -> anyhow::Result<()> {
    let wire = Wire::to(cluster, "10.77.0.1:443")?;
    let start = Start { through: Some(wire.address()), ..Start::default() };
    let operator = Operator::start_with(cluster, &start)?;
    operator.says("working")?;
    create(cluster, &job("v2beta1", "cut", HELLO))?;
    ensure!(wire.cut() > 0, "nothing was cut");
    until(cluster, &operator, "cut", "created", |job| holds(job, "Created"))?;
    ensure!(wire.cut() > 0, "nothing was cut");
    succeeds(cluster, &operator, "cut")?;
    remove(cluster, "cut")?;
    operator.terminate()
}

pub(crate) fn gang(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.start_coscheduling()?;
    let gang = format!("scheduler-plugins={COSCHEDULER}");
    let operator = Operator::start_with(cluster, &Start { gang: &gang, ..Start::default() })?;
    let groups = Groups { group: "scheduling.x-k8s.io", version: "v1alpha1" };
    let mut gang = job("v2beta1", "gang", HELLO);
    gang["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"});
    groups.run_past_an_obstacle(cluster, &operator, &gang)?;
    succeeds(cluster, &operator, "gang")?;
    for pod in pods(cluster, "gang")? {
        let pod = cluster.api().get(&format!("/api/v1/namespaces/default/pods/{pod}"))?;
        ensure!(pod["spec"]["schedulerName"] == COSCHEDULER, "{}", pod["spec"]["schedulerName"]);
    }
    until(cluster, &operator, "gang", "without a PodGroup", |_| groups.are_gone(cluster, "gang"))?;
    remove(cluster, "gang")?;
    operator.terminate()
}

/// Schedulers that the cluster does not have: the PodGroup is made, and goes with a suspension.
pub(crate) fn other_gangs(cluster: &Cluster) -> anyhow::Result<()> {
    for (gang, group, version) in [
        ("volcano", "scheduling.volcano.sh", "v1beta1"),
        ("kube-batch", "scheduling.incubator.k8s.io", "v1alpha1"),
    ] {
        let groups = Groups { group, version };
        groups.define(cluster)?;
        let operator = Operator::start_with(cluster, &Start { gang, ..Start::default() })?;
        groups.run_past_an_obstacle(cluster, &operator, &job("v2beta1", gang, HELLO))?;
        merge(cluster, gang, &json!({"spec": {"runPolicy": {"suspend": true}}}))?;
        until(cluster, &operator, gang, "without a gang", |_| groups.are_gone(cluster, gang))?;
        remove(cluster, gang)?;
        operator.terminate()?;
        // An operator that looks for a gang scheduler by itself would find this one.
        cluster.kubectl(&["delete", "crd", &groups.definition()])?;
    }
    Ok(())
}

/// The PodGroups of a scheduler.
struct Groups {
    group: &'static str,
    version: &'static str,
}

impl Groups {
    fn definition(&self) -> String {
        format!("podgroups.{}", self.group)
    }

    /// Where they are.
    fn path(&self) -> String {
        format!("/apis/{}/{}/namespaces/default/podgroups", self.group, self.version)
    }

    fn are_gone(&self, cluster: &Cluster, name: &str) -> bool {
        cluster.api().find(&format!("{}/{name}", self.path())).is_ok_and(|it| it.is_none())
    }

    /// Creates a job whose PodGroup's name is taken, and waits until it has its own once the other is gone.
    fn run_past_an_obstacle(
        &self,
        cluster: &Cluster,
        operator: &Operator,
        job: &Value,
    ) -> anyhow::Result<()> {
        let name = job["metadata"]["name"].as_str().context("no name")?;
        let path = format!("{}/{name}", self.path());
        let foreign = json!({
            "apiVersion": format!("{}/{}", self.group, self.version),
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 1},
        });
        cluster.api().create(&self.path(), &foreign)?;
        let created = create(cluster, job)?;
        taken(cluster, operator, &created)?;
        cluster.api().delete(&path)?;
        let is_owned = |job: &Value| {
            let found = cluster.api().find(&path).ok().flatten();
            found.is_some_and(|it| {
                it["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
            })
        };
        until(cluster, operator, name, "a gang", is_owned).map(|_| ())
    }

    fn define(&self, cluster: &Cluster) -> anyhow::Result<()> {
        let name = self.definition();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({
            "name": self.version, "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema},
        });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                // Kubernetes' own groups want one.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": self.group,
                "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
                "scope": "Namespaced",
                "versions": [version],
            },
        });
        cluster.api().create(definitions, &definition)?;
        let waited = ["wait", "--for=condition=Established", "--timeout=60s", "crd", &name];
        cluster.kubectl(&waited).map(|_| ())
    }
}

/// Waits until the job says that a name it needs is taken.
fn taken(cluster: &Cluster, operator: &Operator, job: &Value) -> anyhow::Result<()> {
    let name = job["metadata"]["name"].as_str().context("no name")?;
    until(cluster, operator, name, "told that a name is taken", |job| {
        let told = events(cluster, job).unwrap_or_default();
        told.contains(&("Warning".to_owned(), "ErrResourceExists".to_owned()))
    })
    .map(|_| ())
}

/// Objects of somebody else are in the way, one for each job; they are left alone, and once they are gone the jobs run.
pub(crate) fn names_taken(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    let container = json!({"name": "x", "image": "lab/x:1", "imagePullPolicy": "Never"});
    let pod = json!({"containers": [container], "restartPolicy": "Never"});
    let core = "/api/v1/namespaces/default";
    let obstacles = [
        ("taken-pod", format!("{core}/pods"), "taken-pod-worker-0", pod.clone()),
        (
            "taken-service",
            format!("{core}/services"),
            "taken-service",
            json!({"clusterIP": "None"}),
        ),
        ("taken-map", format!("{core}/configmaps"), "taken-map-config", Value::Null),
        ("taken-secret", format!("{core}/secrets"), "taken-secret-ssh", Value::Null),
        (
            "taken-job",
            "/apis/batch/v1/namespaces/default/jobs".to_owned(),
            "taken-job-launcher",
            json!({"suspend": true, "template": {"spec": pod}}),
        ),
    ];
    for (name, path, obstacle, spec) in &obstacles {
        let mut object = json!({"metadata": {"name": obstacle}});
        if !spec.is_null() {
            object["spec"] = spec.clone();
        }
        cluster.api().create(path, &object)?;
        let created = create(cluster, &job("v2beta1", name, HELLO))?;
        taken(cluster, &operator, &created)?;
        cluster.api().delete(&format!(
            "{path}/{obstacle}?gracePeriodSeconds=0&propagationPolicy=Background"
        ))?;
        succeeds(cluster, &operator, name)?;
        remove(cluster, name)?;
    }
    operator.terminate()
}

/// How long nothing may be written while nothing happens: longer than any of the operator's own delays.
const QUIET: Duration = Duration::from_secs(10);

pub(crate) fn quiet(cluster: &Cluster) -> anyhow::Result<()> {
    let operator = Operator::start(cluster)?;
    create(cluster, &job("v2beta1", "quiet", "sleep 600"))?;
    create(cluster, &job("v2beta1", "over", "exit 0"))?;
    let told = |job: &Value, reason: &str| {
        events(cluster, job).is_ok_and(|all| all.iter().any(|it| it.1 == reason))
    };
    until(cluster, &operator, "quiet", "told to run", |job| told(job, "MPIJobRunning"))?;
    until(cluster, &operator, "over", "told to be over", |job| told(job, "MPIJobSucceeded"))?;
    let launcher = "/apis/batch/v1/namespaces/default/jobs/over-launcher";
    until(cluster, &operator, "over", "complete as a Job", |_| {
        cluster.api().get(launcher).is_ok_and(|it| it["status"]["completionTime"].is_string())
    })?;
    let mark = cluster.audit_mark()?;
    std::thread::sleep(QUIET);
    let own = cluster.requests_since(mark)?.of_user(USER);
    let requests: Vec<String> =
        own.iter().map(|(it, count)| format!("{} {} x{count}", it.verb, it.resource)).collect();
    ensure!(requests.is_empty(), "{requests:?}");
    for name in ["quiet", "over"] {
        remove(cluster, name)?;
    }
    operator.terminate()
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
    for role in manifests::objects(&manifests::Options::default()) {
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
