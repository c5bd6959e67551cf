//! kube-batch `MPI`: both shapes, and the sizes that must meet.

use unisono_dialect::{Options, Reading, read};
use unisono_job::{CleanUp, Command, Flavour, Job, LaunchRights, RestartPolicy, Retry, Runs};

fn reading(text: &str) -> Reading {
    read(text.as_bytes(), &Options::default()).remove(0)
}

fn job(text: &str) -> Job {
    let reading = reading(text);
    reading.job.unwrap_or_else(|| panic!("no job: {:#?}", reading.notes))
}

fn told(text: &str) -> Vec<String> {
    let notes = reading(text).notes;
    notes.iter().map(|it| format!("{} {}", it.code.name, it.place.as_ref().unwrap().path)).collect()
}

const TEMPLATE: &str = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: 'lab/mpich:4', command: [mpirun], args: ['-n', '3', /bin/where]}]}}";
const HEAD: &str = "apiVersion: scheduling.incubator.k8s.io/v1alpha1\nkind: MPI\nmetadata: {name: tri, namespace: lab}\nspec:\n";

/// The shape with whole objects inside.
fn with_objects(job: &str, pod_group: &str) -> String {
    format!(
        "{HEAD}  job:\n    apiVersion: batch/v1\n    kind: Job\n    metadata: {{labels: {{team: x}}}}\n    spec: {{{job}, {TEMPLATE}}}\n  podGroup: {{spec: {{{pod_group}}}}}\n"
    )
}

/// The shape with a bare job spec.
fn with_spec(job: &str) -> String {
    format!("{HEAD}  job: {{{job}{TEMPLATE}}}\n")
}

#[test]
fn six_equal_pods_run_six_ranks_and_the_first_launches() {
    let text = include_str!("fixtures/kube-batch/shape-1-six.yaml");
    let job = job(text);
    let [pods] = job.groups.as_slice() else { panic!("one group") };
    assert_eq!((pods.replicas, pods.slots.count), (6, 1));
    let words = ["mpirun", "-n", "6", "hostname"].map(str::to_owned).to_vec();
    assert_eq!(pods.runs, Runs::LaunchOnFirst(Command::Words(words)));
    assert_eq!(job.policies.gang.min_members, Some(6));
    assert_eq!(job.mpi.flavour, Some(Flavour::Mpich));
    assert_eq!(job.launch_rights, LaunchRights::Launcher);
    assert_eq!(told(text), Vec::<String>::new());
}

#[test]
fn both_shapes_say_the_same() {
    let objects = job(&with_objects("completions: 3, parallelism: 3", "minMember: 3"));
    let spec = job(&with_spec("completions: 3, parallelism: 3, "));
    for job in [&objects, &spec] {
        let [pods] = job.groups.as_slice() else { panic!("one group") };
        assert_eq!((pods.replicas, pods.slots.count, pods.restart), (3, 1, RestartPolicy::Never));
        assert_eq!(job.policies.retry, Retry::Backoff { limit: 6 });
        assert_eq!(job.policies.clean_up, CleanUp::Running);
        assert_eq!(job.namespace.as_deref(), Some("lab"));
    }
    assert_eq!(objects.policies.gang.min_members, Some(3));
    assert_eq!(spec.policies.gang.min_members, None, "the whole job");
}

#[test]
fn rules_queue_priority_and_labels_are_taken() {
    let text = with_objects(
        "parallelism: 2, backoffLimit: 0, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5, suspend: true",
        "minMember: 2, queue: gold, priorityClassName: high",
    );
    let job = job(&text);
    assert_eq!(told(&text), Vec::<String>::new());
    assert_eq!(job.policies.retry, Retry::Backoff { limit: 0 });
    assert_eq!((job.policies.deadline_seconds, job.policies.ttl_seconds), (Some(60), Some(5)));
    assert!(job.policies.suspend);
    assert_eq!(job.policies.gang.queue.as_deref(), Some("gold"));
    assert_eq!(job.policies.gang.priority_class.as_deref(), Some("high"));
    let template = &job.groups[0].extras.as_ref().unwrap().template;
    assert!(template.contains(r#""labels":{"a":"b","team":"x"}"#), "{template}");
}

#[test]
fn sizes_that_make_a_job_hang_are_faults() {
    let hanging = [
        (with_objects("completions: 4, parallelism: 2", "minMember: 4"), "parallelism: 4"),
        (with_objects("completions: 2, parallelism: 2", "minMember: 3"), "minMember: 2"),
        (with_objects("completions: 3", "minMember: 3"), "parallelism: 3"),
        (with_spec("completions: 4, parallelism: 2, "), "parallelism: 4"),
    ];
    for (text, hint) in hanging {
        let reading = reading(&text);
        assert_eq!(reading.job, None);
        let [fault] = reading.notes.as_slice() else { panic!("one fault: {:?}", reading.notes) };
        assert_eq!(fault.code.name, "sizes-never-meet");
        assert!(fault.hint.as_deref().unwrap().contains(hint), "{fault:?}");
    }
    assert_eq!(told(&with_spec("completions: 2, ")), ["missing-field spec.job"]);
}

#[test]
fn sizes_that_only_differ_are_told() {
    let fewer = with_objects("completions: 2, parallelism: 4", "minMember: 2");
    assert_eq!(told(&fewer), ["sizes-differ spec.job.spec.completions"]);
    assert_eq!(job(&fewer).groups[0].replicas, 2);
    let half = with_objects("completions: 4, parallelism: 4", "minMember: 2");
    assert_eq!(told(&half), ["sizes-differ spec.podGroup.spec.minMember"]);
    assert_eq!(job(&half).policies.gang.min_members, Some(2));
    let unstated = with_objects("completions: 4, parallelism: 4", "queue: q");
    assert_eq!(told(&unstated), ["sizes-differ spec.podGroup"]);
    assert_eq!(job(&unstated).policies.gang.min_members, None);
}

#[test]
fn what_kube_batch_sets_itself_is_told() {
    let text = with_spec("completionMode: Indexed, parallelism: 3, ").replace(
        "spec: {containers",
        "spec: {restartPolicy: OnFailure, schedulerName: volcano, containers",
    );
    assert_eq!(
        told(&text),
        [
            "ignored-field spec.job.completionMode",
            "overridden-field spec.job.template.spec.restartPolicy",
            "overridden-field spec.job.template.spec.schedulerName"
        ]
    );
}

#[test]
fn a_job_without_its_parts_is_refused() {
    assert_eq!(told(&format!("{HEAD}  podGroup: {{}}\n")), ["missing-field spec"]);
    assert_eq!(
        told(&format!("{HEAD}  job: {{}}\n")),
        ["missing-field spec", "missing-field spec.job"]
    );
    let nothing = HEAD.trim_end_matches("spec:\n");
    assert_eq!(told(nothing), ["missing-field "]);
}

#[test]
fn a_volcano_job_is_skipped_and_says_so() {
    let volcano = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {tasks: []}\n";
    let alone = reading(volcano);
    let told: Vec<&str> = alone.notes.iter().map(|note| note.message.as_str()).collect();
    let skipped = "the Volcano Job in this file is skipped: Unisono does not read Volcano's jobs";
    assert_eq!(told, ["the file holds no MPI job", skipped]);
    let both = format!("{volcano}---\n{HEAD}  job: {{parallelism: 3, {TEMPLATE}}}\n");
    let reading = reading(&both);
    assert!(reading.job.is_some(), "{:#?}", reading.notes);
    assert!(reading.notes.iter().any(|note| note.message == skipped), "{:#?}", reading.notes);
}
