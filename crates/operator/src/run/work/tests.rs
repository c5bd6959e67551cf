//! What is remembered between looks, and what is told at the first.

use serde_json::json;
use unisono_plan::{GroupCounts, Stage};

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
        patience(&Status { stage: Stage::Suspended, groups, ..Status::default() })
    };
    assert!(with(3) > COALESCE);
    assert_eq!(with(0), Duration::ZERO);
}

#[test]
fn a_look_that_does_not_come_back_leaves_what_metrics_need_to_forget_the_job() {
    let memory = Memory { launcher: Some("pi-launcher".to_owned()), ..Memory::default() };
    let lost = memory.after_failure();
    assert_eq!((lost.failures, lost.launcher.as_deref()), (1, Some("pi-launcher")));
    let panicked = lost.after_failure().after_panic();
    assert!(!panicked.panicked, "the first of several in a row is told");
    assert!(memory.after_failure().after_panic().panicked);
    assert_eq!(panicked.launcher.as_deref(), Some("pi-launcher"));
}

#[test]
fn nothing_is_remembered_of_an_earlier_job_of_the_same_name() {
    let launcher = Some("pi-launcher".to_owned());
    let expected = Expected {
        old_version: None,
        uids: Vec::new(),
        changed: Vec::new(),
        until: Instant::now(),
    };
    let memory = Memory {
        launcher: launcher.clone(),
        failures: 7,
        expected: Some(expected),
        trouble: Some("exceeded quota".to_owned()),
        is_settled: true,
        ..Memory::default()
    };
    let same = memory.about("").about("");
    assert_eq!((same.failures, same.is_settled), (7, true));
    let after = same.about("2");
    assert!(after.failures == 0 && after.expected.is_none() && after.trouble.is_none());
    assert!(!after.is_settled);
    assert_eq!(after.launcher, launcher, "metrics know it by its name");
    let failed = after.after_failure();
    assert_eq!(failed.about("2").failures, 1);
}

#[test]
fn a_look_waits_until_the_watches_show_what_the_last_one_changed() {
    let pod = |version: &str| -> Arc<unisono_k8s::slim::Pod> {
        let metadata = json!({"name": "pi-launcher", "uid": "1", "resourceVersion": version});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    };
    let object = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "lab", "uid": "0"},
    });
    let object = JobObject::new(object).unwrap();
    let until = Instant::now() + CATCH_UP;
    let changed = vec![Before::of(&pod("7"))];
    let expected = Expected { old_version: None, uids: Vec::new(), changed, until };
    let mut memory = Memory { expected: Some(expected), ..Memory::default() };
    let seen = |pods| Children { pods, ..Children::default() };
    assert_eq!(memory.not_caught_up(&object, &seen(vec![pod("7")])), Some(until));
    assert_eq!(memory.not_caught_up(&object, &seen(vec![pod("8")])), None);
    assert!(memory.expected.is_none(), "it is not waited for again");
}
