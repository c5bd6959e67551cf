//! Labels: every pod carries those of all versions of the job's system, so that any selector finds it.

use serde_json::{Map, Value};
use unisono_job::{Dialect, MAX_LABEL, System, label_from};
use unisono_plan::Host;

use super::Rendering;
use crate::marks;

impl Rendering<'_> {
    /// Labels of objects that are not about one role.
    pub(crate) fn shared_labels(&self) -> Map<String, Value> {
        let mut labels = self.own_labels();
        set(&mut labels, "app", &self.plan.names.job);
        labels
    }

    /// Labels of a host's pod, or of what makes such pods.
    pub(crate) fn role_labels(&self, host: &Host) -> Map<String, Value> {
        let mut labels = self.own_labels();
        match self.plan.job.dialect.system() {
            System::Kubeflow => self.kubeflow_labels(host, &mut labels),
            System::AzureMl | System::Unisono | System::OpenPai => {
                self.kubeflow_labels(host, &mut labels);
                let group = label_from(&self.plan.group_of(host).name, MAX_LABEL);
                set(&mut labels, marks::GROUP, &group);
            }
            System::KubeBatch => labels = self.job_labels(),
        }
        labels
    }

    /// Labels of everything that kube-batch's contract has, and those by which operators find what belongs to jobs.
    pub(super) fn job_labels(&self) -> Map<String, Value> {
        let (mut labels, job) = (self.own_labels(), &self.plan.names.job);
        for (name, value) in [
            ("job-name", job.as_str()),
            ("job-type", "mpi-job"),
            ("training.kubeflow.org/operator-name", "mpi-operator"),
            (marks::JOB_NAME, job),
        ] {
            set(&mut labels, name, value);
        }
        labels
    }

    fn own_labels(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        set(&mut labels, marks::JOB_UID, &self.owner.uid);
        for name in marks::QUEUE_LABELS {
            if let Some(value) = self.plan.job.labels.get(name) {
                set(&mut labels, name, value);
            }
        }
        labels
    }

    fn kubeflow_labels(&self, host: &Host, labels: &mut Map<String, Value>) {
        let job = &self.plan.names.job;
        let launches = host.runs.launches();
        let role = if launches { "launcher" } else { "worker" };
        // v1 and its successor called these two otherwise than v2beta1.
        let is_v1 = self.plan.job.dialect == Dialect::KubeflowV1;
        let operator = if is_v1 { "mpijob-controller" } else { "mpi-operator" };
        let job_role = if is_v1 && launches { "master" } else { role };
        for (name, value) in [
            ("group_name", "kubeflow.org"),
            ("mpi_job_name", job),
            ("mpi_role_type", role),
            ("group-name", "kubeflow.org"),
            ("mpi-job-name", job),
            (marks::ROLE, role),
            ("training.kubeflow.org/operator-name", operator),
            (marks::JOB_NAME, job),
            ("training.kubeflow.org/job-role", job_role),
            ("training.kubeflow.org/replica-type", role),
        ] {
            set(labels, name, value);
        }
        let index = host.member.index;
        if !launches {
            set(labels, "replica-index", &index.to_string());
        }
        // With ranks on the launcher, it is number 0 and the workers follow.
        let launcher_hosts_ranks = self.plan.launch_host().is_some_and(|host| host.slots > 0);
        let place = match (launches, launcher_hosts_ranks) {
            (true, true) => Some(0),
            (true, false) => None,
            (false, shifted) => Some(index + u32::from(shifted)),
        };
        if let Some(place) = place {
            set(labels, "training.kubeflow.org/replica-index", &place.to_string());
        }
    }
}

pub(super) fn set(labels: &mut Map<String, Value>, name: &str, value: &str) {
    labels.insert(name.to_owned(), Value::from(value));
}
