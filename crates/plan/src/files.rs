//! Files Unisono puts into hosts: what the dialect promises, and a host file for each family of MPIs.

use unisono_job::{Dialect, Job};

use crate::env::{HostfilePaths, may_start_ranks};
use crate::hostfile::Form;
use crate::{Facts, FileContent, PlannedFile};

const READABLE: u32 = 0o444;
const EXECUTABLE: u32 = 0o555;

pub(crate) fn planned(job: &Job, facts: &Facts, launches: bool) -> Vec<PlannedFile> {
    let mut files = Vec::new();
    if may_start_ranks(job, launches) {
        files.extend(hostfiles(job, facts));
        files.extend(discover_hosts(job, facts));
    }
    files.extend(remote_shell_script(job, facts));
    files
}

fn hostfiles(job: &Job, facts: &Facts) -> Vec<PlannedFile> {
    let paths = HostfilePaths::of(job, facts);
    let mut files = vec![file(paths.promised.clone(), FileContent::Hostfile(Form::promised(job)))];
    for (path, form) in [(paths.slots, Form::Slots), (paths.colon, Form::Colon)] {
        if path != paths.promised {
            files.push(file(path, FileContent::Hostfile(form)));
        }
    }
    files
}

fn discover_hosts(job: &Job, facts: &Facts) -> Option<PlannedFile> {
    let with_slots = match job.dialect {
        Dialect::KubeflowV1 | Dialect::Unisono => true,
        Dialect::KubeflowV2beta1 => false,
        Dialect::AzureMpiJob
        | Dialect::AzureFlat
        | Dialect::AzureCommand
        | Dialect::OpenPaiV1
        | Dialect::OpenPaiV2
        | Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeBatch => return None,
    };
    Some(PlannedFile {
        mode: EXECUTABLE,
        ..file(facts.path("/etc/mpi/discover_hosts.sh"), FileContent::DiscoverHosts { with_slots })
    })
}

/// Where kube-batch's pods have the script that reaches other pods.
pub(crate) const KUBE_EXEC: &str = "/entry/kubeexec.sh";

/// The script by which scripts of the older versions reached a worker; it now calls our way to reach one.
fn remote_shell_script(job: &Job, facts: &Facts) -> Option<PlannedFile> {
    let path = match job.dialect {
        Dialect::KubeflowV1alpha1 | Dialect::KubeflowV1alpha2 | Dialect::KubeflowV1 => {
            "/etc/mpi/kubexec.sh"
        }
        Dialect::KubeBatch => KUBE_EXEC,
        Dialect::AzureMpiJob
        | Dialect::AzureFlat
        | Dialect::AzureCommand
        | Dialect::OpenPaiV1
        | Dialect::OpenPaiV2
        | Dialect::KubeflowV2beta1
        | Dialect::Unisono => return None,
    };
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", facts.remote_shell);
    Some(PlannedFile { mode: EXECUTABLE, ..file(facts.path(path), FileContent::Text(script)) })
}

const fn file(path: String, content: FileContent) -> PlannedFile {
    PlannedFile { path, mode: READABLE, content }
}
