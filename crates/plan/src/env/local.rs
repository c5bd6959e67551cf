//! Variables for hosts that share one machine. On a cluster they would switch real fabrics off.

use super::literals;
use crate::{Facts, Variable};

pub(super) fn variables(facts: &Facts) -> Vec<Variable> {
    let mut variables = literals(&[
        // Ranks that each believe they own every core must not poll or be pinned.
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("PRTE_MCA_hwloc_default_binding_policy", "none"),
        ("I_MPI_PIN", "0"),
        // Fabrics that are not here cost seconds to look for.
        ("OMPI_MCA_btl", "^ofi,openib,usnic"),
        ("OMPI_MCA_mtl", "^ofi"),
        // The other one, libfabric, deadlocks in MPI_Init over TCP: one run of ten with two ranks on each of three hosts.
        ("MPICH_CH4_NETMOD", "ucx"),
    ]);
    if !facts.hosts_are_apart {
        variables.retain(|variable| variable.name != "OMPI_MCA_btl");
        variables.extend(literals(&UNDER_ONE_NAME));
    }
    variables
}

/// Hosts that share a name: Open MPI takes ranks of different hosts for neighbours, and its ways through shared memory, whose
/// files are called by host and local rank, meet each other's. Messages over TCP and plain collectives do not care.
const UNDER_ONE_NAME: [(&str, &str); 4] = [
    ("OMPI_MCA_btl", "^ofi,openib,usnic,vader,sm,uct"),
    ("OMPI_MCA_coll", "^han,sm,xhc"),
    // For launch lines that choose their own ways (`-mca btl ^openib`): the last choice.
    ("OMPI_MCA_btl_vader_exclusivity", "0"),
    ("OMPI_MCA_btl_sm_exclusivity", "0"),
];
