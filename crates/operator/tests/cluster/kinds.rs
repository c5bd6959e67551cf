//! Jobs of the kinds beside MPIJob: from their creation to their end, with the right ranks on the right pods.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::kube_batch::mpi;
use crate::story::{PATIENCE, Story, tell};
use crate::support::prepare;

/// Says where each rank runs.
pub(crate) const HELLO: &str = "mpirun /programs/openmpi4/hello";

/// One job object of any kind.
pub(crate) struct Job<'story> {
    story: &'story Story<'story>,
    name: String,
    path: String,
    uid: String,
}

impl<'story> Job<'story> {
    pub(crate) fn create(story: &'story Story<'story>, object: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let (version, name) = (text(&object["apiVersion"])?, text(&object["metadata"]["name"])?);
        let plural = format!("{}s", text(&object["kind"])?.to_lowercase());
        let all = story.path(&format!("/apis/{version}"), &plural);
        let uid = text(&story.cluster.api().create(&all, object)?["metadata"]["uid"])?;
        Ok(Self { story, path: format!("{all}/{name}"), name, uid })
    }

    pub(crate) fn object(&self) -> anyhow::Result<Value> {
        self.story.cluster.api().get(&self.path)
    }

    /// Waits until the job is as wanted.
    pub(crate) fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let found = wait::until(PATIENCE, &format!("{} to be {what}", self.name), || {
            let object = self.object()?;
            Ok(is(&object).then_some(object))
        });
        found.with_context(|| {
            let status = self.object().map(|it| it["status"].to_string()).unwrap_or_default();
            format!("status: {status}\n{}", self.said().unwrap_or_default())
        })
    }

    /// Waits for the end of a `UnisonoJob`.
    fn ends(&self, phase: &str) -> anyhow::Result<Value> {
        let over = |job: &Value| job["status"]["completionTime"].is_string();
        let job = self.until("at its end", over)?;
        ensure!(
            job["status"]["phase"] == phase,
            "{}: {}\n{}",
            self.name,
            job["status"],
            self.said()?
        );
        Ok(job)
    }

    /// What all its pods said.
    pub(crate) fn said(&self) -> anyhow::Result<String> {
        let selector = format!("--selector=unisono.dev/job-uid={}", self.uid);
        self.story.kubectl(&["logs", &selector, "--tail=-1", "--prefix", "--ignore-errors"])
    }

    /// Waits until the operator removes it, because its time is up.
    pub(crate) fn expires(&self, fields: &Value) -> anyhow::Result<()> {
        self.story.cluster.api().merge(&self.path, fields)?;
        wait::until(PATIENCE, &format!("{} to be gone", self.name), || {
            Ok(self.story.cluster.api().find(&self.path)?.is_none().then_some(()))
        })
    }
}

fn unisono_job(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "unisono.dev/v1alpha1",
        "kind": "UnisonoJob",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// A group of the Open MPI image, with more fields.
fn group(name: &str, fields: Value) -> Value {
    let mut group = json!({
        "name": name,
        "image": Image::OpenMpi4.reference(),
        "template": {"spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "imagePullPolicy": "Never"}],
        }},
    });
    if let (Some(group), Value::Object(fields)) = (group.as_object_mut(), fields) {
        group.extend(fields);
    }
    group
}

/// Every rank is where the list says, and there are no others.
pub(crate) fn ranks_are(said: &str, hosts: &[&str]) -> anyhow::Result<()> {
    for (rank, host) in hosts.iter().enumerate() {
        let line = format!("rank {rank} of {} on {host}", hosts.len());
        ensure!(said.contains(&line), "no {line:?} in {said}");
    }
    Ok(())
}

pub(crate) fn several_groups(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "groups", |story, _| {
        let spec = json!({"groups": [
            group("launcher", json!({"run": "Launch", "shell": "Sh", "script": HELLO})),
            group("model", json!({"replicas": 2, "slots": 2})),
            group("observer", json!({"slots": 1})),
        ]});
        let mut object = unisono_job("mixed", &spec);
        object["metadata"]["annotations"] = json!({"unisono.dev/network-policy": "true"});
        let job = Job::create(story, &object)?;
        let ended = job.ends("Succeeded")?;
        let [first, second] = ["mixed-model-0", "mixed-model-1"];
        ranks_are(&job.said()?, &[first, first, second, second, "mixed-observer-0"])?;
        let status = &ended["status"];
        ensure!(status["groups"]["launcher"]["succeeded"] == 1, "{status}");
        ensure!(status["groups"]["model"]["replicas"] == 2 && status["exitCode"] == 0, "{status}");
        let conditions = status["conditions"].as_array().context("no conditions")?.iter();
        let kinds: Vec<&str> = conditions.filter_map(|it| it["type"].as_str()).collect();
        ensure!(kinds == ["Created", "Running", "Succeeded"], "{status}");
        let shown = story.kubectl(&["get", "uj", "mixed"])?;
        ensure!(shown.contains("PHASE") && shown.contains("Succeeded"), "{shown}");
        let complete = "--for=condition=complete";
        story.kubectl(&["wait", complete, "job/mixed-launcher", "--timeout=10s"])?;
        let policy = story.path("/apis/networking.k8s.io/v1", "networkpolicies/mixed-agent");
        let policy = cluster.api().get(&policy)?;
        let selected = &policy["spec"]["podSelector"]["matchLabels"]["unisono.dev/job-uid"];
        ensure!(*selected == job.uid.as_str(), "{policy}");
        job.expires(&json!({"spec": {"policies": {"ttlSecondsAfterFinished": 0}}}))
    })
}

/// Roles with commands of their own, which reach each other by name and know each other's addresses and ports.
pub(crate) fn openpai(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "openpai", |story, _| {
        let script = "set -e
            echo there: $(ssh node-1 'hostname; echo $PAI_CONTAINER_HOST_IP $PAI_HOST_IP_main_0')
            echo known: node-1 $PAI_HOST_IP_node_1 $PAI_CONTAINER_HOST_IP
            echo ports: $PAI_PORT_LIST_node_0_trace $PAI_node_0_trace_PORT of $PAI_TASK_ROLE_INSTANCES
            echo shared: $(df -m /dev/shm | tail -1)
            mpirun -np 4 -H node-0:2,node-1:2 /programs/openmpi4/hello";
        let spec = json!({
            "writtenFor": "openpai/v1",
            "launchRights": "Everybody",
            "groups": [
                group("main", json!({
                    "run": "Command", "slots": 0, "script": script, "shmMiB": 48,
                    "completion": {"minFailed": 1, "minSucceeded": 1},
                })),
                group("node", json!({
                    "run": "Command", "replicas": 2, "slots": 2, "script": "sleep infinity",
                    "ports": [{"name": "trace", "first": 9000, "count": 2}],
                })),
            ],
            "policies": {"retryCount": 0},
        });
        let job = Job::create(story, &unisono_job("ring", &spec))?;
        let ended = job.ends("Succeeded")?;
        let said = job.said()?;
        ranks_are(&said, &["node-0", "node-0", "node-1", "node-1"])?;
        let line = |start: &str| {
            let found = said.lines().find_map(|line| line.split_once(start));
            found.map(|(_, rest)| rest.trim()).with_context(|| format!("no {start} in {said}"))
        };
        ensure!(line("there:")? == line("known:")?, "{said}");
        ensure!(line("ports:")? == "9000,9001 9000,9001 of main:0,node:0,node:1", "{said}");
        ensure!(line("shared:")?.split_whitespace().nth(1) == Some("48"), "{said}");
        ensure!(ended["status"]["groups"]["main"]["succeeded"] == 1, "{}", ended["status"]);
        job.until("without running tasks", |job| job["status"]["groups"]["node"]["active"] == 0)?;
        Ok(())
    })
}

/// What follows a failure depends on its class; a failing rank is the job's failure.
pub(crate) fn failures(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "classes", |story, _| {
        let task = |name: &str, script: &str| {
            let spec = json!({
                "writtenFor": "openpai/v1",
                "groups": [group("task", json!({"run": "Command", "script": script}))],
                "policies": {"retryCount": 1},
            });
            Job::create(story, &unisono_job(name, &spec))
        };
        let unknown = task("unknown", "exit $((FC_FRAMEWORK_ATTEMPT_ID == 0))")?;
        let fatal = task("fatal", "kill -SEGV $$")?;
        let killed = task("killed", "mpirun -np 1 sh -c 'kill -KILL $$'")?;
        let line = "mpirun sh -c 'exit $((3 * (OMPI_COMM_WORLD_RANK == 1)))'";
        let spec = json!({"groups": [
            group("node", json!({"run": "LaunchOnFirst", "replicas": 2, "slots": 1, "script": line})),
        ]});
        let rank = Job::create(story, &unisono_job("rank", &spec))?;
        let ended = unknown.ends("Succeeded")?;
        ensure!(ended["status"]["attempt"] == 1, "{}", ended["status"]);
        for (job, code, reason) in [
            (&fatal, 139, "NotRetriable"),
            (&killed, 137, "NotRetriable"),
            (&rank, 3, "RetriesExhausted"),
        ] {
            let ended = job.ends("Failed")?;
            let status = &ended["status"];
            ensure!(status["exitCode"] == code && status["attempt"] == 0, "{status}");
            let failed = crate::story::condition(&ended, "Failed").context("no condition")?;
            ensure!(failed["reason"] == reason, "{failed}");
        }
        Ok(())
    })
}

/// What can never run is refused by the API server, with a reason.
pub(crate) fn refused(cluster: &Cluster) -> anyhow::Result<()> {
    prepare(cluster)?;
    let launch = json!({"name": "a", "run": "Launch", "script": "mpirun x"});
    let ranks = json!({"name": "b"});
    let retries = json!({"backoffLimit": 1, "retryCount": 1});
    let (mut two, mut second) = (launch.clone(), launch.clone());
    two["replicas"] = json!(2);
    second["name"] = json!("c");
    let unisono = [
        (json!({}), "at least one group"),
        (json!({"groups": [launch, launch]}), "a name of its own"),
        (json!({"groups": [launch, second]}), "a job has one launch line"),
        (json!({"groups": [ranks]}), "needs run: Launch"),
        (json!({"groups": [two]}), "has one member"),
        (json!({"groups": [launch], "policies": retries}), "not both"),
        (json!({"groups": [{"name": "a", "replicas": "2"}]}), "must be of type integer"),
    ];
    let objects = unisono.map(|(spec, reason)| (unisono_job("refused", &spec), reason));
    let (mut late, mut large, mut empty) =
        (mpi("late", true, "x"), mpi("large", true, "x"), mpi("empty", false, "x"));
    late["spec"]["job"]["spec"]["completions"] = json!(3);
    large["spec"]["podGroup"]["spec"]["minMember"] = json!(3);
    empty["spec"]["job"]["template"]["spec"]["containers"] = json!([]);
    let mpis = [
        (late, "as large as completions"),
        (large, "larger than the number of pods"),
        (empty, "at least one container"),
    ];
    for (object, reason) in objects.into_iter().chain(mpis) {
        let (version, plural) = match object["kind"].as_str() {
            Some("MPI") => ("scheduling.incubator.k8s.io/v1alpha1", "mpis"),
            _ => ("unisono.dev/v1alpha1", "unisonojobs"),
        };
        let path = format!("/apis/{version}/namespaces/default/{plural}");
        let fault = match cluster.api().create(&path, &object) {
            Ok(_) => bail!("{} was taken, without {reason}", object["spec"]),
            Err(fault) => fault.to_string(),
        };
        ensure!(fault.contains(reason), "{}: {fault}", object["spec"]);
    }
    for (path, text) in [
        ("uj.spec.groups.slots", "Rank slots on each member"),
        ("mpi.spec.job.spec.parallelism", "The number of hosts"),
    ] {
        let explained = cluster.kubectl(&["explain", path])?;
        ensure!(explained.to_lowercase().contains(&text.to_lowercase()), "{explained}");
    }
    Ok(())
}
