//! The loop: what watches see goes into the world and the queue, what is due is looked at, many jobs at once.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures::{FutureExt, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout};
use unisono_k8s::slim::{Job, Pod};
use unisono_k8s::{Settings, limited};

use super::fresh::Fresh;
use super::key::Key;
use super::memory::Memory;
use super::queue::{DEBOUNCE, Queue};
use super::serve::Health;
use super::work::Worker;
use super::world::{Seen, Snapshot, World};
use super::{RunError, RunOptions};
use crate::allocator::give_back;
use crate::resources::{RESOURCES, Resource};

/// The pods and Jobs of MPI jobs, whichever operator made them. Nothing else is ever read.
const CHILDREN: &str = "training.kubeflow.org/operator-name in (mpi-operator,mpijob-controller)";

/// Objects of one page of a list: a page is in memory as a whole.
const PAGE: u32 = 50;

/// The longest pause after looks at a job that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What runs all jobs.
pub(crate) struct Controller {
    world: World,
    queue: Queue<Key>,
    memories: HashMap<Key, Memory>,
    /// The jobs whose memories may hold objects that were read.
    known: Fresh<Key>,
    watches: SelectAll<BoxStream<'static, Result<Seen, watcher::Error>>>,
    working: FuturesUnordered<BoxFuture<'static, Done>>,
    worker: Arc<Worker>,
    health: Arc<Health>,
    workers: usize,
    longest_look: Duration,
}

/// A look at a job that is over.
struct Done {
    key: Key,
    memory: Memory,
    /// When to look again.
    again: Option<Instant>,
}

impl Controller {
    pub(crate) async fn new(
        client: Client,
        options: RunOptions,
        health: Arc<Health>,
    ) -> Result<Self, RunError> {
        let gang = options.gang.scheduler(&client).await;
        let gang = gang.map_err(|error| RunError::Cluster(Box::new(error)))?;
        tracing::info!(?gang, "gang scheduler");
        let settings = Settings {
            image_pull_policy: options.image_pull_policy.clone(),
            cluster_domain: options.cluster_domain.clone(),
            gang,
            network_policy: options.network_policy,
            image_patience: options.image_patience,
            ..Settings::new(options.image.clone())
        };
        let namespace = options.only_namespace.as_deref();
        Ok(Self {
            world: World::default(),
            queue: Queue::default(),
            memories: HashMap::new(),
            known: Fresh::default(),
            watches: watches(&client, namespace),
            working: FuturesUnordered::new(),
            worker: Arc::new(Worker::new(
                limited(client),
                settings,
                options.reading,
                health.clone(),
            )),
            health,
            workers: options.workers,
            longest_look: options.longest_look,
        })
    }

    /// Runs jobs for ever.
    pub(crate) async fn run(&mut self) {
        loop {
            self.begin_what_is_due();
            let due = self.queue.next_due().filter(|_| self.working.len() < self.workers);
            tokio::select! {
                Some(seen) = self.watches.next() => self.take(seen),
                Some(done) = self.working.next() => self.end(done),
                () = until(due) => {}
                () = until(self.known.next_turn()) => {
                    let stale = self.known.stale(Instant::now());
                    self.forget_what_was_read(stale);
                    give_back();
                }
            }
        }
    }

    /// Waits for what is under way.
    pub(crate) async fn finish(&mut self, grace: Duration) {
        let all = async { while self.working.next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            tracing::warn!("looks at jobs are cut short; the next operator goes on with them");
        }
    }

    fn take(&mut self, seen: Result<Seen, watcher::Error>) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(%error, "a watch was cut; it begins again");
                return;
            }
        };
        let due = Instant::now() + DEBOUNCE;
        for key in self.world.take(seen) {
            self.queue.add(&key, due);
        }
        let jobs = i64::try_from(self.world.jobs()).unwrap_or(i64::MAX);
        self.health.metrics.jobs.set(jobs);
        if self.world.is_complete() {
            self.health.set_ready(true);
        }
    }

    fn begin_what_is_due(&mut self) {
        let now = Instant::now();
        // Before all lists are through, what exists of a job would seem to be missing.
        while self.world.is_complete() && self.working.len() < self.workers {
            let Some(key) = self.queue.next(now) else { break };
            let Some(snapshot) = self.world.snapshot(&key) else {
                if let Some(memory) = self.memories.remove(&key) {
                    self.worker.forget(&key, &memory);
                }
                self.queue.done(&key);
                continue;
            };
            let memory = self.memories.remove(&key).unwrap_or_default();
            let memory = memory.about(&snapshot.kept.uid);
            let worker = Arc::clone(&self.worker);
            self.working.push(look(worker, key, snapshot, memory, self.longest_look).boxed());
        }
        let depth = i64::try_from(self.queue.depth(now)).unwrap_or(i64::MAX);
        self.health.metrics.queue_depth.set(depth);
    }

    fn end(&mut self, done: Done) {
        let Done { key, memory, again } = done;
        self.queue.done(&key);
        if memory.failures > 0 {
            // Enough to reach the longest pause, and no more than a number of milliseconds can hold.
            let pause = Duration::from_millis(100) * 2_u32.pow(memory.failures.min(10));
            self.queue.add(&key, Instant::now() + pause.min(LONGEST_PAUSE));
        } else if let Some(at) = again {
            self.queue.add(&key, at);
        }
        if memory.known.is_some() {
            let stale = self.known.note(key.clone(), Instant::now());
            self.forget_what_was_read(stale);
        }
        self.memories.insert(key, memory);
    }

    /// Forgets the objects of these jobs; who needs one reads it again.
    fn forget_what_was_read(&mut self, stale: HashSet<Key>) {
        for key in stale {
            if let Some(memory) = self.memories.get_mut(&key) {
                memory.known = None;
            }
        }
    }
}

/// A look at one job. Should it panic or never end, that is this job's failure and nobody else's.
async fn look(
    worker: Arc<Worker>,
    key: Key,
    snapshot: Snapshot,
    mut memory: Memory,
    longest: Duration,
) -> Done {
    let left = memory.after_failure();
    let looked = AssertUnwindSafe(async {
        let again = worker.look(&key, snapshot, &mut memory).await;
        (again, memory)
    });
    let memory = match timeout(longest, looked.catch_unwind()).await {
        Ok(Ok((again, memory))) => return Done { key, memory, again },
        Ok(Err(_panic)) => {
            tracing::error!(job = %key, "a look at a job panicked; please report it");
            left.after_panic()
        }
        Err(_elapsed) => {
            tracing::error!(job = %key, "the API server does not answer; a look is given up");
            left
        }
    };
    Done { key, memory, again: None }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

type Watch = BoxStream<'static, Result<Seen, watcher::Error>>;

fn watches(client: &Client, namespace: Option<&str>) -> SelectAll<Watch> {
    let everything = watcher::Config::default().page_size(PAGE);
    let children = everything.clone().labels(CHILDREN);
    let mut all = vec![
        watch(namespaced::<Pod>(client, namespace), children.clone(), Seen::Pod),
        watch(namespaced::<Job>(client, namespace), children, Seen::Job),
    ];
    for (at, resource) in RESOURCES.iter().enumerate() {
        let kind = stored_version(resource);
        let objects: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
            None => Api::all_with(client.clone(), &kind),
        };
        all.push(watch(objects, everything.clone(), move |event| Seen::Object(at, event)));
    }
    futures::stream::select_all(all)
}

fn namespaced<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    seen: impl Fn(watcher::Event<K>) -> Seen + Send + 'static,
) -> Watch
where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    watcher(api, config).default_backoff().map(move |event| event.map(&seen)).boxed()
}

/// Jobs are watched in the version they are stored in: that is the cheapest, and all versions show the same.
fn stored_version(resource: &Resource) -> ApiResource {
    let stored = resource.versions.iter().find(|version| version.stored);
    let version = stored.map_or("", |version| version.name);
    ApiResource {
        group: resource.group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{}/{version}", resource.group),
        kind: resource.kind.to_owned(),
        plural: resource.plural.to_owned(),
    }
}
