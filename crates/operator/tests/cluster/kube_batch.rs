//! kube-batch's `MPI`, of either shape: everything that it promised is there, filled in time, and ends with its executor.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, wait};

use crate::kinds::{HELLO, Job, ranks_are};
use crate::story::{PATIENCE, Story, tell};

/// What kube-batch's own users have: Hydra, the variables they read, and the script that reaches another pod.
const HYDRA: &str = "\
echo boots by $HYDRA_BOOTSTRAP $HYDRA_BOOTSTRAP_EXEC with $HYDRA_HOST_FILE
echo reached $(/entry/kubeexec.sh hyd-1 hostname)
/opt/mpich/bin/mpiexec.hydra -n 2 /programs/mpich/hello";

/// Every rank says what it finds in the files of its pod. They are filled when it begins, or soon after: kubelets that only looked
/// by themselves could leave them empty for four times as long as each is waited for here.
const FILES: &str = "\
mpirun sh -c 'for file in /mpi/hostfile /entry/hosts /entry/executor; do
  looks=0
  until test -s $file || test $((looks += 1)) -gt 200; do sleep 0.1; done
  echo $(hostname) has $file: $(cat $file)
done'";

/// What kube-batch started containers by: it runs the command in the executor, and in any other pod it waits, however long.
const STARTED: &str = "\
/entry/startup.sh mpirun /programs/openmpi4/hello
/entry/kubeexec.sh sta-1 timeout 2 /entry/startup.sh echo it began
echo it waited until $?";

/// What is told of a job that no scheduler of the cluster places as one.
const NO_GANG: &str = "it starts without a gang";

/// An `MPI` of either shape with two pods, whose executor runs the line.
pub(crate) fn mpi(name: &str, whole: bool, line: &str) -> Value {
    let spec = json!({
        "completions": 2,
        "parallelism": 2,
        "backoffLimit": 0,
        "template": {"spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "m",
                "image": Image::OpenMpi4.reference(),
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", line],
            }],
        }},
    });
    let spec = match whole {
        true => json!({
            "job": {"apiVersion": "batch/v1", "kind": "Job", "spec": spec},
            "podGroup": {"spec": {"minMember": 2}},
        }),
        false => json!({"job": spec}),
    };
    json!({
        "apiVersion": "scheduling.incubator.k8s.io/v1alpha1",
        "kind": "MPI",
        "metadata": {"name": name},
        "spec": spec,
    })
}

fn ended_as(job: &Value, kind: &str) -> bool {
    job["status"]["job"]["conditions"][0]["type"] == kind
}

pub(crate) fn either_shape(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "kube-batch", |story, _| {
        let obstacles = obstacles(story, "tri")?;
        let whole = Job::create(story, &{
            let mut whole = mpi("tri", true, &format!("cat /mpi/hostfile && {FILES} && {HELLO}"));
            whole["metadata"]["annotations"] = json!({"unisono.dev/network-policy": "true"});
            whole
        })?;
        let bare = Job::create(story, &mpi("duo", false, HELLO))?;
        let failing = Job::create(story, &mpi("bad", false, "mpirun sh -c 'exit 7'"))?;
        let hydra = Job::create(story, &{
            let mut hydra = mpi("hyd", false, HYDRA);
            let container = &mut hydra["spec"]["job"]["template"]["spec"]["containers"][0];
            container["image"] = json!(Image::OtherMpis.reference());
            hydra
        })?;
        let started = Job::create(story, &{
            let mut started = mpi("sta", false, STARTED);
            // Nothing of it needs root, or a user that anybody knows.
            started["spec"]["job"]["template"]["spec"]["securityContext"] =
                json!({"runAsNonRoot": true, "runAsUser": 4711});
            started
        })?;
        // The binding is made after the role that it names, and so it is in the way later.
        let (binding, others) = obstacles.split_first().context("no obstacles")?;
        let waits_for = |name: &str| {
            whole.until("told that a name is taken", |job| {
                let why = job["status"]["unisono"]["why"].to_string();
                why.contains(&format!("{name} already exists and belongs to somebody else"))
            })
        };
        waits_for("")?;
        others.iter().try_for_each(|path| cluster.api().delete(path).map(drop))?;
        let waits = waits_for("RoleBinding tri-rolebinding")?;
        let gang = &waits["status"]["podGroup"]["conditions"][0];
        ensure!(gang["type"] == "Unschedulable" && gang["status"] == "True", "{gang}");
        ensure!(gang["reason"] == "NotEnoughTasks", "{gang}");
        ensure!(data(story, "tri-hostfile")?["hostfile"] == "", "hosts that are not there");
        ensure!(data(story, "tri-mpi-data")?["executor"] == "", "nobody can be the executor yet");
        cluster.api().delete(binding)?;
        let told = story.events(&whole.object()?)?;
        ensure!(told.iter().any(|it| it.1 == "ErrResourceExists"), "{told:?}");
        for (job, name) in [(&whole, "tri"), (&bare, "duo")] {
            let is_over = |job: &Value| job["status"]["job"]["completionTime"].is_string();
            let ended = job.until("at its end", is_over)?;
            ensure!(ended_as(&ended, "Complete"), "{}\n{}", ended["status"], job.said()?);
            ranks_are(&job.said()?, &[&format!("{name}-0"), &format!("{name}-1")])?;
            let told = story.whole_events(&ended)?;
            let is_of_gangs = |event: &Value| {
                event["reason"] == "ValidationWarning"
                    && event["message"].as_str().is_some_and(|it| it.contains(NO_GANG))
            };
            ensure!(told.iter().any(is_of_gangs), "no word of gangs: {told:#?}");
        }
        ensure!(whole.said()?.contains("] tri-0\n"), "{}", whole.said()?);
        files_are_filled(&whole.said()?)?;
        contract(story, &whole)?;
        bare.until("without running pods", |job| job["status"]["job"]["active"] == 0)?;
        story.kubectl(&["wait", "--for=condition=complete", "job/duo", "--timeout=30s"])?;
        failing.until("failed", |job| ended_as(job, "Failed"))?;
        for (pod, code) in [("duo-0", 0), ("duo-1", 0), ("bad-0", 7), ("bad-1", 7)] {
            ends_with(story, pod, code)?;
        }
        let status =
            whole.until("told about its gang", |job| job["status"]["podGroup"].is_object())?;
        status_is_filled(&status["status"])?;
        let failed = &failing.object()?["status"]["job"]["conditions"][0];
        ensure!(failed["reason"] == "BackoffLimitExceeded", "{failed}");
        hydra.until("complete", |job| ended_as(job, "Complete"))?;
        ranks_are(&hydra.said()?, &["hyd-0", "hyd-1"])?;
        for line in ["boots by rsh /entry/kubeexec.sh with /mpi/hostfile", "reached hyd-1"] {
            ensure!(hydra.said()?.contains(line), "no {line} in {}", hydra.said()?);
        }
        started.until("complete", |job| ended_as(job, "Complete"))?;
        let said = started.said()?;
        ranks_are(&said, &["sta-0", "sta-1"])?;
        ensure!(said.contains("it waited until 124") && !said.contains("it began"), "{said}");
        bare.expires(&json!({"spec": {"job": {"ttlSecondsAfterFinished": 0}}}))
    })
}

/// The status of a job that had to wait for its pods tells what became of the gang, and names what belongs to the job.
fn status_is_filled(status: &Value) -> anyhow::Result<()> {
    ensure!(status["podGroup"]["succeeded"] == 2, "{status}");
    let gang = &status["podGroup"]["conditions"][0];
    ensure!(gang["status"] == "False" && gang["reason"] == "Scheduled", "{gang}");
    let told = json!({
        "executor": "tri-0", "hostfile": "tri-hostfile", "data": "tri-mpi-data", "attempt": "0",
    });
    ensure!(status["descriptors"] == told, "{status}");
    Ok(())
}

/// Ranks on either pod found all files filled.
fn files_are_filled(said: &str) -> anyhow::Result<()> {
    for pod in ["tri-0", "tri-1"] {
        for line in ["/mpi/hostfile: tri-0 tri-1", "/entry/executor: tri-0"] {
            let line = format!("{pod} has {line}\n");
            ensure!(said.contains(&line), "no {line:?} in {said}");
        }
        let hosts = said.lines().find_map(|it| it.split_once(&format!("{pod} has /entry/hosts: ")));
        let words: Vec<&str> = hosts.with_context(|| said.to_owned())?.1.split(' ').collect();
        ensure!(matches!(words[..], [_, "tri-0", _, "tri-1"]), "{words:?}");
    }
    Ok(())
}

/// What is in a ConfigMap.
fn data(story: &Story<'_>, name: &str) -> anyhow::Result<Value> {
    let path = format!("{}/{name}", story.path("/api/v1", "configmaps"));
    Ok(story.cluster.api().get(&path)?["data"].clone())
}

/// Waits until a pod, which stays for its log, has ended with that code.
fn ends_with(story: &Story<'_>, pod: &str, code: i32) -> anyhow::Result<()> {
    let path = format!("{}/{pod}", story.path("/api/v1", "pods"));
    wait::until(PATIENCE, &format!("{pod} to end with {code}"), || {
        let pod = story.cluster.api().get(&path)?;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        Ok((ended["exitCode"] == code).then_some(()))
    })
}

/// What kube-batch promised is there, and filled.
fn contract(story: &Story<'_>, job: &Job<'_>) -> anyhow::Result<()> {
    ensure!(data(story, "tri-hostfile")?["hostfile"] == "tri-0\ntri-1\n");
    let filled = data(story, "tri-mpi-data")?;
    ensure!(filled["executor"] == "tri-0", "{filled}");
    let hosts = filled["hosts"].as_str().context("no hosts")?;
    ensure!(hosts.lines().count() == 2 && hosts.contains(" tri-1\n"), "{hosts}");
    let account = format!("system:serviceaccount:{}:tri-sa", story.namespace);
    for (verb, what, answer) in [
        ("get", "pods/tri-1", "yes"),
        ("create", "pods/exec", "no"),
        ("get", "secrets/tri-agent", "no"),
        ("list", "pods", "no"),
    ] {
        let words = ["auth", "can-i", verb, what, "--as", &account, "--namespace", story.namespace];
        let output = story.cluster.try_kubectl(&words)?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(said == answer, "{verb} {what}: {said}");
    }
    let policy = story.path("/apis/networking.k8s.io/v1", "networkpolicies/tri-agent");
    let spec = story.cluster.api().get(&policy)?["spec"].take();
    let own = json!({"matchLabels": {"unisono.dev/job-uid": job.object()?["metadata"]["uid"]}});
    ensure!(spec["podSelector"] == own, "{spec}");
    ensure!(spec["ingress"][0] == json!({"from": [{"podSelector": own}]}), "{spec}");
    let ports = spec["ingress"][1]["ports"].as_array().context("no ports")?;
    let is_agents = |it: &Value| {
        let bound = |key: &str| it[key].as_u64().unwrap_or_default();
        it["protocol"] == "TCP" && (bound("port")..=bound("endPort")).contains(&7711)
    };
    ensure!(!ports.is_empty() && !ports.iter().any(is_agents), "others reach agents: {spec}");
    Ok(())
}

/// Objects of somebody else that have the names of a job's own; where they are leaves.
fn obstacles(story: &Story<'_>, job: &str) -> anyhow::Result<Vec<String>> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"});
    let mut paths = Vec::new();
    for (api, plural, ending, fields) in [
        (rbac, "rolebindings", "rolebinding", json!({"roleRef": reference, "subjects": []})),
        ("/api/v1", "serviceaccounts", "sa", json!({})),
        (rbac, "roles", "role", json!({"rules": []})),
        (
            "/apis/networking.k8s.io/v1",
            "networkpolicies",
            "agent",
            json!({"spec": {"podSelector": {}}}),
        ),
    ] {
        let (all, name) = (story.path(api, plural), format!("{job}-{ending}"));
        let mut object = fields;
        object["metadata"] = json!({"name": name});
        story.cluster.api().create(&all, &object)?;
        paths.push(format!("{all}/{name}"));
    }
    Ok(paths)
}
