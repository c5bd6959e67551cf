//! Jobs on an API server that only keeps what it is given: what is asked of it, and what is left when a request fails.

use serde_json::{Value, json};
use unisono_engine::tick;
use unisono_plan::{Next, Stage, Time, Verdict, lay_out};

use crate::children::Children;
use crate::engine::{EngineError, KubernetesEngine};
use crate::fake::Server;
use crate::object::JobObject;
use crate::settings::{GangScheduler, Settings};
use crate::writes::WriteError;
use crate::{ApplyError, prior};

const PODS: &str = "/api/v1/namespaces/lab/pods";
const SECRETS: &str = "/api/v1/namespaces/lab/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/lab/configmaps";
const LAUNCHERS: &str = "/apis/batch/v1/namespaces/lab/jobs";
const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/lab/podgroups";
const MPI_JOBS: &str = "/apis/kubeflow.org/v2beta1/namespaces/lab/mpijobs";
const MPIS: &str = "/apis/scheduling.incubator.k8s.io/v1alpha1/namespaces/lab/mpis";

/// One job called `pi` and the server that has it.
struct Story {
    server: Server,
    /// Where its object is.
    jobs: &'static str,
    settings: Settings,
    /// Whether the last tick went through, as an operator remembers it.
    is_settled: bool,
    now: u64,
}

impl Story {
    fn new(workers: u32, change: impl FnOnce(&mut Value)) -> Self {
        let template = json!({"spec": {"containers": [
            {"name": "main", "image": "lab/pi:1", "command": ["mpirun", "/pi"]},
        ]}});
        let mut object = json!({
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "pi", "uid": "1", "generation": 1},
            "spec": {
                "runPolicy": {"cleanPodPolicy": "Running"},
                "mpiReplicaSpecs": {
                    "Launcher": {"template": template},
                    "Worker": {"replicas": workers, "template": {"spec": {"containers": [
                        {"name": "main", "image": "lab/pi:1"},
                    ]}}},
                },
            },
        });
        change(&mut object);
        Self::of(MPI_JOBS, object)
    }

    /// One of kube-batch's, of so many pods.
    fn of_kube_batch(pods: u32) -> Self {
        let template = json!({"spec": {"containers": [
            {"name": "main", "image": "lab/pi:1", "command": ["mpirun", "/pi"]},
        ]}});
        let object = json!({
            "apiVersion": "scheduling.incubator.k8s.io/v1alpha1",
            "kind": "MPI",
            "metadata": {"name": "pi", "uid": "1", "generation": 1},
            "spec": {"job": {"completions": pods, "parallelism": pods, "template": template}},
        });
        Self::of(MPIS, object)
    }

    fn of(jobs: &'static str, object: Value) -> Self {
        let server = Server::default();
        server.store().put(jobs, object);
        let settings = Settings::new("example.org/unisono:1");
        Self { server, jobs, settings, is_settled: false, now: 1_767_268_800_000 }
    }

    fn with_gang(self) -> Self {
        let settings = Settings { gang: GangScheduler::Volcano, ..self.settings };
        Self { settings, ..self }
    }

    /// Changes the job object as its user would.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut store = self.server.store();
        let mut object = store.get(&format!("{MPI_JOBS}/pi")).unwrap().clone();
        change(&mut object);
        let generation = object["metadata"]["generation"].as_u64().unwrap();
        object["metadata"]["generation"] = json!(generation + 1);
        store.put(MPI_JOBS, object);
    }

    async fn tick(&mut self) -> Result<Next, EngineError> {
        Ok(self.tick_and_tell().await?.0)
    }

    /// A tick, and how many pods it changed.
    async fn tick_and_tell(&mut self) -> Result<(Next, usize), EngineError> {
        self.now += 1_000;
        let client = self.server.client();
        let object = self.server.store().get(&format!("{}/pi", self.jobs)).unwrap().clone();
        let object = JobObject::new(object).unwrap();
        let job = object.read(&unisono_dialect::Options::default()).job.unwrap();
        let plan = lay_out(&job, &object.facts(&self.settings), object.generation());
        let children = Children::list(&client, &object).await.unwrap();
        let before = prior(&plan, &object, &children);
        let engine = KubernetesEngine::new(client, self.settings.clone(), object, children);
        let mut engine = engine.settled(std::mem::take(&mut self.is_settled));
        let next = tick(&mut engine, &plan, &before, Time(self.now)).await?.next;
        self.is_settled = true;
        Ok((next, engine.changed().len()))
    }

    /// Gives every pod an address and lets its container run, as a kubelet would; `ends` are over with this code.
    fn kubelet(&self, ends: &str, code: i32) {
        let mut store = self.server.store();
        let names: Vec<String> = store.names(PODS).into_iter().map(str::to_owned).collect();
        for (name, last) in names.iter().zip(1..) {
            let mut pod = store.get(&format!("{PODS}/{name}")).unwrap().clone();
            let (phase, state) = if name.starts_with(ends) && !ends.is_empty() {
                let phase = if code == 0 { "Succeeded" } else { "Failed" };
                (phase, json!({"terminated": {"exitCode": code}}))
            } else {
                ("Running", json!({"running": {}}))
            };
            pod["spec"]["nodeName"] = json!("node-1");
            pod["status"] = json!({
                "phase": phase, "podIP": format!("10.0.0.{last}"),
                "containerStatuses": [{"name": "main", "state": state}],
            });
            store.put(PODS, pod);
        }
    }

    /// Brings the job to where its command runs.
    async fn run(&mut self) {
        self.tick().await.unwrap();
        self.kubelet("", 0);
        let next = self.tick().await.unwrap();
        assert_eq!(next.status.stage, Stage::Running);
        self.tick().await.unwrap();
    }

    fn writes(&self) -> Vec<String> {
        self.server.store().writes()
    }
}

fn is_waiting(fault: &EngineError) -> bool {
    matches!(fault, EngineError::Apply(ApplyError::Write(WriteError::Predecessor { .. })))
}

fn condition(kind: &str) -> Value {
    let at = "2026-01-01T12:00:00Z";
    json!({
        "type": kind, "status": "True", "reason": format!("MPIJob{kind}"), "message": "m",
        "lastUpdateTime": at, "lastTransitionTime": at,
    })
}

#[tokio::test]
async fn a_job_that_waited_with_another_operator_gets_its_own_keys_and_its_own_launcher() {
    let mut story = Story::new(1, |job| {
        job["status"] = json!({"conditions": [condition("Created"), condition("Suspended")]});
    });
    let owners = json!([{"apiVersion": "x", "kind": "MPIJob", "name": "pi", "uid": "1"}]);
    let metadata =
        |name: &str| json!({"name": name, "labels": {"app": "pi"}, "ownerReferences": owners});
    {
        let mut store = story.server.store();
        let keys = json!({"ssh-privatekey": "x", "ssh-publickey": "y"});
        store.put(SECRETS, json!({"metadata": metadata("pi-ssh"), "stringData": keys}));
        store.put(
            CONFIG_MAPS,
            json!({"metadata": metadata("pi-config"), "data": {"hostfile": "as it was"}}),
        );
        store.put(
            LAUNCHERS,
            json!({"metadata": metadata("pi-launcher"), "spec": {"suspend": true}}),
        );
    }
    let object = story.server.store().get(&format!("{MPI_JOBS}/pi")).unwrap().clone();
    let object = JobObject::new(object).unwrap();
    Children::adopt(&story.server.client(), &object).await.unwrap();

    let waits = story.tick().await.unwrap_err();
    assert!(is_waiting(&waits), "{waits:?}");
    assert!(
        story.server.store().names(LAUNCHERS).is_empty(),
        "its controller would remove our pods"
    );
    story.tick().await.unwrap();
    let store = story.server.store();
    let agent = store.get(&format!("{SECRETS}/pi-agent")).unwrap();
    assert!(agent["stringData"]["launcher.key"].is_string());
    let ssh = store.get(&format!("{SECRETS}/pi-ssh")).unwrap();
    assert_eq!(ssh["stringData"]["ssh-privatekey"], "x", "ranks of others may use it");
    let config = store.get(&format!("{CONFIG_MAPS}/pi-config")).unwrap();
    assert_ne!(config["data"]["hostfile"], "as it was");
    let launcher = store.get(&format!("{LAUNCHERS}/pi-launcher")).unwrap();
    assert_eq!(launcher["spec"]["managedBy"], "unisono.dev/operator");
    assert_eq!(store.names(PODS).len(), 2);
}

#[tokio::test]
async fn what_a_tick_changed_is_known_after_it() {
    let mut story = Story::new(2, |_| {});
    assert_eq!(story.tick_and_tell().await.unwrap().1, 0, "pods that are made are told otherwise");
    story.kubelet("", 0);
    assert_eq!(story.tick_and_tell().await.unwrap().1, 1, "its launcher was let go");
    assert_eq!(story.tick_and_tell().await.unwrap().1, 0, "nothing was left to do");
    story.kubelet("pi-launcher", 0);
    assert_eq!(story.tick_and_tell().await.unwrap().1, 2, "its workers were deleted");
}

#[tokio::test]
async fn a_launcher_whose_job_went_before_it_is_waited_for() {
    let mut story = Story::new(1, |_| {});
    // The earlier job of this name was struck out by the garbage collector, its launcher Job is gone.
    let owners =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "uid": "0"}]);
    let pod = json!({"metadata": {"name": "pi-launcher", "ownerReferences": owners}});
    story.server.store().put(PODS, pod);
    let waits = story.tick().await.unwrap_err();
    assert!(is_waiting(&waits), "{waits:?}");
    story.server.store().remove(&format!("{PODS}/pi-launcher"));
    story.tick().await.unwrap();
    assert_eq!(story.server.store().names(PODS), ["pi-launcher", "pi-worker-0"]);
}

#[tokio::test]
async fn a_launcher_job_that_no_watch_shows_is_not_taken_for_ours() {
    let mut story = Story::new(1, |_| {});
    let owners = json!([{"apiVersion": "x", "kind": "MPIJob", "name": "pi", "uid": "1"}]);
    let metadata =
        json!({"name": "pi-launcher", "labels": {"app": "pi"}, "ownerReferences": owners});
    story.server.store().put(LAUNCHERS, json!({"metadata": metadata}));
    story.tick().await.unwrap_err();
    story.tick().await.unwrap();
    let store = story.server.store();
    let launcher = store.get(&format!("{LAUNCHERS}/pi-launcher")).unwrap();
    assert_eq!(launcher["spec"]["managedBy"], "unisono.dev/operator");
}

#[tokio::test]
async fn a_suspended_job_keeps_no_launcher_job_of_another_operator() {
    let mut story = Story::new(1, |job| {
        job["spec"]["runPolicy"]["suspend"] = json!(true);
        job["status"] = json!({"conditions": [condition("Created"), condition("Suspended")]});
    });
    let owners = json!([{"apiVersion": "x", "kind": "MPIJob", "name": "pi", "uid": "1"}]);
    let labels = json!({"unisono.dev/job-uid": "1"});
    let metadata = json!({"name": "pi-launcher", "labels": labels, "ownerReferences": owners});
    story.server.store().put(LAUNCHERS, json!({"metadata": metadata, "spec": {"suspend": true}}));
    story.tick().await.unwrap();
    assert!(story.server.store().names(LAUNCHERS).is_empty());
}

#[tokio::test]
async fn all_workers_of_an_ended_job_go_by_one_request() {
    let mut story = Story::new(8, |_| {});
    story.run().await;
    story.writes();
    story.kubelet("pi-launcher", 0);
    let next = story.tick().await.unwrap();
    assert_eq!(next.status.end().map(|it| it.verdict), Some(Verdict::Succeeded));
    let deletions: Vec<String> =
        story.writes().into_iter().filter(|it| it.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 1, "{deletions:?}");
    assert!(deletions[0].starts_with(&format!("DELETE {PODS}?")), "{deletions:?}");
    assert_eq!(story.server.store().names(PODS), ["pi-launcher"]);
    story.tick().await.unwrap();
    story.writes();
    story.tick().await.unwrap();
    assert_eq!(story.writes(), [""; 0], "nothing is left to do");
}

#[tokio::test]
async fn a_worker_that_has_ended_stays_where_only_running_ones_go() {
    let mut story = Story::new(4, |job| {
        job["spec"]["runPolicy"]["cleanPodPolicy"] = json!("Running");
    });
    story.run().await;
    story.kubelet("pi-worker-2", 1);
    {
        // It failed in the same moment as the launcher ended.
        let mut store = story.server.store();
        let mut launcher = store.get(&format!("{PODS}/pi-launcher")).unwrap().clone();
        launcher["status"]["phase"] = json!("Succeeded");
        launcher["status"]["containerStatuses"] =
            json!([{"name": "main", "state": {"terminated": {"exitCode": 0}}}]);
        store.put(PODS, launcher);
    }
    story.tick().await.unwrap();
    assert_eq!(story.server.store().names(PODS), ["pi-launcher", "pi-worker-2"]);
}

#[tokio::test]
async fn a_gang_that_could_not_be_removed_is_removed_by_the_next_look() {
    // Even where nothing else is left to be done, and whatever kept it from being removed.
    for code in [500, 409] {
        let mut story = Story::new(1, |_| {}).with_gang();
        story.run().await;
        assert_eq!(story.server.store().names(GROUPS), ["pi"]);
        story.kubelet("pi-", 0);
        story.server.store().fault = Some(("DELETE /apis/scheduling", code));
        story.tick().await.unwrap_err();
        assert_eq!(story.server.store().names(GROUPS), ["pi"]);
        story.tick().await.unwrap();
        assert!(story.server.store().names(GROUPS).is_empty());
        story.tick().await.unwrap();
        story.writes();
        story.tick().await.unwrap();
        assert_eq!(story.writes(), [""; 0], "nothing is left to do");
    }
}

#[tokio::test]
async fn a_gang_of_somebody_else_stays() {
    let mut story = Story::new(1, |_| {}).with_gang();
    story.run().await;
    let foreign = json!({"metadata": {"name": "pi", "uid": "foreign"}, "spec": {"minMember": 1}});
    story.server.store().put(GROUPS, foreign);
    story.kubelet("pi-launcher", 0);
    story.tick().await.unwrap();
    assert_eq!(story.server.store().names(GROUPS), ["pi"]);
}

#[tokio::test]
async fn a_job_that_shrinks_takes_its_gang_and_its_host_file_along_whatever_fails() {
    for fault in [
        "PATCH /api/v1/namespaces/lab/configmaps",
        "PATCH /apis/scheduling",
        "DELETE /api/v1/namespaces/lab/pods",
    ] {
        let mut story = Story::new(3, |_| {}).with_gang();
        story.run().await;
        story.edit(|job| job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(2));
        story.server.store().fault = Some((fault, 500));
        story.tick().await.unwrap_err();
        story.tick().await.unwrap();
        story.tick().await.unwrap();
        let store = story.server.store();
        assert_eq!(store.get(&format!("{GROUPS}/pi")).unwrap()["spec"]["minMember"], 3, "{fault}");
        let files = &store.get(&format!("{CONFIG_MAPS}/pi-config")).unwrap()["data"];
        assert!(!files["hostfile"].as_str().unwrap().contains("pi-worker-2"), "{fault}: {files}");
        assert_eq!(store.names(PODS), ["pi-launcher", "pi-worker-0", "pi-worker-1"], "{fault}");
    }
}

#[tokio::test]
async fn a_worker_that_vanished_before_the_job_shrank_is_forgotten_too() {
    let mut story = Story::new(3, |_| {}).with_gang();
    story.run().await;
    story.server.store().remove(&format!("{PODS}/pi-worker-2"));
    story.edit(|job| job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(2));
    story.tick().await.unwrap();
    let store = story.server.store();
    assert_eq!(store.get(&format!("{GROUPS}/pi")).unwrap()["spec"]["minMember"], 3);
    let files = &store.get(&format!("{CONFIG_MAPS}/pi-config")).unwrap()["data"];
    assert!(!files["hostfile"].as_str().unwrap().contains("pi-worker-2"), "{files}");
}

#[tokio::test]
async fn every_pod_of_kube_batch_is_shown_its_filled_files_before_the_command_is_let_go() {
    let mut story = Story::of_kube_batch(3);
    story.tick().await.unwrap();
    story.kubelet("", 0);
    story.writes();
    // One that cannot be shown them keeps the command waiting; those that were shown them are left alone.
    story.server.store().fault = Some(("PATCH /api/v1/namespaces/lab/pods/pi-2", 500));
    story.tick().await.unwrap_err();
    let path = |write: &String| write.split('?').next().unwrap().to_owned();
    let paths = |writes: Vec<String>| writes.iter().map(path).collect::<Vec<_>>();
    let first = paths(story.writes());
    let nth = |end: &str| first.iter().position(|it| it.ends_with(end));
    assert!(nth("configmaps/pi-mpi-data") < nth("pods/pi-1"), "{first:?}");
    assert!(nth("configmaps/pi-hostfile") < nth("pods/pi-1"), "{first:?}");
    assert_eq!(nth("pods/pi-0"), None, "{first:?}");
    story.tick().await.unwrap();
    let mut second = paths(story.writes());
    second.retain(|it| it.starts_with("PATCH /api/v1/namespaces/lab/pods"));
    assert_eq!(second, [format!("PATCH {PODS}/pi-2"), format!("PATCH {PODS}/pi-0")]);
    story.tick().await.unwrap();
    story.writes();
    story.tick().await.unwrap();
    assert_eq!(story.writes(), [""; 0], "nothing is left to do");
}
