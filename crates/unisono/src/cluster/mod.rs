//! The cluster's side of commands: settings enter, a session with the cluster that a kubeconfig names leaves. Everything that
//! talks to an API server goes through it.

mod follow;
mod interrupts;
mod jobs;
mod logs;
mod objects;
mod seen;

use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use tokio::runtime::Runtime;
use unisono_dialect::Options;

use crate::error::Error;
use crate::settings::{Origin, Settings};

pub(crate) use follow::{Choice, Followed, Follower, Told};
pub(crate) use interrupts::{Interrupt, Interrupts};
pub(crate) use jobs::ClusterJob;
pub(crate) use objects::{Applied, Change};

/// Whoever cannot be reached by then is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// A cluster, with all it takes to talk to it. Waiting for a cluster needs one thread only.
pub(crate) struct Session {
    runtime: Runtime,
    cluster: Cluster,
}

/// A cluster and what settings say about it.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// Where the API server is, for messages.
    server: String,
    /// The namespace of jobs that name none.
    namespace: String,
    /// How job objects are read.
    reading: Options,
    /// How they are laid out.
    engine: unisono_k8s::Settings,
}

impl Session {
    /// Finds the cluster as kubectl does: the context that is asked for, else the kubeconfig's own, else that of a pod's
    /// account. Nothing is sent yet.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let runtime = runtime()?;
        let cluster = runtime.block_on(Cluster::of(settings))?;
        Ok(Self { runtime, cluster })
    }

    /// The namespace of jobs that name none.
    pub(crate) fn namespace(&self) -> &str {
        &self.cluster.namespace
    }

    /// Where the API server is.
    pub(crate) fn server(&self) -> &str {
        self.cluster.server.trim_end_matches('/')
    }

    /// Whether that is the API server.
    pub(crate) fn is_at(&self, address: &str) -> bool {
        self.server() == address.trim_end_matches('/')
    }

    /// The job that an object is which was just given to the cluster.
    pub(crate) fn job_of(&self, applied: &Applied) -> Result<ClusterJob, Error> {
        self.cluster.job_of(applied)
    }

    /// Does something there, to its end.
    pub(crate) fn run<'session, T, F>(&'session self, act: impl FnOnce(&'session Cluster) -> F) -> T
    where
        F: Future<Output = T>,
    {
        self.runtime.block_on(act(&self.cluster))
    }
}

impl Cluster {
    async fn of(settings: &Settings) -> Result<Self, Error> {
        let mut config = config(&settings.context.value).await?;
        config.connect_timeout = Some(CONNECT);
        let namespace = stated_namespace(settings).unwrap_or(&config.default_namespace).to_owned();
        let server = config.cluster_url.to_string();
        let client = unisono_k8s::connect(config);
        Ok(Self {
            client: client.map_err(|error| unconfigured(Box::new(error)))?.build(),
            server,
            namespace,
            reading: reading(settings),
            engine: engine(settings),
        })
    }

    /// The client, for what has one of its own.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Why a request failed: what the API server says, or that nobody answers.
    fn failed(&self, message: impl Into<String>, source: kube::Error) -> Error {
        match source {
            kube::Error::Api(status) => Error::Run {
                message: format!("{}: {}", message.into(), status.message),
                hint: advice(status.code, &status.message),
                source: None,
            },
            kube::Error::Service(_) | kube::Error::HyperError(_) => Error::Run {
                message: format!("no cluster can be reached at {}", self.server),
                hint: Some(
                    "is KUBECONFIG the one you mean? --context NAME chooses another".to_owned(),
                ),
                source: Some(Box::new(source)),
            },
            other => Error::run(message, other),
        }
    }
}

/// The namespace of jobs that name none, as far as it can be known without asking a cluster.
pub(crate) fn usual_namespace(settings: &Settings) -> String {
    let of_config = || {
        let config = runtime().ok()?.block_on(config(&settings.context.value)).ok()?;
        Some(config.default_namespace)
    };
    let stated = stated_namespace(settings).map(str::to_owned);
    stated.or_else(of_config).unwrap_or_else(|| settings.namespace.value.clone())
}

/// The namespace that settings name; the kubeconfig's counts where they do not.
fn stated_namespace(settings: &Settings) -> Option<&str> {
    match settings.namespace.from {
        Origin::BuiltIn => None,
        Origin::File { .. } | Origin::Variable(_) | Origin::Flag(_) => {
            Some(&settings.namespace.value)
        }
    }
}

/// How job objects are read that an operator will read.
pub(crate) fn reading(settings: &Settings) -> Options {
    Options { gpus_per_node: settings.gpus_per_node.value.get(), ..Options::default() }
}

/// How they are laid out and rendered when nobody asks the operator of a cluster.
pub(crate) fn engine(settings: &Settings) -> unisono_k8s::Settings {
    let domain = &settings.cluster_domain.value;
    unisono_k8s::Settings {
        cluster_domain: (!domain.is_empty()).then(|| domain.clone()),
        ..unisono_k8s::Settings::new(unisono_operator::manifests::default_image())
    }
}

/// What to do about an answer of the API server.
fn advice(code: u16, message: &str) -> Option<String> {
    let advice = match code {
        401 => "the cluster does not know you: log in again",
        403 if message.contains("exceeded quota") => {
            "wait until other jobs have ended, ask for less, or for a larger quota"
        }
        403 if message.contains("being terminated") => "choose another namespace with --namespace",
        403 => "ask whoever runs the cluster for that right",
        404 if message.contains("namespaces") => {
            "make the namespace first, or choose one with --namespace"
        }
        409 if message.contains("conflict with") => {
            "somebody else set these fields: take them out of the file, or take them over with `kubectl apply --server-side --force-conflicts --filename FILE`; --replace makes a job anew"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

async fn config(context: &str) -> Result<Config, Error> {
    if context.is_empty() {
        return Config::infer().await.map_err(|error| unconfigured(Box::new(error)));
    }
    let options =
        KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    Config::from_kubeconfig(&options).await.map_err(|error| unconfigured(Box::new(error)))
}

fn unconfigured(source: Box<dyn StdError + Send + Sync>) -> Error {
    Error::Run {
        message: "no cluster is known".to_owned(),
        hint: Some("set KUBECONFIG, or run this in a pod".to_owned()),
        source: Some(source),
    }
}

fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::run("the system gives no timers or sockets", error))
}
