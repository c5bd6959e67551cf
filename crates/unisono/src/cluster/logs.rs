//! What pods wrote: a job enters, the log of each host that runs a command leaves, whole or line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{AsyncBufReadExt as _, AsyncReadExt as _};
use k8s_openapi::api::core::v1::Pod as LoggedPod;
use kube::api::{Api, ListParams, LogParams};
use tokio::sync::mpsc;
use unisono_k8s::marks;
use unisono_k8s::slim::{ContainerState, Pod};

use super::jobs::member;
use super::seen::Seen;
use super::{Cluster, ClusterJob};
use crate::error::Error;

/// The log of one host.
pub(crate) struct HostLog {
    /// The host.
    pub(crate) host: String,
    /// What it wrote.
    pub(crate) bytes: Vec<u8>,
}

/// A line of a host, or why there are no more.
pub(super) enum Line {
    Text(String, Vec<u8>),
    Fault(Error),
}

/// What comes from a log that is being read: lines, and which pod's has ended.
enum Passed {
    Line(Line),
    Ended(String),
}

/// Lines that may wait before their readers do.
const WAITING_LINES: usize = 1024;

/// How long a log that was cut rests before it is asked for again; twice as long every time that it was cut soon.
const REST: Duration = Duration::from_millis(50);

/// The most of it, and what is no longer soon.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// After how many times a log that cannot be read is told, or given up where its container has ended: a second and a half. A
/// kubelet or an API server that starts again is seldom worth a word.
const TRIES: u32 = 5;

/// The logs of a job that are being read, all at once.
pub(super) struct Logs<'cluster> {
    cluster: &'cluster Cluster,
    known: BTreeSet<String>,
    /// Hosts whose logs have not ended, by pod.
    open: BTreeMap<String, String>,
    sender: Option<mpsc::Sender<Passed>>,
    receiver: mpsc::Receiver<Passed>,
}

impl<'cluster> Logs<'cluster> {
    /// None yet.
    pub(super) fn new(cluster: &'cluster Cluster) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_LINES);
        let (known, open) = (BTreeSet::new(), BTreeMap::new());
        Self { cluster, known, open, sender: Some(sender), receiver }
    }

    /// Begins to read the log of a pod that has one, once.
    pub(super) fn begin(&mut self, job: &ClusterJob, pod: &Pod) {
        let Some(mut logged) = Logged::of(job, pod, None) else { return };
        let Some(sender) = self.sender.clone() else { return };
        if !self.known.insert(pod.metadata.uid.clone().unwrap_or_default()) {
            return;
        }
        self.open.insert(logged.pod.clone(), logged.host.clone());
        let (cluster, job) = (self.cluster.clone(), job.clone());
        tokio::spawn(async move {
            let read = cluster.pass_on(&job, &mut logged, &sender).await;
            let fault = read.err().map(|fault| Passed::Line(Line::Fault(fault)));
            for last in fault.into_iter().chain([Passed::Ended(logged.pod)]) {
                // Whoever does not listen any more wants no more.
                let _gone = sender.send(last).await;
            }
        });
    }

    /// Begins no more, so that what is being read is all there is.
    pub(super) fn begin_no_more(&mut self) {
        self.sender = None;
    }

    /// The next line of any of them; none once all have ended and none begins any more.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            match self.receiver.recv().await? {
                Passed::Line(line) => return Some(line),
                Passed::Ended(pod) => drop(self.open.remove(&pod)),
            }
        }
    }

    /// Hosts whose logs have not ended.
    pub(super) fn open(&self) -> Vec<&str> {
        self.open.values().map(String::as_str).collect()
    }
}

/// A pod whose log somebody wants.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    host: String,
    pod: String,
    uid: Option<String>,
    container: Option<String>,
    /// Whether nothing more is written.
    has_ended: bool,
}

/// Why a log could not be read further.
enum Unread {
    /// Nobody who asks so is let in.
    ForGood(Error),
    /// Nobody answers, or it was cut.
    ForNow(Error),
}

/// How far a log could be read.
enum Read {
    /// To an end, which is its own if nothing more is written.
    End,
    /// As far as anybody wants it.
    Enough,
}

impl Logged {
    /// The log that belongs to a pod of the job: one that has begun, on a host that runs a command (or is asked for by name).
    pub(super) fn of(job: &ClusterJob, pod: &Pod, asked: Option<&str>) -> Option<Self> {
        let plan = job.plan.as_ref()?;
        let host = plan.host(member(pod)?)?;
        let wanted = match asked {
            Some(name) => host.name == name || pod.metadata.name.as_deref() == Some(name),
            None => host.runs.runs_command(),
        };
        let container = pod
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(marks::DEFAULT_CONTAINER))
            .filter(|name| !name.is_empty())
            .cloned();
        (wanted && has_begun(pod, container.as_deref())).then(|| Self {
            host: host.name.clone(),
            pod: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone(),
            has_ended: has_ended(pod, container.as_deref()),
            container,
        })
    }

    fn cut(&self, error: std::io::Error) -> Error {
        Error::run(format!("the log of {} was cut", self.pod), error)
    }

    fn parameters(&self) -> LogParams {
        LogParams { container: self.container.clone(), ..LogParams::default() }
    }
}

/// Whether the container that counts has started; before that there is no log to ask for.
fn has_begun(pod: &Pod, container: Option<&str>) -> bool {
    state(pod, container).is_some_and(|it| it.running.is_some() || it.terminated.is_some())
}

/// Whether it has ended. It is never started again.
fn has_ended(pod: &Pod, container: Option<&str>) -> bool {
    state(pod, container).is_some_and(|it| it.terminated.is_some())
}

fn state<'pod>(pod: &'pod Pod, container: Option<&str>) -> Option<&'pod ContainerState> {
    let statuses = &pod.status.container_statuses;
    let status = statuses.iter().find(|it| container.is_none_or(|name| it.name == name));
    status.map(|it| &it.state)
}

/// Whether asking again would be answered in the same way.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403].contains(&status.code))
}

impl Cluster {
    /// The logs of a job as far as they were written: of hosts that run commands, or of the host that is asked for. Tries
    /// come one after the other.
    pub(crate) async fn logs(
        &self,
        job: &ClusterJob,
        asked: Option<&str>,
    ) -> Result<Vec<HostLog>, Error> {
        let mut pods = self.pods(job).await?;
        pods.sort_by(|left, right| {
            left.metadata.creation_timestamp.cmp(&right.metadata.creation_timestamp)
        });
        let mut logs = Vec::new();
        for logged in pods.iter().filter_map(|pod| Logged::of(job, pod, asked)) {
            let stream = self.log_api(job).log_stream(&logged.pod, &logged.parameters()).await;
            let mut stream = std::pin::pin!(stream.map_err(|error| self.unread(&logged, error))?);
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.map_err(|error| logged.cut(error))?;
            logs.push(HostLog { host: logged.host, bytes });
        }
        Ok(logs)
    }

    /// Hands every line of a pod's log on, until its container has ended or nobody wants it any more. Kubelets and API servers
    /// that start again cut logs, and mostly so that it looks like their end; so one is asked for again until it was read to an end
    /// after its container's.
    async fn pass_on(
        &self,
        job: &ClusterJob,
        logged: &mut Logged,
        to: &mpsc::Sender<Passed>,
    ) -> Result<(), Error> {
        let mut seen = Seen::default();
        let mut tries = 0;
        loop {
            let begun = tokio::time::Instant::now();
            let read = self.pass_on_what_comes(job, logged, &mut seen, to).await;
            tries = if begun.elapsed() > LONGEST_REST { 0 } else { tries + 1 };
            let is_cut = read.is_err();
            match read {
                Ok(Read::Enough) => return Ok(()),
                Ok(Read::End) if logged.has_ended => break,
                Ok(Read::End) => {}
                Err(Unread::ForGood(error)) => return Err(error),
                Err(Unread::ForNow(error)) if tries >= TRIES && logged.has_ended => {
                    return Err(error);
                }
                Err(Unread::ForNow(error)) if tries == TRIES => {
                    // Whoever does not listen any more is seen by the next line.
                    let _gone = to.send(Passed::Line(Line::Fault(error))).await;
                }
                Err(Unread::ForNow(_)) => {}
            }
            match self.look_at(job, logged).await {
                Ok(Some(has_ended)) => logged.has_ended = has_ended,
                // With the pod its log is gone.
                Ok(None) => break,
                Err(error) if is_final(&error) => return Err(self.unread(logged, error)),
                // The API server is away.
                Err(_) => {}
            }
            // What was read to an end while the container still ran may miss what it wrote last.
            if is_cut || !logged.has_ended {
                let longer = 1 << tries.min(TRIES);
                tokio::time::sleep((REST * longer).min(LONGEST_REST)).await;
            }
        }
        if let Some(rest) = seen.rest() {
            // Whoever does not listen any more wants no more.
            let _gone = to.send(Passed::Line(Line::Text(logged.host.clone(), rest))).await;
        }
        Ok(())
    }

    /// Hands on what is new of a log, as long as it comes.
    async fn pass_on_what_comes(
        &self,
        job: &ClusterJob,
        logged: &Logged,
        seen: &mut Seen,
        to: &mpsc::Sender<Passed>,
    ) -> Result<Read, Unread> {
        let parameters = LogParams {
            follow: true,
            timestamps: true,
            since_time: seen.begin(),
            ..logged.parameters()
        };
        let stream = self.log_api(job).log_stream(&logged.pod, &parameters).await;
        let mut stream = std::pin::pin!(stream.map_err(|error| match is_final(&error) {
            true => Unread::ForGood(self.unread(logged, error)),
            false => Unread::ForNow(self.unread(logged, error)),
        })?);
        loop {
            let mut bytes = Vec::new();
            let read = stream.read_until(b'\n', &mut bytes).await;
            if read.map_err(|error| Unread::ForNow(logged.cut(error)))? == 0 {
                return Ok(Read::End);
            }
            let Some(line) = seen.take(bytes) else { continue };
            let line = Passed::Line(Line::Text(logged.host.clone(), line));
            if to.send(line).await.is_err() {
                return Ok(Read::Enough);
            }
        }
    }

    /// Whether the container that a log is of has ended; none when its pod is gone. Whoever follows a job may list its pods.
    async fn look_at(
        &self,
        job: &ClusterJob,
        logged: &Logged,
    ) -> Result<Option<bool>, kube::Error> {
        let named = ListParams::default().fields(&format!("metadata.name={}", logged.pod));
        let pods = self.pod_api(job).list(&named).await?.items;
        let pod = pods.iter().find(|pod| pod.metadata.uid == logged.uid);
        Ok(pod.map(|pod| has_ended(pod, logged.container.as_deref())))
    }

    fn unread(&self, logged: &Logged, error: kube::Error) -> Error {
        self.failed(format!("the log of {} cannot be read", logged.pod), error)
    }

    fn log_api(&self, job: &ClusterJob) -> Api<LoggedPod> {
        Api::namespaced(self.client.clone(), job.object.namespace())
    }
}
