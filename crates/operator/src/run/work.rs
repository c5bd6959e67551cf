//! One look at one job: what was seen of it enters, writes to the cluster and the moment of the next look leave.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::Instant;
use unisono_engine::{Clock, Engine, Recorded, SystemClock, carry_out, decide};
use unisono_job::{Dialect, Note, Severity};
use unisono_k8s::{
    ApplyError, Children, EngineError, JobObject, KubernetesEngine, ListError, Resource, Settings,
    WriteError, prior, told_why,
};
use unisono_plan::conditions::{Happening, happenings, warnings};
use unisono_plan::notes::codes::SLOTS_IDLE;
use unisono_plan::{Plan, Status, Time, Why};

use super::key::Key;
use super::known::Known;
use super::memory::{CATCH_UP, Expected, Memory};
use super::serve::Health;
use super::world::{Kept, Snapshot};
use super::{events, refusal};

/// A change of mere counts waits this long for the next one. Most jobs run by then: what is written of them is that they were created,
/// and that they run.
const COALESCE: Duration = Duration::from_secs(5);

/// What a job cannot wait away by itself is told sooner, together with what else is in its way.
const COALESCE_TROUBLE: Duration = Duration::from_secs(1);

/// Pods that go are told this often: nobody acts on how many are left.
const COALESCE_AT_THE_END: Duration = Duration::from_secs(10);

/// How soon to look again when the job was changed by somebody else meanwhile.
const CATCH_UP_LOOK: Duration = Duration::from_millis(20);

/// How often to look whether the objects of an earlier job of the same name are gone: not all of them are watched.
const PREDECESSOR_LOOK: Duration = Duration::from_millis(500);

/// The most warnings about one file that are told as events.
const MOST_WARNINGS: usize = 5;

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
    pub(crate) async fn look(
        &self,
        key: &Key,
        snapshot: Snapshot,
        memory: &mut Memory,
    ) -> Option<Instant> {
        let Key { namespace, name, .. } = key;
        let begun = Instant::now();
        if std::mem::take(&mut memory.panicked)
            && let Some(object) = snapshot.kept.object()
        {
            self.tell_panic(&object).await;
        }
        let result = self.try_look(snapshot, memory).await;
        self.health.metrics.reconciled_in(begun.elapsed());
        match result {
            Ok(again) => {
                memory.failures = 0;
                again
            }
            Err(error) if error.passes_by_itself() => {
                tracing::debug!(%namespace, %name, why = chain(&error), "waiting");
                memory.failures = 0;
                Some(Instant::now() + PREDECESSOR_LOOK)
            }
            Err(error) => {
                memory.failures += 1;
                self.health.metrics.errors.inc();
                tracing::warn!(
                    %namespace,
                    %name,
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
        let Snapshot { kept, mut children } = snapshot;
        children.refused.clone_from(&memory.trouble);
        if let Some(later) = memory.not_caught_up(kept.version.as_deref(), &children) {
            return Ok(Some(later));
        }
        let Some(known) = self.known(kept, memory) else { return Ok(None) };
        let Known { object, resource, notes, .. } = &*known;
        if object.is_going() {
            return Ok(None);
        }
        let now = SystemClock.now();
        let Some(plan) = &known.plan else {
            self.refuse(object, resource, notes, now).await?;
            return Ok(None);
        };
        let prior = prior(plan, object, &children);
        let told = told_why(object);
        let (old_version, old_pods) =
            (object.resource_version().map(str::to_owned), children.pods.clone());
        let engine = KubernetesEngine::new(
            self.client.clone(),
            self.settings.clone(),
            object.clone(),
            children,
        );
        let mut engine = engine.settled(memory.is_settled);
        let next = decide(&mut engine, plan, &prior, now).await?;
        if matches!(next.why.as_slice(), [Why::ManagedElsewhere { .. }]) {
            return Ok(None);
        }
        if engine.object().is_inherited() && !memory.adopted {
            return self.adopt(engine.object(), memory).await.map(Some);
        }
        let unchanged = next.status == prior && engine.has_told(&next.why);
        let troubles = warnings(&told, &next.why);
        let patience = patience(&next.status, !troubles.is_empty());
        if let Some(later) = memory.written.map(|written| written + patience)
            && !unchanged
            && only_counts_differ(&prior, &next.status)
            && Instant::now() < later
        {
            return Ok(Some(later));
        }
        memory.is_settled = false;
        let ticked = match carry_out(&mut engine, plan, &prior, next, now).await {
            Ok(ticked) => ticked,
            Err(error) => {
                // What was written down before the fault is told, too: the next look finds nothing new about it.
                let status = unisono_k8s::prior(plan, engine.object(), engine.children());
                let object = engine.object();
                let news = news(plan, &prior, &status, notes);
                self.tell(object, resource, &news, now).await;
                self.count(plan, &prior, &status, memory);
                self.tell_trouble(object, resource, &error, memory, now).await;
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
        let mut news = news(plan, &prior, status, notes);
        news.extend(troubles);
        self.tell(engine.object(), resource, &news, now).await;
        self.count(plan, &prior, status, memory);
        Ok(ticked.next.wake_at.map(|at| Instant::now() + at.since(SystemClock.now())))
    }

    /// The job object, read anew if it has changed.
    fn known(&self, kept: Arc<Kept>, memory: &mut Memory) -> Option<Arc<Known>> {
        let known = memory.known.take().filter(|known| known.is_of(&kept));
        let known = known.or_else(|| Known::of(kept, &self.reading, &self.settings).map(Arc::new));
        memory.known.clone_from(&known);
        known
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

/// How long mere counts and reasons may wait to be written. That the last pod is gone is news to whoever waits for room.
fn patience(status: &Status, is_in_trouble: bool) -> Duration {
    match (status.is_at_rest(), status.groups.iter().any(|group| group.existing > 0)) {
        (true, true) => COALESCE_AT_THE_END,
        (true, false) => Duration::ZERO,
        (false, _) if is_in_trouble => COALESCE_TROUBLE,
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
