//! Where a run is that somebody names: on this machine or in a cluster.

#[cfg(feature = "kubernetes")]
use std::time::Duration;

use clap::{Args, ValueEnum};
use unisono_local::{RunDirectory, RunRecord};

use crate::Context;
#[cfg(feature = "kubernetes")]
use crate::cluster::{ClusterJob, Session};
use crate::error::Error;

/// Where a job can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Isolated hosts on this machine.
    #[default]
    Local,
    /// Pods of a Kubernetes cluster.
    Kubernetes,
}

/// Where to look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EngineArgs {
    /// Where to look; when left out, on this machine and, for a name of which nothing runs here, in the cluster.
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: Option<Engine>,
}

/// A run that was found.
pub(crate) enum Found {
    /// On this machine.
    Here(RunDirectory, Box<RunRecord>),
    /// In a cluster.
    #[cfg(feature = "kubernetes")]
    InCluster(Box<Session>, Box<ClusterJob>),
}

/// A job that was found in a cluster.
#[cfg(feature = "kubernetes")]
type InCluster = (Box<Session>, Box<ClusterJob>);

/// The run or job of that name, or the newest of this machine without one.
pub(crate) fn find(
    name: Option<&str>,
    place: EngineArgs,
    context: &mut Context,
) -> Result<Found, Error> {
    match (place.engine, name) {
        (Some(Engine::Kubernetes), name) => in_cluster(name, context),
        (None, Some(name)) if context.world.names_a_cluster() => anywhere(name, context),
        (Some(Engine::Local) | None, name) => here(name, context),
    }
}

fn here(name: Option<&str>, context: &Context) -> Result<Found, Error> {
    let (directory, record) = context.find_run(name)?;
    Ok(Found::Here(directory, Box::new(record)))
}

/// What runs here, else what runs in the cluster, else the newer of the two.
#[cfg(feature = "kubernetes")]
fn anywhere(name: &str, context: &mut Context) -> Result<Found, Error> {
    let Ok((directory, record)) = context.find_run(Some(name)) else {
        return in_cluster(Some(name), context).map_err(|error| nowhere(name, error));
    };
    // A whole id can only mean this machine.
    let is_known = directory.is_running() || record.id == name;
    let in_cluster = if is_known { Ok(None) } else { asked_briefly(name, context) };
    // The beginning of an id is no name.
    let is_better = |job: &ClusterJob| {
        record.job != name || !job.status.is_terminal() || job.created() > record.began
    };
    match in_cluster {
        Ok(Some((session, job))) if is_better(&job) => return Ok(Found::InCluster(session, job)),
        Ok(_) => {}
        Err(error) => {
            context.console.warn(&[format!("only this machine was asked for `{name}`: {error}")]);
        }
    }
    Ok(Found::Here(directory, Box::new(record)))
}

#[cfg(not(feature = "kubernetes"))]
fn anywhere(name: &str, context: &mut Context) -> Result<Found, Error> {
    here(Some(name), context)
}

/// How long a cluster may take to answer whoever has another answer.
#[cfg(feature = "kubernetes")]
const SOON: Duration = Duration::from_secs(3);

/// The job of that name, if the cluster tells it soon: there is something to show already, and a cluster that does not answer
/// must not keep anybody from it.
#[cfg(feature = "kubernetes")]
fn asked_briefly(name: &str, context: &mut Context) -> Result<Option<InCluster>, Error> {
    let session = Session::open(&context.settings)?;
    let asked =
        session.run(async |cluster| tokio::time::timeout(SOON, cluster.find_job(Some(name))).await);
    let late = |_| Error::Run {
        message: format!("the cluster at {} does not answer", session.server()),
        hint: None,
        source: None,
    };
    let (job, warning) = asked.map_err(late)??;
    context.console.warn(warning.as_slice());
    Ok(job.map(|job| (Box::new(session), Box::new(job))))
}

/// Neither here nor in the cluster, or the cluster could not be asked.
#[cfg(feature = "kubernetes")]
fn nowhere(name: &str, error: Error) -> Error {
    let (hint, here) = (error.hint(), format!("no run of this machine is called `{name}`, and"));
    match error {
        Error::Usage { message, .. } => Error::Usage { message: format!("{here} {message}"), hint },
        error => Error::Run {
            message: format!("{here} the cluster cannot be asked"),
            hint,
            source: Some(Box::new(error)),
        },
    }
}

#[cfg(feature = "kubernetes")]
fn in_cluster(name: Option<&str>, context: &mut Context) -> Result<Found, Error> {
    let session = Session::open(&context.settings)?;
    let (job, warning) = session.run(|cluster| cluster.find_job(name))?;
    context.console.warn(warning.as_slice());
    match job {
        Some(job) => Ok(Found::InCluster(Box::new(session), Box::new(job))),
        None => {
            let namespace = session.namespace();
            let goes = session.run(|cluster| cluster.namespace_goes(namespace));
            let goes = if goes { ", which is gone or being removed" } else { "" };
            let named = name.map(|name| format!(" `{name}`")).unwrap_or_default();
            let message = format!("there is no job{named} in namespace {namespace}{goes}");
            Err(Error::usage(
                message,
                "`unisono list --engine kubernetes --all-namespaces` shows the jobs of the cluster",
            ))
        }
    }
}

#[cfg(not(feature = "kubernetes"))]
fn in_cluster(_name: Option<&str>, _context: &mut Context) -> Result<Found, Error> {
    Err(Error::without_kubernetes("--engine kubernetes"))
}
