//! `MPIJob` v1alpha1: workers counted in units, one template for everybody.

use unisono_dialect::{Options, ProcessingUnit, Reading, read};
use unisono_job::{CleanUp, Command, Job, Quantity, RestartPolicy, Retry, Runs, SlotsFrom};

const TEMPLATE: &str = "template: {spec: {containers: [{name: c, image: 'lab/x:1', command: [mpirun, /x], resources: {limits: {cpu: 3, nvidia.com/gpu: 2}, requests: {memory: 1Gi}}}]}}";

fn reading(spec: &str, gpus_per_node: u32) -> Reading {
    read_with(spec, &Options { gpus_per_node, ..Options::default() })
}

fn read_with(spec: &str, options: &Options) -> Reading {
    let lines: Vec<String> = spec.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {{name: legacy}}\nspec:\n{}  {TEMPLATE}\n",
        lines.concat()
    );
    read(text.as_bytes(), options).remove(0)
}

fn job(spec: &str) -> Job {
    let reading = reading(spec, 8);
    reading.job.unwrap_or_else(|| panic!("no job: {:#?}", reading.notes))
}

/// Workers, slots, and how the slots are known.
fn size(spec: &str) -> (u32, u32, SlotsFrom) {
    let worker = &job(spec).groups[1];
    (worker.replicas, worker.slots.count, worker.slots.from)
}

fn told(spec: &str) -> Vec<String> {
    let notes = reading(spec, 8).notes;
    notes.iter().map(|it| format!("{} {}", it.code.name, it.place.as_ref().unwrap().path)).collect()
}

#[test]
fn units_are_shared_out_over_whole_nodes_or_a_part_of_one() {
    assert_eq!(size("gpus: 16"), (2, 8, SlotsFrom::Gpus));
    assert_eq!(size("gpus: 4"), (1, 4, SlotsFrom::Gpus));
    assert_eq!(size("gpus: 16\ngpusPerNode: 4"), (4, 4, SlotsFrom::Gpus));
    assert_eq!(size("processingUnits: 8\nprocessingUnitsPerNode: 2"), (4, 2, SlotsFrom::Gpus));
    assert_eq!(size("gpus: 8\nslotsPerWorker: 3"), (1, 3, SlotsFrom::Stated));
    let with_flag = reading("gpus: 16", 1).job.unwrap();
    assert_eq!(with_flag.groups[1].replicas, 16);
}

#[test]
fn replicas_take_their_slots_from_the_limit_of_the_template() {
    assert_eq!(size("replicas: 3"), (3, 2, SlotsFrom::Gpus));
    assert_eq!(size("replicas: 3\nprocessingResourceType: cpu"), (3, 3, SlotsFrom::Gpus));
}

#[test]
fn units_of_no_stated_type_are_what_the_operator_says() {
    let options = Options { processing_unit: ProcessingUnit::Cpu, ..Options::default() };
    let limits = |spec: &str| {
        let job = read_with(spec, &options).job.unwrap();
        job.groups[1].resources.limits.clone()
    };
    assert_eq!(limits("processingUnits: 8")["cpu"], Quantity::of(8));
    assert_eq!(limits("gpus: 8")["nvidia.com/gpu"], Quantity::of(8));
    let stated = limits("processingUnits: 8\nprocessingResourceType: nvidia.com/gpu");
    assert_eq!(stated["nvidia.com/gpu"], Quantity::of(8));
}

#[test]
fn launcher_and_workers_get_different_copies_of_the_template() {
    let job = job("processingUnits: 16\nprocessingResourceType: cpu\nprocessingUnitsPerNode: 8");
    let [launcher, worker] = job.groups.as_slice() else { panic!("two groups") };
    let words = ["mpirun", "/x"].map(str::to_owned).to_vec();
    assert_eq!(launcher.runs, Runs::Launch(Command::Words(words)));
    assert!(launcher.resources.limits.is_empty() && launcher.resources.requests.is_empty());
    assert_eq!(launcher.slots.count, 0);
    assert_eq!(worker.runs, Runs::Ranks(None));
    assert_eq!(worker.resources.limits["cpu"], Quantity::of(8));
    assert_eq!(worker.resources.requests.len(), 1);
    let template = |index: usize| job.groups[index].extras.as_ref().unwrap().template.clone();
    assert!(!template(0).contains("limits") && template(0).contains("mpirun"));
    assert!(!template(1).contains("mpirun") && template(1).contains(r#""cpu":8"#));
}

#[test]
fn a_launcher_on_the_master_is_bound_to_control_plane_nodes() {
    let job = job("gpus: 1\nlauncherOnMaster: true");
    let template = |index: usize| job.groups[index].extras.as_ref().unwrap().template.clone();
    assert!(template(0).contains("node-role.kubernetes.io/master"));
    assert!(template(0).contains("tolerations") && template(0).contains("nodeAffinity"));
    assert!(!template(1).contains("node-role"));
}

#[test]
fn the_rules_of_its_life_are_those_of_its_controller() {
    let read = job("gpus: 1\nbackoffLimit: 2\nactiveDeadlineSeconds: 50");
    assert_eq!(read.policies.retry, Retry::Backoff { limit: 2 });
    assert_eq!(read.policies.deadline_seconds, Some(50));
    assert_eq!(read.policies.clean_up, CleanUp::All);
    let restarts: Vec<_> = read.groups.iter().map(|it| it.restart).collect();
    assert_eq!(restarts, [RestartPolicy::OnFailure, RestartPolicy::Always]);
    assert_eq!(job("gpus: 1").policies.retry, Retry::Backoff { limit: 6 });
}

#[test]
fn exactly_one_way_to_count_workers_is_given() {
    assert_eq!(told(""), ["missing-field spec"]);
    assert_eq!(told("gpus: 8\nreplicas: 2"), ["invalid-job spec.replicas"]);
    assert_eq!(
        told("gpus: 8\nprocessingUnits: 8\nreplicas: 2"),
        ["invalid-job spec.processingUnits", "invalid-job spec.replicas"]
    );
}

#[test]
fn totals_are_1_2_4_or_a_multiple_of_8_and_fit_whole_nodes() {
    for (spec, code, hint) in [
        ("gpus: 3", "bad-form", "such as 4"),
        ("gpus: 12", "bad-form", "such as 16"),
        ("processingUnits: 6", "bad-form", "such as 8"),
        ("gpus: 8\ngpusPerNode: 3", "invalid-job", "multiple of 3"),
        ("gpus: 0", "out-of-range", ""),
    ] {
        let reading = reading(spec, 8);
        assert_eq!(reading.job, None, "{spec}");
        let fault = &reading.notes[0];
        assert_eq!(fault.code.name, code, "{spec}");
        assert!(fault.hint.clone().unwrap_or_default().contains(hint), "{fault:?}");
    }
}

#[test]
fn what_has_no_effect_is_told() {
    assert_eq!(told("replicas: 1\ngpusPerNode: 4"), ["ignored-field spec.gpusPerNode"]);
    assert_eq!(
        told("processingUnits: 8\nprocessingResourceType: tpu"),
        ["approximated-value spec.processingResourceType"]
    );
    assert_eq!(
        told("gpus: 8\nprocessingResourceType: cpu"),
        ["overridden-field spec.processingResourceType"]
    );
}
