//! What stays of runs, and for how long.

use unisono_testbed::mpi::Flavour;

use crate::{User, json};

fn run(user: &User, name: &str, rules: &str, more: &[&str]) {
    let job = format!(
        "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: {name}}}\n\
         spec:\n  experiment: {name}-tries\n  policies: {{{rules}}}\n  \
         groups: [{{name: host, slots: 1, run: LaunchOnFirst, script: 'true'}}]\n"
    );
    let output = user.run(&job, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn jobs(user: &User, more: &[&str]) -> Vec<String> {
    let listed = json(user, &[&["list", "--output", "json"], more].concat());
    let runs = listed["runs"].as_array().expect("a list").clone();
    runs.iter().map(|run| run["job"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn old_runs_go_by_number_and_by_their_own_time_unless_they_are_kept() {
    let user = User::of(Flavour::OpenMpi4);
    run(&user, "kept", "", &["--keep"]);
    run(&user, "gone-at-once", "ttlSecondsAfterFinished: 0", &[]);
    assert_eq!(jobs(&user, &[]), ["kept"]);
    run(&user, "a", "ttlSecondsAfterFinished: 3600", &[]);
    run(&user, "b", "", &[]);
    run(&user, "c", "", &["--keep-runs", "2"]);
    assert_eq!(jobs(&user, &[]), ["kept", "b", "c"]);
    assert_eq!(jobs(&user, &["--experiment", "b-tries"]), ["b"]);
}
