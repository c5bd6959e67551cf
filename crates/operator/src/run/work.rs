//! One look at one job: what was seen of it enters, writes to the cluster and the moment of the next look leave.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::Instant;
use unisono_engine::{Clock, Engine, Recorded, SystemClock, carry_out, decide};
use unisono_job::{Dialect, Note, Severity};
use unisono_k8s::{
    ApplyError, Before, Children, EngineError, JobObject, KubernetesEngine, ListError, Resource,
    Settings, WriteError, kubeflow, prior, told_why,
};
use unisono_plan::conditions::{Happening, happenings, warnings};
use unisono_plan::notes::codes::SLOTS_IDLE;
use unisono_plan::{Plan, Status, Time, Why, lay_out};

use super::key::Key;
use super::serve::Health;
use super::world::Snapshot;
use super::{events, refusal};

/// A change of mere counts waits this long for the next one, so that many pods that come up one by one cost few writes.
const COALESCE: Duration = Duration::from_secs(1);

/// Pods that go are told this often: nobody acts on how many are left.
const COALESCE_AT_THE_END: Duration = Duration::from_secs(10);

/// How long to wait for the watches to show what was just written.
const CATCH_UP: Duration = Duration::from_secs(10);

/// How soon to look again when the job was changed by somebody else meanwhile.
const CATCH_UP_LOOK: Duration = Duration::from_millis(20);

/// How often to look whether the objects of an earlier job of the same name are gone: not all of them are watched.
const PREDECESSOR_LOOK: Duration = Duration::from_millis(500);

/// The most warnings about one file that are told as events.
const MOST_WARNINGS: usize = 5;

/// What is remembered of a job between two looks. Nothing is lost with it but a few requests.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The uid of the object that it is about: the next one of the same name is another job.
    uid: String,
    /// Looks in a row that failed.
    pub(crate) failures: u32,
    /// When the status was last written.
    written: Option<Instant>,
    /// What the watches must show before another look makes sense.
    expected: Option<Expected>,
    /// Whether the last look panicked, and nobody was told yet.
    panicked: bool,
    /// Whether what another operator began was looked for.
    adopted: bool,
    /// What is in the way, as it was last told.
    trouble: Option<String>,
    /// The name of the launcher under which metrics know the job.
    launcher: Option<String>,
    /// Whether the last tick went through.
    is_settled: bool,
}

/// What was just written, and is not seen yet.
#[derive(Debug)]
struct Expected {
    /// The version of the object that was written over.
    old_version: Option<String>,
    /// The uids of pods that were made, or of what was marked.
    uids: Vec<String>,
    /// Pods that were changed or deleted.
    changed: Vec<Before>,
    until: Instant,
}

/// Looks at jobs.
pub(crate) struct Worker {
    client: Client,
    settings: Settings,
    reading: unisono_dialect::Options,
    health: Arc<Health>,
}

impl Worker {
    pub(crate) const fn new(
        client: Client,
        settings: Settings,
        reading: unisono_dialect::Options,
        health: Arc<Health>,
    ) -> Self {
        Self { client, settings, reading, health }
    }

    /// Looks at a job and does what is wanted; tells when to look again even if nothing happens.
    pub(crate) async fn look(&self, snapshot: Snapshot, memory: &mut Memory) -> Option<Instant> {
        let (namespace, name) =
            (snapshot.object.namespace().to_owned(), snapshot.object.name().to_owned());
        let begun = Instant::now();
        if std::mem::take(&mut memory.panicked) {
            self.tell_panic(&snapshot.object).await;
        }
        let result = self.try_look(snapshot, memory).await;
        self.health.metrics.reconciled_in(begun.elapsed());
        match result {
            Ok(again) => {
                memory.failures = 0;
                again
            }
            Err(error) if error.passes_by_itself() => {
                tracing::debug!(namespace, name, why = chain(&error), "waiting");
                memory.failures = 0;
                Some(Instant::now() + PREDECESSOR_LOOK)
            }
            Err(error) => {
                memory.failures += 1;
                self.health.metrics.errors.inc();
                tracing::warn!(
                    namespace,
                    name,
                    error = chain(&error),
                    memory.failures,
                    "a look failed"
                );
                None
            }
        }
    }

    /// Tells whose job it is that the last look at it panicked: nobody else would say why nothing happens.
    async fn tell_panic(&self, object: &JobObject) {
        let happening = Happening {
            is_warning: true,
            reason: "InternalError".to_owned(),
            message: "The operator failed on this job by a fault of its own, which its log shows; it tries again, ever more slowly."
                .to_owned(),
        };
        events::tell(&self.client, object, None, &[happening], SystemClock.now()).await;
    }

    /// Forgets a job that is gone.
    pub(crate) fn forget(&self, key: &Key, memory: &Memory) {
        if let Some(launcher) = &memory.launcher {
            self.health.metrics.gone(&key.namespace, launcher);
        }
    }

    async fn try_look(
        &self,
        snapshot: Snapshot,
        memory: &mut Memory,
    ) -> Result<Option<Instant>, LookError> {
        let Snapshot { object, mut children } = snapshot;
        children.refused.clone_from(&memory.trouble);
        if object.is_going() {
            return Ok(None);
        }
        if let Some(later) = memory.not_caught_up(&object, &children) {
            return Ok(Some(later));
        }
        let now = SystemClock.now();
        let reading = object.read(&self.reading);
        let resource = reading.dialect.and_then(|dialect| object.resource(dialect));
        let resource = resource.unwrap_or(kubeflow("v2beta1"));
        let Some(job) = reading.job else {
            self.refuse(&object, &resource, &reading.notes, now).await?;
            return Ok(None);
        };
        let plan = lay_out(&job, &object.facts(&self.settings), object.generation());
        let prior = prior(&plan, &object, &children);
        let told = told_why(&object);
        let (old_version, old_pods) =
            (object.resource_version().map(str::to_owned), children.pods.clone());
        let engine =
            KubernetesEngine::new(self.client.clone(), self.settings.clone(), object, children);
        let mut engine = engine.settled(memory.is_settled);
        let next = decide(&mut engine, &plan, &prior, now).await?;
        if matches!(next.why.as_slice(), [Why::ManagedElsewhere { .. }]) {
            return Ok(None);
        }
        if engine.object().is_inherited() && !memory.adopted {
            return self.adopt(engine.object(), memory).await.map(Some);
        }
        let unchanged = next.status == prior && engine.has_told(&next.why);
        if let Some(later) = memory.written.map(|written| written + patience(&next.status))
            && !unchanged
            && only_counts_differ(&prior, &next.status)
            && Instant::now() < later
        {
            return Ok(Some(later));
        }
        memory.is_settled = false;
        let ticked = match carry_out(&mut engine, &plan, &prior, next, now).await {
            Ok(ticked) => ticked,
            Err(error) => {
                // What was written down before the fault is told, too: the next look finds nothing new about it.
                let status = unisono_k8s::prior(&plan, engine.object(), engine.children());
                let object = engine.object();
                let news = news(&plan, &prior, &status, &reading.notes);
                self.tell(object, &resource, &news, now).await;
                self.count(&plan, &prior, &status, memory);
                self.tell_trouble(object, &resource, &error, memory, now).await;
                return Err(error.into());
            }
        };
        memory.trouble = None;
        if ticked.recorded == Recorded::Outdated {
            return Ok(Some(Instant::now() + CATCH_UP_LOOK));
        }
        memory.is_settled = true;
        memory.expect(&engine, old_version, &old_pods, unchanged);
        let status = &ticked.next.status;
        let mut news = news(&plan, &prior, status, &reading.notes);
        news.extend(warnings(&told, &ticked.next.why));
        self.tell(engine.object(), &resource, &news, now).await;
        self.count(&plan, &prior, status, memory);
        Ok(ticked.next.wake_at.map(|at| Instant::now() + at.since(SystemClock.now())))
    }

    /// Marks what another operator has made for the job, and waits until the watches show it.
    async fn adopt(&self, object: &JobObject, memory: &mut Memory) -> Result<Instant, LookError> {
        let uids = Children::adopt(&self.client, object).await?;
        tracing::info!(
            namespace = object.namespace(),
            name = object.name(),
            objects = uids.len(),
            "goes on with what another operator began"
        );
        let now = Instant::now();
        memory.adopted = true;
        let until = now + CATCH_UP;
        memory.expected = Some(Expected { old_version: None, uids, changed: Vec::new(), until });
        Ok(now + CATCH_UP_LOOK)
    }

    async fn refuse(
        &self,
        object: &JobObject,
        resource: &Resource,
        notes: &[Note],
        now: Time,
    ) -> Result<(), LookError> {
        let told = refusal::refuse(&self.client, object, resource, notes, now).await;
        if let Some(happening) = told.map_err(|error| LookError::Refuse(Box::new(error)))? {
            tracing::info!(
                namespace = object.namespace(),
                name = object.name(),
                why = happening.message,
                "refused"
            );
            events::tell(&self.client, object, Some(resource), &[happening], now).await;
        }
        Ok(())
    }

    /// Tells what happened, after it was written down.
    async fn tell(&self, object: &JobObject, resource: &Resource, news: &[Happening], now: Time) {
        for happening in news {
            tracing::info!(
                namespace = object.namespace(),
                name = object.name(),
                reason = happening.reason,
                "{}",
                happening.message
            );
        }
        events::tell(&self.client, object, Some(resource), news, now).await;
    }

    /// Tells what is in the way, once.
    async fn tell_trouble(
        &self,
        object: &JobObject,
        resource: &Resource,
        error: &EngineError,
        memory: &mut Memory,
        now: Time,
    ) {
        let EngineError::Apply(ApplyError::Write(write)) = error else { return };
        let told = matches!(write, WriteError::Foreign { .. }) || write.is_refused();
        let message = chain(write);
        if !told || memory.trouble.as_ref() == Some(&message) {
            return;
        }
        memory.trouble = Some(message.clone());
        let reason = write.reason().to_owned();
        let happening = Happening { is_warning: true, reason, message };
        events::tell(&self.client, object, Some(resource), &[happening], now).await;
    }

    fn count(&self, plan: &Plan, prior: &Status, status: &Status, memory: &mut Memory) {
        let metrics = &self.health.metrics;
        if memory.launcher.is_none() {
            let launcher = plan.names.launcher_job();
            metrics.exists(plan.namespace(), &launcher);
            memory.launcher = Some(launcher);
        }
        metrics.count(prior, status);
    }
}

impl Memory {
    /// What is remembered of the object with this uid. Of an earlier one of the same name only metrics know something, by that name.
    pub(crate) fn about(self, uid: &str) -> Self {
        if self.uid == uid {
            return self;
        }
        Self { uid: uid.to_owned(), launcher: self.launcher, ..Self::default() }
    }

    /// What is left of it when a look takes it along and does not come back.
    pub(crate) fn after_failure(&self) -> Self {
        let (uid, launcher) = (self.uid.clone(), self.launcher.clone());
        Self { uid, failures: self.failures + 1, launcher, ..Self::default() }
    }

    /// The memory of a look that panicked, from what was left of it. The first of several in a row is told.
    pub(crate) fn after_panic(self) -> Self {
        Self { panicked: self.failures == 1, ..self }
    }

    /// When to look again, where the watches do not show yet what was written.
    fn not_caught_up(&mut self, object: &JobObject, children: &Children) -> Option<Instant> {
        let expected = self.expected.as_ref()?;
        let is_old = expected.old_version.is_some()
            && expected.old_version.as_deref() == object.resource_version();
        let lags = is_old || !children.have(&expected.uids) || children.show_any(&expected.changed);
        // A watch that shows something brings the job here again before that.
        if lags && Instant::now() < expected.until {
            return Some(expected.until);
        }
        self.expected = None;
        None
    }

    /// Remembers what a look has written.
    fn expect(
        &mut self,
        engine: &KubernetesEngine,
        old_version: Option<String>,
        old_pods: &[Arc<unisono_k8s::slim::Pod>],
        unchanged: bool,
    ) {
        let now = Instant::now();
        let old: HashSet<&String> =
            old_pods.iter().filter_map(|pod| pod.metadata.uid.as_ref()).collect();
        let now_there = engine.children().pods.iter().filter_map(|pod| pod.metadata.uid.as_ref());
        let uids: Vec<String> = now_there.filter(|uid| !old.contains(uid)).cloned().collect();
        let rewritten = engine.object().resource_version() != old_version.as_deref();
        let old_version = old_version.filter(|_| rewritten);
        if !unchanged {
            self.written = Some(now);
        }
        let changed = engine.changed().to_vec();
        if old_version.is_some() || !uids.is_empty() || !changed.is_empty() {
            self.expected = Some(Expected { old_version, uids, changed, until: now + CATCH_UP });
        }
    }
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("carry the job out")]
    Tick(#[from] EngineError),
    #[error("take the job over")]
    Adopt(#[from] ListError),
    #[error("write what is wrong with the object")]
    Refuse(#[source] Box<kube::Error>),
}

impl LookError {
    /// Whether nothing is wrong but that something else is not over yet.
    const fn passes_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Tick(EngineError::Apply(ApplyError::Write(WriteError::Predecessor { .. })))
        )
    }
}

/// How long mere counts may wait to be written. That the last pod is gone is news to whoever waits for room.
fn patience(status: &Status) -> Duration {
    match (status.is_at_rest(), status.groups.iter().any(|group| group.existing > 0)) {
        (true, true) => COALESCE_AT_THE_END,
        (true, false) => Duration::ZERO,
        (false, _) => COALESCE,
    }
}

/// Whether a status says nothing new but how many members are up.
fn only_counts_differ(prior: &Status, status: &Status) -> bool {
    let mut counted = prior.clone();
    counted.groups.clone_from(&status.groups);
    counted == *status
}

/// What happened since the last look; at the first also what is odd about the file.
fn news(plan: &Plan, prior: &Status, status: &Status, notes: &[Note]) -> Vec<Happening> {
    let mut news = happenings(plan, prior, status);
    if prior.created.is_none() && status.created.is_some() {
        news.extend(odd(notes, plan));
    }
    news
}

/// What is odd about a file: warnings, and slots that stay empty, because somebody pays for them.
fn odd(notes: &[Note], plan: &Plan) -> Vec<Happening> {
    let is_told = |note: &&Note| note.severity() == Severity::Warning || *note.code == SLOTS_IDLE;
    let told = notes.iter().chain(&plan.notes).filter(is_told).take(MOST_WARNINGS);
    told.map(|note| warning(note, plan.told_as())).collect()
}

fn warning(note: &Note, dialect: Dialect) -> Happening {
    let place = note.place.as_ref().map(|place| format!("{}: ", place.path)).unwrap_or_default();
    let hint = note.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    Happening {
        is_warning: true,
        reason: reason(note, dialect).to_owned(),
        message: format!("{place}{}{hint}", note.message),
    }
}

/// The one word for what is odd. Some had one before.
fn reason(note: &Note, dialect: Dialect) -> &'static str {
    let place = note.place.as_ref().map_or("", |place| place.path.as_str());
    match dialect {
        _ if !place.ends_with("template.spec.restartPolicy") => "ValidationWarning",
        Dialect::KubeflowV2beta1 => "SetPodTemplateRestartPolicy",
        Dialect::KubeflowV1alpha2 | Dialect::KubeflowV1 => "SettedPodTemplateRestartPolicy",
        _ => "ValidationWarning",
    }
}

/// An error with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests;
