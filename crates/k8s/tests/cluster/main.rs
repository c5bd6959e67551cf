//! Jobs on a real cluster, driven by `tick` in a plain loop: real pods, real MPI, real ends.

mod by_ssh;
mod deaths;
mod ends;
mod flavours;
mod life;
mod pods;
mod story;
mod upgrade;
mod versions;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    Suite::new(Options { nodes: 2, images: Image::ALL.to_vec(), ..Options::default() })
        .test("v2beta1_keeps_its_promises", versions::v2beta1)
        .test("v1_keeps_its_promises", versions::v1)
        .test("v1alpha2_keeps_its_promises", versions::v1alpha2)
        .test("v1alpha1_keeps_its_promises", versions::v1alpha1)
        .test("open_mpi_5_places_its_ranks", flavours::open_mpi_5)
        .test("mpich_places_its_ranks", flavours::mpich)
        .test("intel_mpi_places_its_ranks", flavours::intel_mpi)
        .test("a_launcher_that_exits_3_fails_the_job", ends::exit_3)
        .test("a_worker_that_is_killed_restarts_the_gang", ends::worker_killed)
        .test("a_suspended_job_has_no_pods_and_resumes", ends::suspended)
        .test("a_job_of_the_same_name_follows_at_once", ends::recreated)
        .test("pod_security_restricted_lets_a_job_run", pods::restricted)
        .test("an_image_without_a_shell_is_enough", pods::without_a_shell)
        .test("an_images_entry_point_is_kept", pods::kept_entry)
        .test("pods_of_one_node_share_its_network", pods::host_network)
        .test("a_launcher_can_host_all_ranks", pods::alone)
        .test("a_pod_that_fits_nowhere_says_so", pods::unschedulable)
        .test("a_running_job_grows_and_shrinks", life::scaled)
        .test("a_launcher_that_comes_last_comes_last", life::launcher_last)
        .test("an_ended_job_removes_itself_in_time", life::expired)
        .test("a_name_that_is_taken_is_left_alone", life::taken)
        .test("a_job_of_another_operator_goes_on", upgrade::running)
        .test("a_death_after_any_write_changes_nothing", deaths::after_any_write)
        .exclusive("a_lost_node_restarts_the_gang_elsewhere", ends::node_lost)
        .exclusive("a_kept_entry_point_is_reached_by_its_sshd", by_ssh::as_before)
        .run()
}
