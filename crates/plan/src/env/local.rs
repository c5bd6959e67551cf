//! Variables for hosts that share one machine. On a cluster they would switch real fabrics off.

use super::literals;
use crate::Variable;

pub(super) fn variables() -> Vec<Variable> {
    literals(&[
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
    ])
}
