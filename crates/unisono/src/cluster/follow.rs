//! A job, followed to its end: what it waits for, every line of its commands, and how it ended.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object, watcher as watch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use unisono_k8s::marks;
use unisono_k8s::slim::Pod;

use super::jobs::selector;
use super::logs::{Line, Logged};
use super::{Cluster, ClusterJob};
use crate::error::Error;

/// Lines that may wait before their readers do.
const WAITING_LINES: usize = 1024;

/// How long logs of a job that has ended may take to end, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// What somebody who follows a job is told.
pub(crate) enum Told<'follow> {
    /// The job is somewhere else in its life, or waits for something else.
    Moved(&'follow ClusterJob),
    /// A host's command wrote a line.
    Wrote {
        /// The host.
        host: &'follow str,
        /// The line.
        bytes: &'follow [u8],
    },
    /// A log could not be read to its end.
    Unread(&'follow Error),
    /// Somebody typed Ctrl-C, or asks the process to end: what now?
    Interrupted,
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
    /// It goes on, and nobody looks.
    Left,
    /// Somebody removed it.
    Removed,
}

impl Cluster {
    /// Follows a job to its end.
    pub(crate) async fn follow(
        &self,
        job: &ClusterJob,
        mut tell: impl FnMut(Told<'_>) -> Choice,
    ) -> Result<Followed, Error> {
        let mut interrupts = Interrupts::listen()?;
        let mut objects = std::pin::pin!(self.objects_of(job));
        let watched = watch(self.pod_api(job), watcher::Config::default().labels(&selector(job)));
        let mut pods = std::pin::pin!(watched.default_backoff().applied_objects());
        let (sender, mut lines) = mpsc::channel(WAITING_LINES);
        let mut logs = Logs { cluster: self, known: BTreeSet::new(), sender };
        let mut job = job.clone();
        tell(Told::Moved(&job));
        while !job.status.is_terminal() {
            tokio::select! {
                biased;
                () = interrupts.next() => match tell(Told::Interrupted) {
                    Choice::GoOn => {}
                    Choice::Stop => self.stop(&job).await?,
                    Choice::Leave => return Ok(Followed::Left),
                },
                Some(line) = lines.recv() => pass(&line, &mut tell),
                Some(pod) = pods.next() => if let Ok(pod) = pod {
                    logs.begin(&job, &pod);
                },
                object = objects.next() => match object {
                    Some(Ok(Some(object))) => if let Some(moved) = self.read(&object) {
                        job = moved;
                        tell(Told::Moved(&job));
                    },
                    Some(Ok(None)) => return Ok(Followed::Removed),
                    // The watch is taken up again; what it missed is in the next object.
                    Some(Err(_)) => {}
                    None => return Ok(Followed::Removed),
                },
            }
        }
        // Its last pod may be seen later than its end.
        for pod in self.pods(&job).await? {
            logs.begin(&job, &pod);
        }
        drop(logs);
        let rest = async {
            while let Some(line) = lines.recv().await {
                pass(&line, &mut tell);
            }
        };
        // A log that does not end by then is of a node that does not answer.
        let _ended = tokio::time::timeout(PATIENCE, rest).await;
        Ok(Followed::Ended(Box::new(job)))
    }

    /// Asks the operator to stop a job.
    pub(crate) async fn stop(&self, job: &ClusterJob) -> Result<(), Error> {
        self.annotate(&job.reference(), marks::STOP, "true").await
    }

    fn objects_of(
        &self,
        job: &ClusterJob,
    ) -> impl Stream<Item = watcher::Result<Option<DynamicObject>>> + use<> {
        let object = job.object.as_json();
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, text("kind"));
        let plural = format!("{}s", kind.kind.to_ascii_lowercase());
        let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
        let api: Api<DynamicObject> = self.api(&resource, Some(job.object.namespace()));
        watch_object(api, job.object.name())
    }
}

/// The logs that are being read.
struct Logs<'cluster> {
    cluster: &'cluster Cluster,
    known: BTreeSet<String>,
    sender: mpsc::Sender<Line>,
}

impl Logs<'_> {
    /// Begins to read the log of a pod that has one, once.
    fn begin(&mut self, job: &ClusterJob, pod: &Pod) {
        let Some(logged) = Logged::of(job, pod, None) else { return };
        if !self.known.insert(pod.metadata.uid.clone().unwrap_or_default()) {
            return;
        }
        let (cluster, job, sender) = (self.cluster.clone(), job.clone(), self.sender.clone());
        tokio::spawn(async move {
            if let Err(fault) = cluster.pass_on(&job, &logged, &sender).await {
                // Whoever does not listen any more wants no more.
                let _gone = sender.send(Line::Fault(fault)).await;
            }
        });
    }
}

fn pass(line: &Line, tell: &mut impl FnMut(Told<'_>) -> Choice) {
    match line {
        Line::Text(host, bytes) => tell(Told::Wrote { host, bytes }),
        Line::Fault(fault) => tell(Told::Unread(fault)),
    };
}

/// Ctrl-C, and what asks a process to end.
struct Interrupts(Signal, Signal);

impl Interrupts {
    fn listen() -> Result<Self, Error> {
        let fault = |error| Error::run("signals cannot be waited for", error);
        let interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
        Ok(Self(interrupt, signal(SignalKind::terminate()).map_err(fault)?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}
