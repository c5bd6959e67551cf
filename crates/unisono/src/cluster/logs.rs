//! What pods wrote: a job enters, the log of each host that runs a command leaves, whole or line by line.

use futures::AsyncBufReadExt as _;
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
    pub(crate) text: String,
}

/// A line of a host, or why there are no more.
pub(super) enum Line {
    Text(String, Vec<u8>),
    Fault(Error),
}

/// A pod whose log somebody wants.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) host: String,
    pub(super) pod: String,
    pub(super) container: Option<String>,
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
            let text = self.log_api(job).logs(&logged.pod, &logged.parameters(false)).await;
            let text = text.map_err(|error| {
                self.failed(format!("the log of {} cannot be read", logged.pod), error)
            })?;
            logs.push(HostLog { host: logged.host, text });
        }
        Ok(logs)
    }

    /// Hands every line of a pod's log on, until it ends or nobody wants it any more.
    pub(super) async fn pass_on(
        &self,
        job: &ClusterJob,
        logged: &Logged,
        to: &mpsc::Sender<Line>,
    ) -> Result<(), Error> {
        let failed =
            |error| self.failed(format!("the log of {} cannot be read", logged.pod), error);
        let api = self.log_api(job);
        let stream = api.log_stream(&logged.pod, &logged.parameters(true)).await.map_err(failed)?;
        let mut stream = std::pin::pin!(stream);
        loop {
            let mut bytes = Vec::new();
            let read = stream.read_until(b'\n', &mut bytes).await;
            read.map_err(|error| Error::run(format!("the log of {} was cut", logged.pod), error))?;
            if bytes.is_empty() || to.send(Line::Text(logged.host.clone(), bytes)).await.is_err() {
                return Ok(());
            }
        }
    }

    fn log_api(&self, job: &ClusterJob) -> Api<LoggedPod> {
        Api::namespaced(self.client.clone(), job.object.namespace())
    }
}
