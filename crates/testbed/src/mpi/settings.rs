//! The variables that make every flavour start its daemons through one rsh agent, on hosts that share one machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A host by name (or address) and its number of ranks.
#[derive(Clone, Debug)]
pub struct HostSlots {
    /// Its name.
    pub name: String,
    /// How many ranks it takes.
    pub slots: usize,
}

/// The hostfile that Open MPI reads. Every line carries a count, because a bare line means "all cores".
#[must_use]
pub fn open_mpi_hostfile(hosts: &[HostSlots]) -> String {
    lines(hosts, " slots=")
}

/// The hostfile that Hydra (MPICH, Intel MPI) reads.
#[must_use]
pub fn hydra_hostfile(hosts: &[HostSlots]) -> String {
    lines(hosts, ":")
}

fn lines(hosts: &[HostSlots], separator: &str) -> String {
    hosts.iter().fold(String::new(), |mut text, HostSlots { name, slots }| {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "{name}{separator}{slots}");
        text
    })
}

/// All flavours' variables at once: a job does not say which MPI its program was built with.
#[must_use]
pub fn settings(
    agent: &Path,
    open_mpi_hostfile: &Path,
    hydra_hostfile: &Path,
    slots: usize,
) -> BTreeMap<String, String> {
    let agent = agent.display().to_string();
    let open_mpi = open_mpi_hostfile.display().to_string();
    let hydra = hydra_hostfile.display().to_string();
    let slots = slots.to_string();
    [
        ("OMPI_MCA_plm_rsh_agent", agent.as_str()),
        ("OMPI_MCA_orte_default_hostfile", &open_mpi),
        // Workers hold no key to launch with, so the launcher reaches every host itself.
        ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
        // Without tree spawn orted would leave its session and the connection would end too early.
        ("OMPI_MCA_orte_leave_session_attached", "1"),
        ("OMPI_MCA_plm_rsh_num_concurrent", "1024"),
        ("PRTE_MCA_plm_ssh_agent", &agent),
        ("PRTE_MCA_prte_default_hostfile", &open_mpi),
        ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
        ("PRTE_MCA_plm_ssh_num_concurrent", "1024"),
        // Without "slot" a user's --oversubscribe puts every rank on the first host.
        ("PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"),
        ("HYDRA_LAUNCHER", "ssh"),
        ("HYDRA_LAUNCHER_EXEC", &agent),
        ("HYDRA_HOST_FILE", &hydra),
        ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", &agent),
        ("I_MPI_HYDRA_HOST_FILE", &hydra),
        // Intel MPI does not read the counts of its host file.
        ("I_MPI_PERHOST", &slots),
        ("I_MPI_HYDRA_BRANCH_COUNT", "1024"),
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        // The hosts share this machine's cores: no busy polling, no binding, no search for fabrics.
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_btl", "^ofi,openib,usnic"),
        ("OMPI_MCA_mtl", "^ofi"),
        ("PRTE_MCA_hwloc_default_binding_policy", "none"),
        // libfabric's connections over TCP deadlock in MPI_Init, in one run of ten with two ranks on each of three hosts.
        ("MPICH_CH4_NETMOD", "ucx"),
        ("I_MPI_PIN", "0"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}
