//! What an engine must know beside the job.

use std::time::Duration;

use unisono_plan::{EngineKind, Facts};

use crate::marks::HOME;

/// How long jobs usually wait for an image that cannot be had: longer than a registry is away when it is started again, and than
/// somebody needs who sees that they forgot to push it.
pub const IMAGE_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Settings of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The image that holds `/unisono-agent`.
    pub image: String,
    /// When nodes pull it; Kubernetes' own rule when absent.
    pub image_pull_policy: Option<String>,
    /// The cluster's domain, appended to host names.
    pub cluster_domain: Option<String>,
    /// Who places all pods of a job at once.
    pub gang: GangScheduler,
    /// Whether jobs that do not say get a NetworkPolicy that keeps everybody else from their agents.
    pub network_policy: bool,
    /// How long jobs wait for an image that cannot be had; for ever when absent.
    pub image_patience: Option<Duration>,
    /// How many requests may be under way at once.
    pub in_flight: usize,
}

/// A scheduler that places all or none of a job's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GangScheduler {
    /// There is none.
    #[default]
    None,
    /// The coscheduling plugin of `scheduler-plugins`.
    SchedulerPlugins {
        /// What the scheduler that has it is called.
        scheduler: String,
    },
    /// Volcano.
    Volcano,
    /// kube-batch.
    KubeBatch,
}

impl Settings {
    /// Settings with an image and the usual rest.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            image_pull_policy: None,
            cluster_domain: None,
            gang: GangScheduler::None,
            network_policy: false,
            image_patience: Some(IMAGE_PATIENCE),
            // Measured: 64 pods take a third of the time that they take one after the other; more gains nothing.
            in_flight: 32,
        }
    }

    /// What a plan for a job in this namespace needs to know.
    pub fn facts(&self, namespace: &str) -> Facts {
        Facts {
            engine: EngineKind::Kubernetes,
            places_gangs: self.gang != GangScheduler::None,
            knows_queues: matches!(self.gang, GangScheduler::Volcano | GangScheduler::KubeBatch),
            namespace: namespace.to_owned(),
            cluster_domain: self.cluster_domain.clone(),
            home: HOME.to_owned(),
            image_patience: self.image_patience,
            remote_shell: format!("{HOME}/bin/ssh"),
            ..Facts::default()
        }
    }
}
