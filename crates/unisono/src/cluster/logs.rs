//! What pods wrote: a job enters, the log of each host that runs a command leaves, whole or line by line.

use std::collections::{BTreeMap, BTreeSet};

use futures::{AsyncBufReadExt as _, AsyncReadExt as _};
use k8s_openapi::api::core::v1::Pod as LoggedPod;
use kube::api::{Api, LogParams};
use tokio::sync::mpsc;
use unisono_k8s::marks;
use unisono_k8s::slim::Pod;

use super::jobs::member;
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
        let Some(logged) = Logged::of(job, pod, None) else { return };
        let Some(sender) = self.sender.clone() else { return };
        if !self.known.insert(pod.metadata.uid.clone().unwrap_or_default()) {
            return;
        }
        self.open.insert(logged.pod.clone(), logged.host.clone());
        let (cluster, job) = (self.cluster.clone(), job.clone());
        tokio::spawn(async move {
            let read = cluster.pass_on(&job, &logged, &sender).await;
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
    container: Option<String>,
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
            container,
        })
    }

    fn cut(&self, error: std::io::Error) -> Error {
        Error::run(format!("the log of {} was cut", self.pod), error)
    }

    fn parameters(&self, follow: bool) -> LogParams {
        LogParams { container: self.container.clone(), follow, ..LogParams::default() }
    }
}

/// Whether the container that counts has started; before that there is no log to ask for.
fn has_begun(pod: &Pod, container: Option<&str>) -> bool {
    let statuses = &pod.status.container_statuses;
    let status = statuses.iter().find(|it| container.is_none_or(|name| it.name == name));
    status.is_some_and(|it| it.state.running.is_some() || it.state.terminated.is_some())
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
            let mut stream = std::pin::pin!(self.log(job, &logged, false).await?);
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.map_err(|error| logged.cut(error))?;
            logs.push(HostLog { host: logged.host, bytes });
        }
        Ok(logs)
    }

    /// Hands every line of a pod's log on, until it ends or nobody wants it any more.
    async fn pass_on(
        &self,
        job: &ClusterJob,
        logged: &Logged,
        to: &mpsc::Sender<Passed>,
    ) -> Result<(), Error> {
        let mut stream = std::pin::pin!(self.log(job, logged, true).await?);
        loop {
            let mut bytes = Vec::new();
            let read = stream.read_until(b'\n', &mut bytes).await;
            let length = read.map_err(|error| logged.cut(error))?;
            let line = Passed::Line(Line::Text(logged.host.clone(), bytes));
            if length == 0 || to.send(line).await.is_err() {
                return Ok(());
            }
        }
    }

    /// A pod's log, as bytes: nobody promises that it is text.
    async fn log(
        &self,
        job: &ClusterJob,
        logged: &Logged,
        follow: bool,
    ) -> Result<impl futures::AsyncBufRead + use<>, Error> {
        let stream = self.log_api(job).log_stream(&logged.pod, &logged.parameters(follow)).await;
        stream.map_err(|error| {
            self.failed(format!("the log of {} cannot be read", logged.pod), error)
        })
    }

    fn log_api(&self, job: &ClusterJob) -> Api<LoggedPod> {
        Api::namespaced(self.client.clone(), job.object.namespace())
    }
}
