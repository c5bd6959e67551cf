//! What a plan needs to know beside the job: settings, the engine, and what the caller wants changed.

use std::time::Duration;

use unisono_job::Dialect;

/// What is known about the place the job will run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which kind of engine will carry the plan out.
    pub engine: EngineKind,
    /// The Kubernetes namespace of a job that names none.
    pub namespace: String,
    /// The cluster's domain, appended to host names where a dialect has full names.
    pub cluster_domain: Option<String>,
    /// Who runs the job.
    pub user: String,
    /// What OpenPAI's users call the place the job was submitted to, where the queue it waits in has another name.
    pub virtual_cluster: Option<String>,
    /// Where Unisono's own files are, inside every host.
    pub home: String,
    /// The program that runs a command on another host: called with a host and a command, as ssh is.
    pub remote_shell: String,
    /// Put in front of every path a dialect promises, for hosts that cannot have files of their own in `/etc`.
    pub file_root: String,
    /// Whether each host has a name and shared memory of its own. Where a machine refuses that, Open MPI must be told.
    pub hosts_are_apart: bool,
    /// Whether somebody places all members of a job at once.
    pub places_gangs: bool,
    /// Whether whoever places jobs knows their queues and priority classes.
    pub knows_queues: bool,
    /// In whose words status and events are told, where not in those of the job's own dialect: an object of one kind may hold a
    /// job that was written for another.
    pub told_as: Option<Dialect>,
    /// How long a job waits for an image that cannot be had; for ever when absent.
    pub image_patience: Option<Duration>,
    /// What the caller wants changed.
    pub overrides: Overrides,
}

/// The kind of engine that carries a plan out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Isolated hosts on this machine.
    Local,
    /// Kubernetes objects.
    Kubernetes,
}

/// Numbers the caller wants instead of the file's, to shrink a job to a laptop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Ranks in all.
    pub ranks: Option<u32>,
    /// Members of the group that hosts ranks.
    pub hosts: Option<u32>,
    /// Slots on every member that has any.
    pub slots: Option<u32>,
    /// Whether a leading `sleep N &&` is dropped from commands.
    pub skip_sleep: bool,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            engine: EngineKind::Local,
            namespace: "default".to_owned(),
            cluster_domain: None,
            user: "user".to_owned(),
            virtual_cluster: None,
            home: "/opt/unisono".to_owned(),
            remote_shell: "/opt/unisono/bin/ssh".to_owned(),
            file_root: String::new(),
            hosts_are_apart: true,
            places_gangs: true,
            knows_queues: true,
            told_as: None,
            image_patience: None,
            overrides: Overrides::default(),
        }
    }
}

impl Facts {
    /// Where a file that a dialect promises at `path` really is.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.file_root)
    }
}
