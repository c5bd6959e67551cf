//! Variables by which every MPI finds its hosts and our way to reach them.
//!
//! All flavours' variables are set on every job. With only the names that Open MPI 4 knows, Open MPI 5 ignores the host
//! list, runs every rank on the launcher and exits 0.

use unisono_job::{Command, Group, Job, Runs};

use super::{HostfilePaths, literals};
use crate::{EngineKind, Facts, Variable};

pub(super) fn variables(job: &Job, facts: &Facts, paths: &HostfilePaths) -> Vec<Variable> {
    let shell = facts.remote_shell.as_str();
    let mut variables = literals(&[
        // Open MPI 4. Without tree spawn the daemons would detach themselves unless the session stays attached.
        ("OMPI_MCA_plm_rsh_agent", shell),
        ("OMPI_MCA_orte_default_hostfile", &paths.slots),
        ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
        ("OMPI_MCA_orte_leave_session_attached", "1"),
        ("OMPI_MCA_plm_rsh_num_concurrent", "1024"),
        // Open MPI 5. The mapping policy keeps `--oversubscribe` from putting every rank on the first host.
        ("PRTE_MCA_plm_ssh_agent", shell),
        ("PRTE_MCA_prte_default_hostfile", &paths.slots),
        ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
        ("PRTE_MCA_plm_ssh_num_concurrent", "1024"),
        ("PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"),
        // MPICH.
        ("HYDRA_LAUNCHER", "ssh"),
        ("HYDRA_LAUNCHER_EXEC", shell),
        ("HYDRA_HOST_FILE", &paths.colon),
        // Intel MPI.
        ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", shell),
        ("I_MPI_HYDRA_HOST_FILE", &paths.colon),
        ("I_MPI_HYDRA_BRANCH_COUNT", "1024"),
        // Open MPI refuses to run as root without these, in either version.
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ]);
    if facts.engine == EngineKind::Kubernetes && reaches_by_ssh(job) {
        variables.retain(|variable| variable.value != shell);
    }
    // Intel MPI does not read counts from its host file.
    if let Some(slots) = even_slots(job) {
        variables.push(Variable::new("I_MPI_PERHOST", slots.to_string()));
    }
    variables
}

/// Whether hosts are reached by ssh, as their images provide it: an entry point that must be kept cannot be given our agent.
pub(crate) fn reaches_by_ssh(job: &Job) -> bool {
    let keeps_entry =
        |group: &Group| matches!(group.runs, Runs::Ranks(Some(Command::ImageEntry(_))));
    job.groups.iter().any(|group| group.replicas > 0 && keeps_entry(group))
}

/// The slots of every host that has any, when they are all the same.
pub(crate) fn even_slots(job: &Job) -> Option<u32> {
    let mut counts = job
        .groups
        .iter()
        .filter(|group| group.replicas > 0)
        .map(|group| group.slots.count)
        .filter(|count| *count > 0);
    let first = counts.next()?;
    counts.all(|count| count == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;

    /// The job with a worker that keeps its image's entry point.
    fn kept(engine: EngineKind) -> crate::Plan {
        plan(engine, |job| {
            let arguments = vec!["--serve".to_owned()];
            job.groups[1].runs = Runs::Ranks(Some(Command::ImageEntry(arguments)));
        })
    }

    #[test]
    fn hosts_with_their_own_entry_point_are_reached_by_ssh_and_a_note_says_so() {
        let names_our_shell = |plan: &crate::Plan| {
            let shell = &plan.facts.remote_shell;
            plan.programs.iter().any(|it| it.added_env.iter().any(|it| it.value == *shell))
        };
        let by_ssh = kept(EngineKind::Kubernetes);
        assert!(by_ssh.reaches_by_ssh() && !names_our_shell(&by_ssh));
        assert!(by_ssh.notes.iter().any(|note| note.code.name == "kept-entry"));
        // On this machine no image is used, so there is nothing to keep.
        let here = kept(EngineKind::Local);
        assert!(!here.reaches_by_ssh() && names_our_shell(&here));
    }
}
