//! Where a run is that somebody names: on this machine or in a cluster.

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
    /// Where to look; when left out, on this machine, and for a name that is not known here in the cluster.
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

/// The run or job of that name, or the newest without one.
pub(crate) fn find(
    name: Option<&str>,
    place: EngineArgs,
    context: &Context,
) -> Result<Found, Error> {
    if place.engine == Some(Engine::Kubernetes) {
        return in_cluster(name, context);
    }
    match context.find_run(name) {
        Ok((directory, record)) => Ok(Found::Here(directory, Box::new(record))),
        Err(nowhere_here) => match (place.engine, name) {
            // A cluster that cannot be asked is no better than none.
            (None, Some(_)) if context.world.names_a_cluster() => {
                in_cluster(name, context).map_err(|_| nowhere_here)
            }
            _ => Err(nowhere_here),
        },
    }
}

#[cfg(feature = "kubernetes")]
fn in_cluster(name: Option<&str>, context: &Context) -> Result<Found, Error> {
    let session = Session::open(&context.settings)?;
    match session.run(|cluster| cluster.find_job(name))? {
        Some(job) => Ok(Found::InCluster(Box::new(session), Box::new(job))),
        None => {
            let namespace = session.namespace();
            let message = match name {
                Some(name) => format!("there is no job `{name}` in namespace {namespace}"),
                None => format!("there is no job in namespace {namespace}"),
            };
            Err(Error::usage(
                message,
                "`unisono list --engine kubernetes --all-namespaces` shows the jobs of the cluster",
            ))
        }
    }
}

#[cfg(not(feature = "kubernetes"))]
fn in_cluster(_name: Option<&str>, _context: &Context) -> Result<Found, Error> {
    Err(Error::without_kubernetes("--engine kubernetes"))
}
