//! The operator on a real cluster: its definitions, its installation, and jobs of every version from their creation to
//! their end.

mod adopted;
mod api;
mod beside;
mod broken;
mod deaths;
mod faults;
mod flavours;
mod gangs;
mod kinds;
mod kube_batch;
mod life;
mod losses;
mod old;
mod operator;
mod remains;
mod rights;
mod story;
mod support;
mod tenant;
mod tour;
mod trouble;
mod truth;
mod watched;
mod wire;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    if let Some(code) = operator::take_over() {
        return code;
    }
    let images = vec![Image::Busybox, Image::OpenMpi4, Image::OtherMpis];
    // Kubelets that were without an API server need some time to speak again.
    let tolerated = ["not-ready", "unreachable"];
    let flags = tolerated.map(|it| format!("--default-{it}-toleration-seconds=25"));
    let options =
        Options { nodes: 2, images, api_server_flags: flags.into(), ..Options::default() };
    Suite::new(options)
        .test("a_death_at_any_write_changes_nothing", deaths::at_any_write)
        .test("calls_that_fail_change_nothing", broken::calls_fail)
        .test("watches_that_are_cut_lose_nothing", broken::watches_cut)
        .test("connections_that_are_cut_lose_nothing", broken::connections_cut)
        .test("every_mpi_of_every_version_is_spread_over_two_nodes", flavours::of_every_version)
        .test("a_thousand_workers_are_told_to_their_launcher", life::thousand)
        .test("a_look_that_panics_harms_no_other_job", broken::one_look_panics)
        .test("a_gang_starts_with_the_real_coscheduler", gangs::coscheduled)
        .test("no_pod_of_a_gang_that_is_too_large_gets_a_node", losses::gang_too_large)
        .test("v1_says_that_it_failed_and_who_was_evicted", tour::v1_fails_and_is_evicted)
        .test("v1alpha2_says_restarting_and_failed", tour::v1alpha2_restarts_and_fails)
        .test("a_deadline_ends_a_job_of_every_version", tour::deadlines)
        .test("a_job_that_shrinks_loses_its_last_workers", tour::scaled_down)
        .test("workers_that_have_ended_stay_or_go_by_policy", tour::clean_up_of_the_ended)
        .test("a_job_that_nobody_saw_running_says_that_it_ran", tour::never_seen_running)
        .test("a_worker_that_makes_room_restarts_the_gang", losses::preempted)
        .test("a_worker_without_memory_restarts_the_gang", losses::worker_starved)
        .test("names_that_are_taken_are_told_and_waited_for", trouble::names_taken)
        .test("a_job_of_every_version_ends_as_its_contract_says", life::every_version)
        .test("a_job_that_fails_says_what_failed_first_and_why", truth::failures)
        .test("what_somebody_takes_away_is_made_anew", truth::disturbed)
        .test("what_runs_beside_a_command_ends_with_it", beside::sleepers)
        .test("a_job_that_waits_says_what_is_in_its_way", truth::waiting)
        .test("a_job_whose_ranks_ran_elsewhere_says_where", truth::elsewhere)
        .test("a_job_whose_pods_are_refused_says_so_and_runs_later", truth::quota)
        .test("either_shape_of_kube_batch_runs_with_all_it_was_promised", kube_batch::either_shape)
        .test("roles_of_openpai_reach_each_other_by_name", kinds::openpai)
        .test("groups_of_a_unisonojob_have_slots_of_their_own", kinds::several_groups)
        .test("what_follows_a_failure_depends_on_its_class", kinds::failures)
        .test("what_no_other_kind_of_job_can_be_is_refused_with_a_reason", kinds::refused)
        .test("a_job_of_2020_reads_as_it_did_then", life::as_in_2020)
        .test("a_suspended_job_runs_when_it_is_resumed", life::suspended)
        .test("workers_come_and_go_with_their_number", life::scaled)
        .test("a_gang_of_other_schedulers_is_made_and_goes", gangs::of_others)
        .test("an_object_that_cannot_be_read_says_why_and_runs_once_mended", trouble::malformed)
        .test("a_job_of_the_same_name_runs_at_once", trouble::recreated)
        .test("the_next_operator_takes_over_at_once", trouble::handed_over)
        .test("a_running_job_of_another_operator_goes_on", adopted::goes_on)
        .test("workers_go_as_the_clean_up_policy_says", life::clean_up)
        .test("hosts_are_named_in_the_clusters_own_domain", flavours::in_a_domain)
        .test("an_operator_tells_its_health_and_numbers", watched::health)
        .test("kubectl_follows_a_launcher", watched::followed)
        .test("a_job_that_others_manage_is_left_alone", life::managed_elsewhere)
        .test("a_job_is_removed_when_its_time_is_up", life::removed)
        .test("an_operator_of_one_namespace_leaves_others_alone", tenant::one_namespace)
        .test("whoever_may_edit_a_namespace_may_run_jobs_there", rights::of_people)
        .test("every_version_is_served_and_stored_as_written", api::stored_as_written)
        .test("good_files_of_every_version_are_taken", api::good_files)
        .test("what_can_never_run_is_refused_with_a_reason", api::refused)
        .test("what_an_old_definition_took_is_taken", api::taken_as_before)
        .test("a_misspelt_key_is_stored_and_warned_about", api::misspelt)
        .test("an_object_is_edited_through_any_version", api::edited_elsewhere)
        .test("workers_are_scaled_by_their_subresource", api::scaled)
        .test("kubectl_explains_every_version", api::explained)
        .exclusive("an_installation_is_repeated_without_a_change", api::repeated)
        .exclusive("an_old_definition_with_objects_is_taken_over", old::taken_over)
        .exclusive("nothing_is_written_while_nothing_happens", rights::quiet)
        .exclusive("what_is_granted_is_what_is_used", rights::granted_is_used)
        .exclusive("a_job_goes_on_while_the_api_server_is_away", broken::server_away)
        .run()
}
