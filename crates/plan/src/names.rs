//! Names: what a job's hosts and objects are called. Every name depends on the job's name, the group and the index
//! only, so members keep theirs when the job grows; and every name fits a DNS label.

use serde::Serialize;
use unisono_job::{Dialect, Job, MAX_LABEL, System, is_dns_label, label_from, shortened};

/// Room kept for an index when a name has to be shortened: the digits of the largest index, and its dash.
const INDEX_ROOM: usize = 11;

/// Names of everything a job owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Names {
    /// The job's name as a DNS label; the job's own name whenever that is one.
    pub job: String,
    dialect: Dialect,
}

impl Names {
    /// The names of a job.
    pub fn of(job: &Job) -> Self {
        Self { job: label_from(job.name.as_str(), MAX_LABEL), dialect: job.dialect }
    }

    /// The name users call a host by.
    pub fn host(&self, job: &Job, group: &str, index: u32) -> String {
        match self.dialect.system() {
            // Role names may hold characters no label has: these names are ssh aliases, never DNS names.
            System::OpenPai => format!("{}-{index}", shortened(group, MAX_LABEL - INDEX_ROOM)),
            System::KubeBatch if job.groups.len() == 1 => {
                joined(job.name.as_str(), &index.to_string())
            }
            System::Kubeflow | System::AzureMl if group == "launcher" && index == 0 => {
                joined(job.name.as_str(), "launcher")
            }
            System::Kubeflow | System::AzureMl | System::KubeBatch | System::Unisono => {
                let group = label_from(group, MAX_LABEL / 2);
                joined(job.name.as_str(), &format!("{group}-{index}"))
            }
        }
    }

    /// The name of a host's pod. Launching pods of later epochs get the epoch's number, so that earlier ones keep
    /// their logs.
    pub fn pod(&self, job: &Job, group: &str, index: u32, launches: bool, epoch: u32) -> String {
        let name = match self.dialect.system() {
            System::OpenPai => {
                joined(job.name.as_str(), &format!("{}-{index}", label_from(group, MAX_LABEL / 2)))
            }
            System::KubeBatch | System::Kubeflow | System::AzureMl | System::Unisono => {
                self.host(job, group, index)
            }
        };
        if launches && epoch > 0 { joined(&name, &format!("try-{epoch}")) } else { name }
    }

    /// The launcher's batch Job.
    pub fn launcher_job(&self) -> String {
        match self.dialect.system() {
            System::KubeBatch => self.job.clone(),
            System::Kubeflow | System::AzureMl | System::OpenPai | System::Unisono => {
                self.ending("launcher")
            }
        }
    }

    /// The ConfigMap with the host file.
    pub fn config_map(&self) -> String {
        match self.dialect.system() {
            System::KubeBatch => self.ending("hostfile"),
            System::Kubeflow | System::AzureMl | System::OpenPai | System::Unisono => {
                self.ending("config")
            }
        }
    }

    /// kube-batch's second ConfigMap: executor, hosts and scripts.
    pub fn data_config_map(&self) -> String {
        self.ending("mpi-data")
    }

    /// The headless Service under which full host names stand.
    pub fn service(&self) -> String {
        self.job.clone()
    }

    /// The Secret with keys for ssh.
    pub fn ssh_secret(&self) -> String {
        self.ending("ssh")
    }

    /// The PodGroup.
    pub fn pod_group(&self) -> String {
        match self.dialect.system() {
            System::KubeBatch => self.ending("podgroup"),
            System::Kubeflow | System::AzureMl | System::OpenPai | System::Unisono => {
                self.job.clone()
            }
        }
    }

    /// Another object that belongs to the job, by its ending.
    pub fn ending(&self, ending: &str) -> String {
        joined(&self.job, ending)
    }
}

/// `stem-ending` as a DNS label. The stem is kept whole whenever that fits.
fn joined(stem: &str, ending: &str) -> String {
    let whole = format!("{stem}-{ending}");
    if is_dns_label(&whole) {
        return whole;
    }
    let room = MAX_LABEL.saturating_sub(ending.len() + 1);
    format!("{}-{ending}", label_from(stem, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_is_joined_as_it_is() {
        assert_eq!(joined("stencil", "worker-0"), "stencil-worker-0");
        let longest = "x".repeat(MAX_LABEL - "-worker-0".len());
        assert_eq!(joined(&longest, "worker-0"), format!("{longest}-worker-0"));
    }

    #[test]
    fn a_name_that_does_not_fit_is_shortened_and_keeps_its_ending() {
        for stem in ["x".repeat(200), "My.Job".to_owned(), "-".to_owned()] {
            let name = joined(&stem, "worker-100000");
            assert!(is_dns_label(&name) && name.ends_with("-worker-100000"), "{name}");
        }
    }
}
