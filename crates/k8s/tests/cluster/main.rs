//! Jobs on a real cluster, driven by `tick` in a plain loop: real pods, real MPI, real ends. What an operator adds, and what all its
//! versions and flavours have in common, is in the stories of the operator.

mod by_ssh;
mod ends;
mod life;
mod pods;
mod story;
mod versions;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    Suite::new(Options { nodes: 2, images: Image::ALL.to_vec(), ..Options::default() })
        .test("v2beta1_keeps_its_promises", versions::v2beta1)
        .test("v1_keeps_its_promises", versions::v1)
        .test("v1alpha2_keeps_its_promises", versions::v1alpha2)
        .test("v1alpha1_keeps_its_promises", versions::v1alpha1)
        .test("a_launcher_that_exits_3_fails_the_job", ends::exit_3)
        .test("a_worker_that_is_killed_restarts_the_gang", ends::worker_killed)
        .test("a_suspended_job_has_no_pods_and_resumes", ends::suspended)
        .test("pod_security_restricted_lets_a_job_run", pods::restricted)
        .test("an_image_without_a_shell_is_enough", pods::without_a_shell)
        .test("an_images_entry_point_is_kept", pods::kept_entry)
        .test("pods_of_one_node_share_its_network", pods::host_network)
        .test("a_launcher_can_host_all_ranks", pods::alone)
        .test("a_pod_that_fits_nowhere_says_so", pods::unschedulable)
        .test("a_running_job_grows_and_shrinks", life::scaled)
        .test("a_launcher_that_comes_last_comes_last", life::launcher_last)
        .test("an_ended_job_removes_itself_in_time", life::expired)
        .exclusive("a_kept_entry_point_is_reached_by_its_sshd", by_ssh::as_before)
        .run()
}
