//! `unisono submit` on a real cluster: the same small MPI program in every dialect, and everything that can be in the way.

mod desk;
mod dialects;
#[path = "../support/every_dialect.rs"]
mod every_dialect;
mod failures;
mod installed;
mod places;
mod promised;
mod trouble;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    let images = vec![Image::OpenMpi4];
    Suite::new(Options { nodes: 2, images, ..Options::default() })
        .test("a_job_of_every_dialect_ends_as_it_does_here", dialects::every_one)
        .test("a_job_is_followed_looked_at_and_stopped", trouble::followed)
        .test("a_name_means_what_runs_here_or_there", trouble::here_and_there)
        .test("ksonnets_commands_run_and_remove_a_job", trouble::ksonnet)
        .test("places_and_devices_are_those_of_the_settings", places::as_set)
        .test("code_in_a_volume_is_where_every_host_starts", places::code_in_a_volume)
        .test("a_queue_of_the_settings_is_that_of_the_pod_group", places::queued)
        .test("a_dry_run_prints_every_object_that_there_will_be", promised::kept)
        .test("what_fails_is_told_and_leaves_nothing_behind", trouble::failures)
        .test("a_bad_end_is_told_and_its_code_passed_on", failures::told)
        .test("a_namespace_that_goes_takes_its_job_along_and_is_told", trouble::namespace_removed)
        .test(
            "a_worker_without_an_image_keeps_its_job_waiting_and_is_told",
            failures::waits_for_image,
        )
        .test("a_job_without_an_image_fails_after_a_while_and_is_told", failures::imageless)
        .exclusive("a_log_goes_on_when_the_api_server_starts_again", trouble::cut)
        .exclusive("a_job_survives_a_node_that_stops_in_the_middle", failures::node_stopped)
        .exclusive("without_an_operator_submitting_says_how_to_get_one", trouble::no_operator)
        .exclusive(
            "ksonnets_quick_start_installs_an_operator_and_runs_a_job",
            installed::quick_start,
        )
        .exclusive("an_installed_operator_runs_jobs_from_its_own_image", installed::runs_jobs)
        .run()
}
