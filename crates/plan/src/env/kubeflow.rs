//! What the versions of Kubeflow's MPI operator put into a launcher and a worker.

use unisono_job::{Dialect, Flavour, Group, Job};

use super::{even_slots, literals};
use crate::Variable;

/// The option that operator gives to ssh; our way to reach hosts takes it and needs no second try.
const SSH_OPTION: &str = "-o ConnectionAttempts=10";

pub(super) fn shared(job: &Job, group: &Group, launches: bool) -> Vec<Variable> {
    let mut variables = Vec::new();
    if job.dialect == Dialect::KubeflowV2beta1 {
        let role = if launches { "launcher" } else { "worker" };
        variables.push(Variable::new("K_MPI_JOB_ROLE", role));
        if launches {
            variables.extend(version_2(job));
        }
    }
    // A launcher without ranks and without devices of its own must not grab the node's.
    if launches && group.slots.count == 0 && group.resources.gpus() == 0 {
        variables.extend(literals(&[
            ("NVIDIA_VISIBLE_DEVICES", ""),
            ("NVIDIA_DRIVER_CAPABILITIES", ""),
        ]));
    }
    variables
}

fn version_2(job: &Job) -> Vec<Variable> {
    match job.mpi.flavour {
        Some(Flavour::OpenMpi) | None => {
            let mut variables = literals(&[
                ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
                ("OMPI_MCA_plm_rsh_args", SSH_OPTION),
            ]);
            variables.extend(
                even_slots(job).map(|slots| {
                    Variable::new("OMPI_MCA_orte_set_default_slots", slots.to_string())
                }),
            );
            variables
        }
        Some(Flavour::Intel) => literals(&[("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", SSH_OPTION)]),
        Some(Flavour::Mpich) => literals(&[("HYDRA_LAUNCH_EXTRA_ARGS", SSH_OPTION)]),
    }
}
