//! A job, followed to its end: what it waits for, every line of its commands, and how it ended.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object, watcher as watch};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval_at, timeout};
use unisono_k8s::marks;

use super::interrupts::{Interrupt, Interrupts};
use super::jobs::selector;
use super::logs::{Line, Logs};
use super::{Cluster, ClusterJob};
use crate::error::Error;

/// How long logs of a job that has ended may say nothing before they end, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often somebody is told again who does not see how the job moves.
const TELL: Duration = Duration::from_secs(3);

/// The code of an answer to somebody who asks for too old a state; the watch begins anew by itself.
const GONE: u16 = 410;

/// What somebody who follows a job is told.
pub(crate) enum Told<'follow> {
    /// The job is somewhere else in its life, or waits for something else.
    Moved(&'follow ClusterJob),
    /// Some time has passed, and there the job is.
    Stays(&'follow ClusterJob),
    /// A host's command wrote a line.
    Wrote {
        /// The host.
        host: &'follow str,
        /// The line.
        bytes: &'follow [u8],
    },
    /// A log could not be read to its end.
    Unread(&'follow Error),
    /// The job cannot be seen at the moment; it is looked for again.
    Unseen(&'follow Error),
}

/// What to do with a job that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Follow it.
    GoOn,
    /// Stop it, and follow it to its end.
    Stop,
    /// Leave it running.
    Leave,
}

/// How following ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The job has ended.
    Ended(Box<ClusterJob>),
    /// It goes on, and nobody looks, because of that.
    Left(Interrupt),
    /// Somebody removed it.
    Removed {
        /// Whether its whole namespace goes.
        with_namespace: bool,
    },
}

/// Whoever follows a job.
pub(crate) trait Follower {
    /// Is told what happens.
    fn told(&mut self, told: &Told<'_>);

    /// Ctrl-C was typed: what now? None when there is nobody who could answer.
    fn asked(&mut self) -> Option<oneshot::Receiver<Choice>>;
}

impl Cluster {
    /// Follows a job to its end.
    pub(crate) async fn follow(
        &self,
        job: &ClusterJob,
        follower: &mut impl Follower,
    ) -> Result<Followed, Error> {
        let mut interrupts = Interrupts::listen()?;
        let mut objects = std::pin::pin!(self.objects_of(job)?.default_backoff());
        let watched = watch(self.pod_api(job), watcher::Config::default().labels(&selector(job)));
        let mut pods = std::pin::pin!(watched.default_backoff().applied_objects());
        let mut sees_pods = true;
        let mut logs = Logs::new(self);
        let mut tells = interval_at(Instant::now() + TELL, TELL);
        let mut job = job.clone();
        follower.told(&Told::Moved(&job));
        while !job.status.is_terminal() {
            tokio::select! {
                biased;
                interrupt = interrupts.next() => match what_now(interrupt, &mut interrupts, follower).await {
                    Ok(Choice::GoOn) => {}
                    Ok(Choice::Stop) => self.stop(&job).await?,
                    Ok(Choice::Leave) => return Ok(Followed::Left(interrupt)),
                    Err(second) => return Ok(Followed::Left(second)),
                },
                Some(line) = logs.next() => pass(&line, follower),
                Some(pod) = pods.next(), if sees_pods => match pod {
                    Ok(pod) => logs.begin(&job, &pod),
                    Err(error) => if let Unseen::ForGood(error) = self.unseen(error) {
                        follower.told(&Told::Unread(&error));
                        sees_pods = false;
                    },
                },
                object = objects.next() => match object {
                    Some(Ok(Some(object))) => if let Some(moved) = self.read(&typed(object, &job)) {
                        job = moved;
                        follower.told(&Told::Moved(&job));
                    },
                    Some(Ok(None)) | None => {
                        let with_namespace = self.namespace_goes(job.object.namespace()).await;
                        return Ok(Followed::Removed { with_namespace });
                    },
                    Some(Err(error)) => match self.unseen(error) {
                        Unseen::ForGood(error) => return Err(error),
                        Unseen::ForNow(error) => follower.told(&Told::Unseen(&error)),
                        Unseen::Renewed => {}
                    },
                },
                _ = tells.tick() => follower.told(&Told::Stays(&job)),
            }
        }
        if sees_pods {
            self.read_to_the_end(&job, logs, &mut interrupts, follower).await;
        }
        Ok(Followed::Ended(Box::new(job)))
    }

    /// Passes on what is left of the logs of a job that has ended.
    async fn read_to_the_end(
        &self,
        job: &ClusterJob,
        mut logs: Logs<'_>,
        interrupts: &mut Interrupts,
        follower: &mut impl Follower,
    ) {
        // Its last pod may be seen later than its end.
        match self.pods(job).await {
            Ok(pods) => pods.iter().for_each(|pod| logs.begin(job, pod)),
            Err(error) => follower.told(&Told::Unread(&error)),
        }
        logs.begin_no_more();
        loop {
            let line = tokio::select! {
                biased;
                _ = interrupts.next() => return,
                line = timeout(PATIENCE, logs.next()) => line,
            };
            match line {
                Ok(Some(line)) => pass(&line, follower),
                Ok(None) => return,
                // Its node does not answer.
                Err(_) => return follower.told(&Told::Unread(&cut(job, &logs.open()))),
            }
        }
    }

    /// Asks the operator to stop a job.
    pub(crate) async fn stop(&self, job: &ClusterJob) -> Result<(), Error> {
        self.annotate(&job.reference(), marks::STOP, "true").await
    }

    fn objects_of(
        &self,
        job: &ClusterJob,
    ) -> Result<impl Stream<Item = watcher::Result<Option<DynamicObject>>> + use<>, Error> {
        let resource: ApiResource = job.resource()?.api_resource();
        let api: Api<DynamicObject> = self.api(&resource, Some(job.object.namespace()));
        Ok(watch_object(api, job.object.name()))
    }

    /// Why a watch sees nothing, and whether that can change.
    fn unseen(&self, error: watcher::Error) -> Unseen {
        let what = "the job cannot be watched";
        let error = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => error,
            watcher::Error::WatchError(status) => kube::Error::Api(status),
            error @ watcher::Error::NoResourceVersion => {
                return Unseen::ForNow(Error::run(what, error));
            }
        };
        match &error {
            kube::Error::Api(status) if status.code == GONE => Unseen::Renewed,
            kube::Error::Api(status) if [401, 403].contains(&status.code) => {
                Unseen::ForGood(self.failed(what, error))
            }
            _ => Unseen::ForNow(self.failed(what, error)),
        }
    }
}

/// Why a watch sees nothing.
enum Unseen {
    /// Nobody who asks so is let in.
    ForGood(Error),
    /// Nobody answers, or something else is wrong.
    ForNow(Error),
    /// Nothing is wrong: it begins anew.
    Renewed,
}

/// What to do about an interrupt. Whoever is asked and interrupts again leaves: that is the error.
async fn what_now(
    interrupt: Interrupt,
    interrupts: &mut Interrupts,
    follower: &mut impl Follower,
) -> Result<Choice, Interrupt> {
    // Only somebody at the keyboard can answer.
    let question = match interrupt {
        Interrupt::Keyboard => follower.asked(),
        Interrupt::Terminate => None,
    };
    let Some(answer) = question else { return Ok(Choice::Leave) };
    tokio::select! {
        second = interrupts.next() => Err(second),
        answer = answer => Ok(answer.unwrap_or(Choice::Leave)),
    }
}

/// Items of a list do not say what they are.
fn typed(mut object: DynamicObject, job: &ClusterJob) -> DynamicObject {
    if object.types.is_none() {
        let text = |key: &str| job.object.as_json()[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        object.types = Some(kube::core::TypeMeta { api_version, kind });
    }
    object
}

fn pass(line: &Line, follower: &mut impl Follower) {
    follower.told(&match line {
        Line::Text(host, bytes) => Told::Wrote { host, bytes },
        Line::Fault(fault) => Told::Unread(fault),
    });
}

fn cut(job: &ClusterJob, hosts: &[&str]) -> Error {
    let (name, seconds) = (job.object.name(), PATIENCE.as_secs());
    Error::Run {
        message: format!(
            "nothing came from {} for {seconds} s: the end of what it wrote is not shown",
            hosts.join(", ")
        ),
        hint: Some(format!("`unisono logs {name} --engine kubernetes` asks for all of it")),
        source: None,
    }
}
