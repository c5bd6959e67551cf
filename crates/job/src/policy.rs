//! The rules of a job's life, as data. What each means is decided in the plan crate, one file per rule.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Quantity;

/// All rules of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policies {
    /// What happens when an attempt fails.
    pub retry: Retry,
    /// How often members lost to the platform (eviction, node loss) may be replaced with a restart of all ranks.
    pub gang_restarts: u32,
    /// Seconds from start after which the job is stopped and has failed.
    pub deadline_seconds: Option<u64>,
    /// Which members are removed when the job has ended.
    pub clean_up: CleanUp,
    /// Seconds after its end when the job itself is removed.
    pub ttl_seconds: Option<u64>,
    /// Whether the job is to wait until somebody resumes it.
    pub suspend: bool,
    /// Who else manages the job; Unisono then leaves it alone.
    pub managed_by: Option<String>,
    /// When the launch line's member is created.
    pub launcher_start: LauncherStart,
    /// All-or-nothing placement.
    pub gang: Gang,
}

impl Default for Policies {
    /// One attempt, members removed at the end, a gang of everybody.
    fn default() -> Self {
        Self {
            retry: Retry::Backoff { limit: 0 },
            gang_restarts: Self::DEFAULT_GANG_RESTARTS,
            deadline_seconds: None,
            clean_up: CleanUp::All,
            ttl_seconds: None,
            suspend: false,
            managed_by: None,
            launcher_start: LauncherStart::AtOnce,
            gang: Gang::default(),
        }
    }
}

impl Policies {
    /// No dialect states a budget for lost members. Three rides out a node upgrade; more hides a broken node.
    pub const DEFAULT_GANG_RESTARTS: u32 = 3;
}

/// What happens when an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// Up to `limit` more attempts, as Kubernetes' `backoffLimit` counts.
    Backoff {
        /// How many attempts may follow the first.
        limit: u32,
    },
    /// By the class of the exit code, as OpenPAI decides.
    ByClass(RetryCount),
}

/// OpenPAI's `retryCount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryCount {
    /// −2: always again, even after success.
    Always,
    /// −1: again after transient and unknown failures, without limit.
    UntilSuccess,
    /// n ≥ 0: transient failures are free, unknown ones count.
    Limited(u32),
}

/// Which members are removed when the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleanUp {
    /// None: workers stay as they are.
    None,
    /// Those that still run or wait.
    Running,
    /// All workers.
    All,
}

/// When the launcher is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LauncherStart {
    /// With everybody else; its command still waits until every host answers.
    AtOnce,
    /// After all workers are ready.
    AfterWorkers,
}

/// The restart policy a file states for members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// A failed member stays failed.
    Never,
    /// A failed member is started again.
    OnFailure,
    /// An ended member is started again.
    Always,
    /// Started again when its exit code is 128 or more.
    ExitCode,
}

/// All-or-nothing placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gang {
    /// How many members must fit at once; absent: all of them.
    pub min_members: Option<u32>,
    /// The queue the job waits in.
    pub queue: Option<String>,
    /// The priority class.
    pub priority_class: Option<String>,
    /// Resources that must be free for the gang.
    pub min_resources: BTreeMap<String, Quantity>,
    /// Seconds the gang may wait for its place.
    pub schedule_timeout_seconds: Option<u32>,
}

/// Which members may start processes on other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchRights {
    /// Only the member that runs the launch line.
    Launcher,
    /// Every member on every other, as OpenPAI's ssh keys allowed.
    Everybody,
}
