//! A cluster with one job in it, and whoever looks after the job.

use http::Method;
use kube::Client;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use unisono_dialect::Options;
use unisono_engine::{Clock, Recorded, tick};
use unisono_plan::{Time, lay_out};

use super::acts::{Life, What};
use super::cluster;
use super::fault::{Asking, Fault, Way};
use super::jobs::Kind;
use super::watch::Watch;
use crate::fake::{Server, Store};
use crate::{Children, JobObject, KubernetesEngine, marks, prior};

/// When every life begins, in milliseconds since 1970.
pub(super) const BEGINNING: u64 = 1_767_268_800_000;

/// More looks than any life takes.
const MOST_LOOKS: usize = 400;

const NAME: &str = "pi";
/// The name of everything that belongs to somebody else.
pub(super) const FOREIGN: &str = "foreign";

/// All there is.
pub(super) struct World {
    pub(super) server: Server,
    kind: Kind,
    now: Time,
    looks: usize,
    pub(super) memory: Memory,
    /// What the next look sees, where that is not what there is.
    late: Option<Server>,
}

/// What is remembered beside what is stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Whether the last look went through, as an operator remembers it.
    is_settled: bool,
    /// Whether nothing was left to do for whoever remembers that.
    is_quiet: bool,
    /// Whether the next look sees what there was.
    is_late: bool,
    /// How often a job of the name was submitted.
    submitted: u32,
    watch: Watch,
}

struct At(Time);

impl Clock for At {
    fn now(&self) -> Time {
        self.0
    }
}

/// What a look came to.
struct Looked {
    went_through: bool,
    wake_at: Option<Time>,
}

impl World {
    pub(super) fn new(life: &Life) -> Self {
        let server = Server::default();
        server.store().lingers = true;
        let kind = life.kind.clone();
        let (now, memory) = (Time(BEGINNING), Memory::default());
        let world = Self { server, kind, now, looks: 0, memory, late: None };
        world.settle_others();
        world
    }

    /// Another world that is the same.
    pub(super) fn fork(&self) -> Self {
        let mut store = self.server.store().clone();
        store.requests.clear();
        Self {
            server: store.into(),
            kind: self.kind.clone(),
            now: self.now,
            looks: 0,
            memory: self.memory.clone(),
            late: None,
        }
    }

    /// Puts another job there, with what belongs to it, as like ours as can be.
    fn settle_others(&self) {
        let mut store = self.server.store();
        let owners = json!([{"apiVersion": "x", "kind": "MPIJob", "name": NAME, "uid": FOREIGN}]);
        let labels = json!({
            marks::JOB_UID: FOREIGN, marks::MEMBER: "1.0", marks::EPOCH: "0", "mpi-job-role": "worker",
            "training.kubeflow.org/job-name": NAME,
        });
        let metadata = json!({"name": FOREIGN, "labels": labels, "ownerReferences": owners});
        let status = json!({"phase": "Running"});
        let spec = json!({"nodeName": "node-1", "minMember": 1});
        for collection in [cluster::PODS, cluster::GROUPS, "/apis/batch/v1/namespaces/lab/jobs"] {
            store.put(collection, json!({"metadata": metadata, "spec": spec, "status": status}));
        }
        store.put(&self.collection(), json!({"metadata": {"name": FOREIGN, "uid": FOREIGN}}));
    }

    fn collection(&self) -> String {
        let Kind { resource, .. } = &self.kind;
        format!("/apis/{}/namespaces/lab/{}", resource.api_version(), resource.plural)
    }

    fn path(&self) -> String {
        format!("{}/{NAME}", self.collection())
    }

    /// Where the job is in its life, as its status says.
    pub(super) fn stage(&self) -> String {
        let store = self.server.store();
        let Some(object) = store.get(&self.path()) else {
            let left = store.all().keys().filter(|path| !path.ends_with(FOREIGN));
            return left.fold("gone".to_owned(), |gone, left| format!("{gone} but for {left}"));
        };
        match &object["status"]["unisono"]["stage"] {
            Value::String(stage) => stage.clone(),
            stage => stage.as_object().unwrap().keys().next().unwrap().clone(),
        }
    }

    /// Lets something happen to the job; what keeps it from happening leaves.
    pub(super) fn act(&mut self, what: &What) -> Result<(), String> {
        let (path, now) = (self.path(), self.now);
        if let What::AtOnce(all) = what {
            return all.iter().try_for_each(|what| self.act(what));
        }
        let mut store = self.server.store();
        let (commands, workers): (Vec<_>, Vec<_>) =
            cluster::running(&store).into_iter().partition(|path| runs_command(&store, path));
        let command = commands.first().ok_or("no command runs");
        let worker = workers.last().ok_or("no worker runs");
        match what {
            What::AtOnce(_) => {}
            What::Submit(changes) => {
                self.memory.submitted += 1;
                let uid = format!("job-{}", self.memory.submitted);
                let mut object = json!({
                    "apiVersion": self.kind.resource.api_version(),
                    "kind": self.kind.resource.kind,
                    "metadata": {"name": NAME, "uid": uid, "generation": 1},
                    "spec": self.kind.spec,
                });
                set(&mut object, changes);
                store.put(&self.collection(), object);
            }
            What::Edit(changes) => store.change(&path, |object| {
                let spec = object["spec"].clone();
                set(object, changes);
                let generation = object["metadata"]["generation"].as_u64().unwrap();
                let generation = generation + u64::from(object["spec"] != spec);
                object["metadata"]["generation"] = json!(generation);
            }),
            What::End(code) => cluster::end(&mut store, command?, *code, now),
            What::EndWorkers(code) => {
                workers.iter().for_each(|path| cluster::end(&mut store, path, *code, now));
            }
            What::LoseWorker => cluster::lose(&mut store, worker?, now),
            What::RemoveWorker => store.delete(worker?, true),
            What::Delete => store.delete(&path, false),
        }
        Ok(())
    }

    /// Looks at the job, and lets everybody else move; whether nothing moves any more leaves, and what was asked for.
    pub(super) async fn look(
        &mut self,
        trouble: Option<(usize, Fault)>,
    ) -> (Result<bool, String>, Vec<Asking>) {
        self.now = self.now.after_seconds(1);
        self.looks += 1;
        let late = trouble.filter(|(_, fault)| fault.is_seen_late).map(|_| self.fork().server);
        let way = Way::new(trouble, self.memory.watch.clone());
        let looked = self.tick(way.client(&self.server)).await;
        let saw_it_all = self.late.is_none();
        (self.memory.is_late, self.late) = (late.is_some(), late);
        let (asked, watch) = way.passed();
        let write = asked.iter().find(|it| it.method != Method::GET);
        self.memory.watch = watch;
        let was_settled = std::mem::replace(&mut self.memory.is_settled, looked.went_through);
        let moved = cluster::turn(&mut self.server.store(), self.now);
        let was_quiet = std::mem::take(&mut self.memory.is_quiet);
        if let Some(write) = write.filter(|_| was_quiet) {
            self.memory.watch.violations.push(format!("what was left for a new process: {write}"));
        }
        let is_quiet = looked.went_through && saw_it_all && write.is_none() && !moved;
        let rests = match looked.wake_at.filter(|at| is_quiet && *at > self.now) {
            Some(at) => {
                self.now = at;
                Ok(false)
            }
            // A process that has just begun must find nothing to do either.
            None if is_quiet && was_settled => {
                (self.memory.is_quiet, self.memory.is_settled) = (true, false);
                Ok(false)
            }
            None => Ok(is_quiet),
        };
        let rests = match self.memory.watch.violations.first() {
            Some(violation) => Err(violation.clone()),
            None if self.looks > MOST_LOOKS => Err(format!("no rest after {MOST_LOOKS} looks")),
            None => rests,
        };
        (rests, asked)
    }

    /// One look from what is stored, as a process that keeps nothing takes it.
    async fn tick(&self, client: Client) -> Looked {
        let failed = Looked { went_through: false, wake_at: None };
        let api = self.kind.resource.api_resource();
        let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), "lab", &api);
        let object = match jobs.get_opt(NAME).await {
            Ok(Some(object)) => JobObject::from_dynamic(&object).unwrap(),
            Ok(None) => return Looked { went_through: true, wake_at: None },
            Err(_) => return failed,
        };
        let reading = object.read(&Options::default());
        let job = reading.job.unwrap_or_else(|| panic!("not read: {:?}", reading.notes));
        let plan = lay_out(&job, &object.facts(&self.kind.settings), object.generation());
        let seen = self.late.as_ref().map_or_else(|| client.clone(), Server::client);
        let Ok(children) = Children::list(&seen, &object).await else { return failed };
        let before = prior(&plan, &object, &children);
        let engine = KubernetesEngine::new(client, self.kind.settings.clone(), object, children);
        let mut engine = engine.settled(self.memory.is_settled);
        engine.clock = Box::new(At(self.now));
        match tick(&mut engine, &plan, &before, self.now).await {
            Ok(ticked) => Looked {
                went_through: ticked.recorded == Recorded::Written,
                wake_at: ticked.next.wake_at,
            },
            Err(_) => failed,
        }
    }
}

fn runs_command(store: &Store, path: &str) -> bool {
    store.get(path).is_some_and(|pod| !pod["metadata"]["annotations"][marks::RELEASED].is_null())
}

/// Puts values at places whose parents are there.
fn set(object: &mut Value, changes: &[(&str, Value)]) {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value.clone();
    }
}
