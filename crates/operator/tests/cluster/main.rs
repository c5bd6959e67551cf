//! The operator on a real cluster: its definitions, its installation, and jobs of every version from their creation to
//! their end.

mod api;
mod installed;
mod life;
mod old;
mod operator;
mod story;
mod support;
mod trouble;
mod wire;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    if let Some(code) = operator::take_over() {
        return code;
    }
    let images = vec![Image::Busybox, Image::OpenMpi4];
    Suite::new(Options { nodes: 2, images, ..Options::default() })
        .test("an_old_definition_with_objects_is_taken_over", old::taken_over)
        .test("every_version_is_served_and_stored_as_written", api::stored_as_written)
        .test("good_files_of_every_version_are_taken", api::good_files)
        .test("what_can_never_run_is_refused_with_a_reason", api::refused)
        .test("a_misspelt_key_is_stored_and_warned_about", api::misspelt)
        .test("an_object_is_edited_through_any_version", api::edited_elsewhere)
        .test("workers_are_scaled_by_their_subresource", api::scaled)
        .test("kubectl_explains_every_version", api::explained)
        .test("an_installation_is_repeated_without_a_change", api::repeated)
        .test("a_job_of_every_version_ends_as_its_contract_says", life::every_version)
        .test("a_suspended_job_runs_when_it_is_resumed", life::suspended)
        .test("a_job_that_others_manage_is_left_alone", life::managed_elsewhere)
        .test("workers_go_as_the_clean_up_policy_says", life::clean_up)
        .test("a_job_is_removed_when_its_time_is_up", life::removed)
        .test("workers_come_and_go_with_their_number", life::scaled)
        .test("an_object_that_cannot_be_read_says_why_and_runs_once_mended", trouble::malformed)
        .test("a_job_of_the_same_name_runs_at_once", trouble::recreated)
        .test("an_operator_that_is_killed_leaves_no_job_behind", trouble::killed)
        .test("the_next_operator_takes_over_at_once", trouble::handed_over)
        .test("a_watch_that_is_cut_loses_nothing", trouble::watch_cut)
        .test("a_gang_starts_with_the_real_coscheduler", trouble::gang)
        .test("a_gang_of_other_schedulers_is_made_and_goes", trouble::other_gangs)
        .test("names_that_are_taken_are_told_and_waited_for", trouble::names_taken)
        .test("an_installed_operator_runs_jobs_from_its_own_image", installed::runs_jobs)
        .test("an_operator_of_one_namespace_leaves_others_alone", installed::one_namespace)
        .test("nothing_is_written_while_nothing_happens", trouble::quiet)
        .test("what_is_granted_is_what_is_used", trouble::granted_is_used)
        .run()
}
