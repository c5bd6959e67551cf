//! What a conversion into Azure ML or OpenPAI cannot carry: the parts of a job that neither has a place for.
//!
//! Jobs, groups and policies are taken apart completely, so that a new field does not compile until somebody has
//! considered it here and in the writers.

use unisono_job::{
    CleanUp, Dialect, Gang, Group, Job, LauncherStart, MpiFrom, Note, Policies, RestartPolicy,
};

use crate::codes;
use crate::kept::{KEPT_SUFFIX, Kept};

/// Gathers what is lost on the way into one dialect.
pub(crate) struct Lost<'job> {
    job: &'job Job,
    target: Dialect,
    notes: Vec<Note>,
}

impl<'job> Lost<'job> {
    pub(crate) const fn new(job: &'job Job, target: Dialect) -> Self {
        Self { job, target, notes: Vec::new() }
    }

    /// Tells that something is lost; `key` is where it stands in the neutral job.
    pub(crate) fn say(&mut self, key: &str, what: impl AsRef<str>) {
        let message = format!("{}: {} has no place for it", what.as_ref(), self.target);
        self.change(key, message);
    }

    /// Tells that something changes its meaning.
    pub(crate) fn change(&mut self, key: &str, message: impl Into<String>) {
        let note = Note::new(&codes::LOST, message).at(self.job.origins.of(key).cloned());
        // Groups often share what is lost (their image, their code): once is enough.
        if !self.notes.iter().any(|told| told.message == note.message) {
            self.notes.push(note);
        }
    }

    pub(crate) fn finish(self) -> Vec<Note> {
        self.notes
    }

    /// Parts of the job itself. `kept` is the annotation that the writer restores.
    pub(crate) fn job_parts(&mut self, kept: &str) {
        let Job {
            name: _,
            namespace,
            dialect: _,
            experiment: _,
            labels,
            annotations,
            mpi,
            groups,
            launch_rights: _,
            policies,
            secrets: _,
            origins: _,
        } = self.job;
        if let Some(namespace) = namespace {
            self.say("namespace", format!("the namespace `{namespace}`"));
        }
        if !labels.is_empty() {
            self.say("labels", format!("{} labels of the job", labels.len()));
        }
        for name in annotations.keys().filter(|name| *name != kept) {
            let parts = Kept::of(self.job, name);
            if !name.ends_with(KEPT_SUFFIX) {
                self.say("annotations", format!("the annotation `{name}`"));
            }
            for part in parts.keys().filter(|_| name.ends_with(KEPT_SUFFIX)) {
                self.say("annotations", format!("`{part}` of the file"));
            }
        }
        if let (MpiFrom::Stated, Some(flavour)) = (mpi.from, mpi.flavour) {
            self.say("mpi", format!("that the job is for {}", flavour.name()));
        }
        self.policy_parts(policies);
        for group in groups {
            self.group_parts(group);
        }
    }

    fn policy_parts(&mut self, policies: &Policies) {
        let Policies {
            retry: _,
            gang_restarts,
            deadline_seconds: _,
            clean_up,
            ttl_seconds,
            suspend,
            managed_by,
            launcher_start,
            gang:
                Gang {
                    min_members: _,
                    queue: _,
                    priority_class,
                    min_resources,
                    schedule_timeout_seconds,
                },
        } = policies;
        if *gang_restarts != Policies::DEFAULT_GANG_RESTARTS {
            self.say(
                "policies.gang_restarts",
                format!("{gang_restarts} restarts after lost members"),
            );
        }
        match clean_up {
            CleanUp::All => {}
            CleanUp::None => self.say("policies.clean_up", "that workers stay after the end"),
            CleanUp::Running => {
                self.say("policies.clean_up", "that ended workers stay after the end")
            }
        }
        if let Some(seconds) = ttl_seconds {
            self.say("policies.ttl", format!("removal {seconds} s after the end"));
        }
        if *suspend {
            self.say("policies.suspend", "that the job waits to be resumed");
        }
        if let Some(manager) = managed_by {
            self.say("policies.managed_by", format!("that `{manager}` manages the job"));
        }
        match launcher_start {
            // Both systems start the launch line when every host is there.
            LauncherStart::AtOnce | LauncherStart::AfterWorkers => {}
        }
        if let Some(class) = priority_class {
            self.say("policies.gang.priority_class", format!("the priority class `{class}`"));
        }
        if !min_resources.is_empty() {
            self.say("policies.gang.min_resources", "the gang's least resources");
        }
        if let Some(seconds) = schedule_timeout_seconds {
            self.say(
                "policies.gang.schedule_timeout",
                format!("the {seconds} s the gang may wait"),
            );
        }
    }

    fn group_parts(&mut self, group: &Group) {
        let Group {
            name,
            replicas: _,
            slots: _,
            runs,
            image: _,
            resources,
            env,
            working_dir: _,
            code: _,
            ports: _,
            shm_mib: _,
            rdma,
            end: _,
            restart,
            extras,
        } = group;
        let command = runs.command().map(|command| command.display()).unwrap_or_default();
        if self.job.dialect.is_kubernetes_object() && command.contains("$(") {
            let message = format!(
                "only Kubernetes puts values in the place of `$(NAME)`: write `$NAME` in the command of `{name}`"
            );
            self.change(&format!("{name}.command"), message);
        }
        let differs = |(key, amount)| resources.limits.get(key) != Some(amount);
        if resources.requests.iter().any(differs) {
            self.say(
                &format!("{name}.resources"),
                format!("requests of `{name}` beside its limits"),
            );
        }
        for variable in env.iter().filter(|variable| variable.value.is_none()) {
            let what = format!(
                "the variable `{}` of `{name}`, whose value only Kubernetes knows",
                variable.name
            );
            self.say(&format!("{name}.env"), what);
        }
        if *rdma {
            self.say(&format!("{name}.rdma"), format!("that `{name}` asks for RDMA"));
        }
        if *restart != RestartPolicy::Never {
            self.say(&format!("{name}.restart"), format!("the restart policy of `{name}`"));
        }
        for path in extras.iter().flat_map(|extras| &extras.kubernetes_only) {
            self.say(&format!("{name}.template"), format!("`{path}` of `{name}`"));
        }
    }
}
