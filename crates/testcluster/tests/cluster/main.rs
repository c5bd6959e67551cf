//! A cluster does what the tests of the operator rely on.

mod faults;
mod pods;
mod remains;
mod scale;
mod skipped;

use std::process::ExitCode;

use unisono_testcluster::{Options, Suite};

fn main() -> ExitCode {
    if remains::is_owner() {
        return remains::own_until_killed();
    }
    // One node to stop, one to freeze and one to cut off.
    Suite::new(Options { nodes: 3, ..Options::default() })
        .test("a_pod_runs_on_each_node", pods::run_on_each_node)
        .test("pods_on_two_nodes_reach_each_other", pods::reach_each_other)
        .test("logs_and_exec_work", pods::logs_and_exec)
        .test("pod_security_restricted_is_enforced", pods::restricted)
        .test("a_pod_reaches_the_api_server_by_its_service", pods::api_service)
        .test("a_thread_that_enters_is_in_the_clusters_network", pods::entered)
        .exclusive("requests_writes_and_usage_are_counted", scale::counted)
        .test("fake_nodes_run_pods", scale::fake_nodes)
        .exclusive("a_second_cluster_beside_the_first_works", remains::second_cluster)
        .exclusive("a_lost_node_turns_not_ready_and_comes_back", faults::lost_nodes)
        .alone("without_go_every_test_is_skipped_and_says_why", skipped::without_go)
        .alone("a_part_that_fails_says_its_last_lines", faults::last_lines)
        .alone("up_and_down_ten_times_leaves_nothing", remains::ten_times)
        .alone("killing_the_first_process_leaves_nothing", remains::first_process_killed)
        .alone("killing_the_owner_leaves_nothing", remains::owner_killed)
        .alone("killing_the_keeper_leaves_nothing_for_long", remains::keeper_killed)
        .run()
}
