//! The rules of a job's life as fields of `runPolicy`, and of `spec` in v1.

use serde_json::{Map, Value, json};
use unisono_job::{
    CleanUp, Dialect, Gang, LauncherStart, Policies, RestartPolicy, Retry, RetryCount,
};

use super::Writer;
use super::roles::Roles;
use crate::kubeflow::policies::{QUEUE_ANNOTATION, priority_class};

const MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";

impl Writer<'_> {
    pub(super) fn policies(
        &mut self,
        spec: &mut Map<String, Value>,
        policies: &Policies,
        roles: &Roles<'_>,
    ) {
        let Policies {
            retry,
            gang_restarts,
            deadline_seconds,
            clean_up,
            ttl_seconds,
            suspend,
            managed_by,
            launcher_start,
            gang,
        } = policies;
        let mut run = Map::new();
        let clean_up = match clean_up {
            CleanUp::None => "None",
            CleanUp::Running => "Running",
            CleanUp::All => "All",
        };
        // The v1 controller of the MPI operator reads only the one outside.
        let place = if self.is_v2() { &mut run } else { &mut *spec };
        place.insert("cleanPodPolicy".to_owned(), clean_up.into());
        if let Some(limit) = self.backoff(*retry, roles.launcher.group.restart) {
            run.insert("backoffLimit".to_owned(), limit.into());
        }
        if *gang_restarts != Policies::DEFAULT_GANG_RESTARTS {
            self.lost(
                format!("an MPIJob has no budget for lost members; {gang_restarts} restarts are left out"),
                "write a UnisonoJob to keep it",
            );
        }
        if let Some(seconds) = deadline_seconds {
            run.insert("activeDeadlineSeconds".to_owned(), (*seconds).into());
        }
        if let Some(seconds) = ttl_seconds {
            run.insert("ttlSecondsAfterFinished".to_owned(), (*seconds).into());
            self.tell_ttl();
        }
        if *suspend {
            run.insert("suspend".to_owned(), true.into());
        }
        self.managed_by(&mut run, managed_by.as_deref());
        self.launcher_start(spec, *launcher_start, roles);
        let scheduling = self.scheduling(gang, roles);
        if !scheduling.is_empty() {
            run.insert("schedulingPolicy".to_owned(), scheduling.into());
        }
        if !run.is_empty() {
            spec.insert("runPolicy".to_owned(), run.into());
        }
    }

    /// The number of further attempts; none where the version has no use for one.
    fn backoff(&mut self, retry: Retry, launcher: RestartPolicy) -> Option<u32> {
        let limit = match retry {
            Retry::Backoff { limit } => limit,
            Retry::ByClass(count) => {
                self.lost(
                    "an MPIJob does not tell failures apart by exit code; every failure counts",
                    "set `backoffLimit` to what you need",
                );
                match count {
                    RetryCount::Limited(limit) => limit,
                    RetryCount::UntilSuccess | RetryCount::Always => i32::MAX.unsigned_abs(),
                }
            }
        };
        if self.is_v2() || launcher != RestartPolicy::Never {
            return Some(limit);
        }
        if limit > 0 {
            self.lost(
                format!("a v1 launcher with restartPolicy Never is not started again; {limit} retries are left out"),
                "write `restartPolicy: OnFailure` for Launcher, or write v2beta1",
            );
        }
        None
    }

    /// Each version removes something else after that time.
    fn tell_ttl(&mut self) {
        let source = self.job.dialect;
        if self.is_v2() && source == Dialect::KubeflowV1 {
            self.lost(
                "the MPI operator removes a v2beta1 launcher after that time, the training operator a v1 job",
                "Unisono's operator removes the job in both",
            );
        } else if !self.is_v2() && source == Dialect::KubeflowV2beta1 {
            self.lost(
                "the training operator removes a v1 job after that time, the MPI operator only a v2beta1 launcher",
                "Unisono's operator removes the job in both",
            );
        }
    }

    fn managed_by(&mut self, run: &mut Map<String, Value>, managed_by: Option<&str>) {
        match managed_by {
            Some(MULTIKUEUE) => {
                run.insert("managedBy".to_owned(), MULTIKUEUE.into());
            }
            Some(other) => self.lost(
                format!("an MPIJob cannot be managed by `{}`", crate::clipped(other)),
                format!("the one that it can is {MULTIKUEUE}"),
            ),
            None => {}
        }
    }

    fn launcher_start(
        &mut self,
        spec: &mut Map<String, Value>,
        start: LauncherStart,
        roles: &Roles<'_>,
    ) {
        let old = matches!(
            self.job.dialect,
            Dialect::KubeflowV1alpha1 | Dialect::KubeflowV1alpha2 | Dialect::KubeflowV1
        );
        let workers = roles.worker.as_ref().map_or(0, |it| it.replicas);
        // A gang that counts the launcher never fits as long as the launcher does not exist.
        let gang_fits = self.job.policies.gang.min_members.is_none_or(|least| least <= workers);
        let waits_by_itself = old && workers > 0 && gang_fits;
        match (self.is_v2(), start) {
            (true, LauncherStart::AfterWorkers) => {
                spec.insert("launcherCreationPolicy".to_owned(), "WaitForWorkersReady".into());
            }
            (true, LauncherStart::AtOnce) if waits_by_itself => {
                spec.insert("launcherCreationPolicy".to_owned(), "WaitForWorkersReady".into());
                self.converted(
                    "the launcher waits for its workers, which v2beta1 says with launcherCreationPolicy",
                );
            }
            (false, LauncherStart::AfterWorkers) => {
                self.converted("a v1 launcher is made at once and waits for its workers inside");
            }
            (true | false, LauncherStart::AtOnce) => {}
        }
    }

    /// What reading would not find by itself in annotations and templates.
    fn scheduling(&self, gang: &Gang, roles: &Roles<'_>) -> Map<String, Value> {
        let Gang {
            min_members,
            queue,
            priority_class: class,
            min_resources,
            schedule_timeout_seconds,
        } = gang;
        let mut policy = Map::new();
        if let Some(least) = min_members {
            policy.insert("minAvailable".to_owned(), (*least).into());
        }
        let annotated = self.job.annotations.get(QUEUE_ANNOTATION);
        if let Some(queue) = queue.as_ref().filter(|queue| annotated != Some(*queue)) {
            policy.insert("queue".to_owned(), json!(queue));
        }
        if !min_resources.is_empty() {
            policy.insert("minResources".to_owned(), json!(min_resources));
        }
        let members = [Some(&roles.launcher), roles.worker.as_ref()];
        let in_templates = members.into_iter().flatten().find_map(|it| priority_class(it.group));
        if let Some(class) = class.as_ref().filter(|class| in_templates.as_ref() != Some(*class)) {
            policy.insert("priorityClass".to_owned(), json!(class));
        }
        if let Some(seconds) = schedule_timeout_seconds {
            policy.insert("scheduleTimeoutSeconds".to_owned(), (*seconds).into());
        }
        policy
    }
}
