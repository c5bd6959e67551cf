//! What is told at the first look, and what may wait.

use unisono_plan::{GroupCounts, Stage, lay_out};

use super::*;

/// What is told of a job of that version when it is first seen.
fn first_news(version: &str, template: &str) -> Vec<(String, String)> {
    let text = format!(
        "apiVersion: kubeflow.org/{version}\nkind: MPIJob\nmetadata: {{name: pi}}\nspec:\n  slotsPerWorker: 4\n  \
         mpiReplicaSpecs:\n    Launcher: {{template: {{spec: {{{template}containers: [{{name: main, image: lab/pi:1, \
         command: [mpirun, -n, \"2\", /pi]}}]}}}}}}\n    Worker: {{replicas: 2, template: {{spec: {{containers: [{{name: main, \
         image: lab/pi:1}}]}}}}}}\n"
    );
    let reading =
        unisono_dialect::read(text.as_bytes(), &unisono_dialect::Options::default()).remove(0);
    let job = reading.job.unwrap_or_else(|| panic!("{:?}", reading.notes));
    let plan = lay_out(&job, &Settings::new("x").facts("lab"), 1);
    let status = Status { created: Some(Time(1)), ..Status::default() };
    let news = news(&plan, &Status::default(), &status, &reading.notes);
    news.into_iter().map(|it| (it.reason, it.message)).collect()
}

#[test]
fn slots_that_stay_empty_are_told_once() {
    let news = first_news("v2beta1", "");
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].0 == "ValidationWarning" && news[0].1.contains("slots"), "{news:?}");
}

#[test]
fn a_restart_policy_in_a_template_is_told_in_the_word_of_each_version() {
    let reasons = |version| -> Vec<String> {
        first_news(version, "restartPolicy: Always, ").into_iter().map(|it| it.0).collect()
    };
    for (version, reason) in [
        ("v2beta1", "SetPodTemplateRestartPolicy"),
        ("v1", "SettedPodTemplateRestartPolicy"),
        ("v1alpha2", "SettedPodTemplateRestartPolicy"),
    ] {
        assert!(
            reasons(version).iter().any(|it| it == reason),
            "{version}: {:?}",
            reasons(version)
        );
    }
}

#[test]
fn how_many_pods_are_left_may_wait_and_that_none_is_left_may_not() {
    let with = |existing| {
        let groups = vec![GroupCounts { existing, ..GroupCounts::default() }];
        patience(&Status { stage: Stage::Suspended, groups, ..Status::default() }, false)
    };
    assert!(with(3) > COALESCE);
    assert_eq!(with(0), Duration::ZERO);
}

#[test]
fn what_is_in_the_way_is_told_sooner_than_how_many_pods_are_up() {
    let status = Status { stage: Stage::Starting, ..Status::default() };
    assert!(patience(&status, true) < patience(&status, false));
}
