//! The tests of MPIs run with the very variables that a plan gives to a job on this machine.

use std::collections::BTreeMap;
use std::path::Path;

use unisono_plan::{Facts, lay_out};
use unisono_testbed::mpi::settings;
use unisono_testkit::jobs::azure;

#[test]
fn tests_run_with_the_variables_that_a_plan_sets() {
    let job = azure("job", 3, 2, "mpirun ./program");
    let facts = Facts::default();
    let plan = lay_out(&job, &facts, 1);
    let variables = &plan.program_of(plan.launch_host().unwrap()).added_env;
    let planned: BTreeMap<String, String> = variables
        .iter()
        .map(|it| (it.name.clone(), it.value.clone()))
        .filter(|(name, _)| {
            ["OMPI_", "PRTE_", "HYDRA_", "I_MPI_", "MPICH_"].iter().any(|it| name.starts_with(it))
        })
        .collect();
    let path = |name: &str| Path::new(&planned[name]);
    let tested = settings(
        Path::new(&facts.remote_shell),
        path("PRTE_MCA_prte_default_hostfile"),
        path("HYDRA_HOST_FILE"),
        2,
    );
    assert_eq!(tested, planned);
}
