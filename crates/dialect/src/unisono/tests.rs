//! Reading `UnisonoJob`: every field, every default, every contradiction.

use unisono_job::{
    CleanUp, Command, Dialect, EndRule, Flavour, Image, LaunchRights, LauncherStart, MpiFrom,
    Policies, RestartPolicy, Retry, RetryCount, Runs, Shell, Slots, SlotsFrom,
};

use crate::{Options, Reading, read, read_object};

const HEAD: &str = "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {name: ring}\n";

fn reading(text: &str) -> Reading {
    let mut readings = read(text.as_bytes(), &Options::default());
    assert_eq!(readings.len(), 1);
    readings.remove(0)
}

fn job(spec: &str) -> unisono_job::Job {
    let reading = reading(&format!("{HEAD}{spec}"));
    reading.job.unwrap_or_else(|| panic!("it has faults: {:#?}", reading.notes))
}

/// Codes and paths of everything told about a spec.
fn told(spec: &str) -> Vec<(&'static str, String)> {
    let reading = reading(&format!("{HEAD}{spec}"));
    assert!(reading.job.is_none() || !reading.has_faults());
    let place = |note: unisono_job::Note| note.place.map(|it| it.path).unwrap_or_default();
    reading.notes.into_iter().map(|note| (note.code.name, place(note))).collect()
}

const TWO_KINDS: &str = "
spec:
  groups:
  - name: launcher
    run: Launch
    script: mpirun -np 10 ./solver
  - name: big
    replicas: 2
    resources: {limits: {nvidia.com/gpu: 4}}
  - name: small
    replicas: 2
    slots: 1
";

#[test]
fn two_kinds_of_worker_share_one_launch_line() {
    let job = job(TWO_KINDS);
    let slots: Vec<_> = job.groups.iter().map(|group| group.slots).collect();
    assert_eq!(slots, [Slots::NONE, Slots { count: 4, from: SlotsFrom::Gpus }, Slots::stated(1)]);
    assert_eq!(job.host_count(), 5);
    assert_eq!(job.slot_count(), 10);
    assert_eq!(job.launch_rights, LaunchRights::Launcher);
    assert_eq!(job.groups[0].end, EndRule::FIRST);
    assert_eq!(job.groups[1].end, EndRule::NEVER);
    assert_eq!(job.groups[1].runs, Runs::Ranks(None));
    assert_eq!(job.policies, Policies::default());
    assert_eq!(job.mpi.from, MpiFrom::Unknown);
    assert_eq!(
        job.origins.of("small.slots").map(|it| it.path.as_str()),
        Some("spec.groups[2].slots")
    );
    assert_eq!(
        job.origins.of("launcher.command").and_then(|it| it.span).map(|it| it.start.line),
        Some(9)
    );
}

#[test]
fn ranks_of_the_launch_line_are_spread_where_no_slots_are_stated() {
    let job = job(
        "spec: {groups: [{name: worker, replicas: 3, run: LaunchOnFirst, command: [mpirun, -np, '7', --allow-run-as-root], args: [./a]}]}\n",
    );
    assert_eq!(job.groups[0].slots, Slots { count: 3, from: SlotsFrom::LaunchLine });
    assert_eq!(job.mpi.flavour, Some(Flavour::OpenMpi));
    assert_eq!(job.mpi.from, MpiFrom::LaunchLine);
    let words = ["mpirun", "-np", "7", "--allow-run-as-root", "./a"].map(str::to_owned);
    assert_eq!(job.groups[0].runs, Runs::LaunchOnFirst(Command::Words(words.into())));
}

#[test]
fn groups_with_their_own_command_need_no_launch_line() {
    let job = job(
        "spec: {groups: [{name: a, run: Command, script: ./a, shell: StrictBash}, {name: b_2, run: Command, args: []}]}\n",
    );
    assert_eq!(job.launch_rights, LaunchRights::Everybody);
    assert_eq!(
        job.groups[0].runs,
        Runs::Own(Command::Line { shell: Shell::StrictBash, text: "./a".into() })
    );
    assert_eq!(job.groups[1].runs, Runs::Own(Command::ImageEntry(Vec::new())));
    assert_eq!(job.groups[0].end, EndRule { min_failed: Some(1), min_succeeded: None });
}

#[test]
fn every_field_reaches_the_model() {
    let job = job("
spec:
  experiment: nightly
  mpi: Intel
  writtenFor: openpai/v1
  launchRights: Everybody
  groups:
  - name: head
    run: Launch
    command: [mpirun, ./a]
    image: lab/a:1
    workingDir: /work
    code: ./src
    env: [{name: A, value: '1'}, {name: B}]
    ports: [{name: http, first: 8080}, {name: ssh, count: 2}]
    shmMiB: 512
    rdma: true
    completion: {minSucceeded: 1}
    restartPolicy: ExitCode
    template: {spec: {nodeSelector: {a: b}, containers: [{name: x, image: y, tty: true}, {name: z}]}}
  - {name: worker, azureEnvironment: 'azureml:tf:2', resources: {requests: {cpu: 500m}}}
  policies:
    retryCount: -1
    gangRestarts: 0
    deadlineSeconds: 60
    cleanUp: Running
    ttlSecondsAfterFinished: 5
    suspend: true
    managedBy: kueue.x-k8s.io/multikueue
    launcherStart: AfterWorkers
    gang: {minMembers: 2, queue: q, priorityClass: high, minResources: {cpu: 4}, scheduleTimeoutSeconds: 9}
");
    assert_eq!((job.experiment.as_deref(), job.dialect), (Some("nightly"), Dialect::OpenPaiV1));
    assert_eq!((job.mpi.flavour, job.mpi.from), (Some(Flavour::Intel), MpiFrom::Stated));
    let head = &job.groups[0];
    assert_eq!(head.image, Some(Image::Container("lab/a:1".into())));
    assert_eq!(head.env[1].value, None);
    assert_eq!(
        (head.ports[0].begin_at, head.ports[0].count, head.ports[1].count),
        (Some(8080), 1, 2)
    );
    assert_eq!((head.shm_mib, head.rdma), (Some(512), true));
    assert_eq!(head.restart, RestartPolicy::ExitCode);
    assert_eq!(head.end, EndRule { min_failed: None, min_succeeded: Some(1) });
    assert_eq!(
        head.extras.as_ref().map(|it| it.kubernetes_only.join(" ")).as_deref(),
        Some("spec.nodeSelector spec.containers[0].tty spec.containers[1]")
    );
    assert_eq!(job.groups[1].image, Some(Image::AzureEnvironment("azureml:tf:2".into())));
    let policies = &job.policies;
    assert_eq!(policies.retry, Retry::ByClass(RetryCount::UntilSuccess));
    assert_eq!((policies.gang_restarts, policies.clean_up), (0, CleanUp::Running));
    assert_eq!((policies.deadline_seconds, policies.ttl_seconds), (Some(60), Some(5)));
    assert_eq!((policies.suspend, policies.launcher_start), (true, LauncherStart::AfterWorkers));
    assert_eq!(policies.gang.min_members, Some(2));
}

/// A spec, what is told about it, and where.
const CONTRADICTIONS: &[(&str, &str, &str)] = &[
    ("spec: {groups: []}", "bad-form", "spec.groups"),
    ("spec: {}", "missing-field", "spec"),
    ("spec: {groups: [{name: a}]}", "invalid-job", "spec.groups[0]"),
    ("spec: {groups: [{name: a, run: Launch}]}", "missing-field", "spec.groups[0].run"),
    ("spec: {groups: [{name: a, script: x}]}", "missing-field", "spec.groups[0]"),
    (
        "spec: {groups: [{name: a, run: Launch, script: x, replicas: 2}]}",
        "invalid-job",
        "spec.groups[0].replicas",
    ),
    (
        "spec: {groups: [{name: a, run: LaunchOnFirst, script: x, replicas: 0}]}",
        "invalid-job",
        "spec.groups[0].replicas",
    ),
    (
        "spec: {groups: [{name: a, run: Launch, script: x}, {name: b, run: Launch, script: x}]}",
        "invalid-job",
        "spec.groups[1].run",
    ),
    (
        "spec: {groups: [{name: a, run: Launch, script: x}, {name: a}]}",
        "invalid-job",
        "spec.groups[1].name",
    ),
    ("spec: {groups: [{name: a b, run: Launch, script: x}]}", "bad-form", "spec.groups[0].name"),
    (
        "spec: {groups: [{name: a, run: Launch, script: x, command: [b]}]}",
        "invalid-job",
        "spec.groups[0].command",
    ),
    (
        "spec: {groups: [{name: a, run: Launch, command: [b], shell: Sh}]}",
        "invalid-job",
        "spec.groups[0].shell",
    ),
    ("spec: {groups: [{name: a, run: Launch, command: []}]}", "bad-form", "spec.groups[0].command"),
    (
        "spec: {groups: [{name: a, run: Launch, script: x, image: i, azureEnvironment: e}]}",
        "invalid-job",
        "spec.groups[0].azureEnvironment",
    ),
    (
        "spec: {groups: [{name: a, run: Command, script: x, completion: {minFailed: 2}}]}",
        "invalid-job",
        "spec.groups[0].completion.minFailed",
    ),
    (
        "spec: {groups: [{name: a, run: Command, script: x}], policies: {backoffLimit: 1, retryCount: 1}}",
        "invalid-job",
        "spec.policies.retryCount",
    ),
    (
        "spec: {groups: [{name: a, run: Command, script: x}], policies: {gang: {minMembers: 2}}}",
        "invalid-job",
        "spec.policies.gang.minMembers",
    ),
    (
        "spec: {groups: [{name: a, run: Command, script: x, templateContainer: 1, template: {spec: {containers: [{name: b}]}}}]}",
        "invalid-job",
        "spec.groups[0].templateContainer",
    ),
    ("spec: {groups: [{name: a, run: command, script: x}]}", "not-one-of", "spec.groups[0].run"),
    (
        "spec: {groups: [{name: a, run: Command, script: x}], policy: {}}",
        "unknown-key",
        "spec.policy",
    ),
];

#[test]
fn every_contradiction_is_told_where_it_stands() {
    for (spec, code, path) in CONTRADICTIONS {
        assert_eq!(told(&format!("{spec}\n")), [(*code, (*path).to_owned())], "{spec}");
    }
}

#[test]
fn what_a_cluster_adds_is_no_noise() {
    let reading = read_object(
        &serde_json::json!({
            "apiVersion": "unisono.dev/v1alpha1", "kind": "UnisonoJob",
            "metadata": {
                "name": "ring", "uid": "1", "resourceVersion": "2", "managedFields": [],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
            },
            "spec": {"groups": [{"name": "w", "run": "LaunchOnFirst", "script": "mpirun ./a"}]},
            "status": {"conditions": []},
        }),
        &Options::default(),
    );
    assert_eq!(reading.notes, []);
    let job = reading.job.expect("it is a job");
    assert_eq!(job.annotations.into_keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn names_need_the_form_of_kubernetes() {
    let text =
        HEAD.replace("ring", "Ring_1") + "spec: {groups: [{name: a, run: Command, script: x}]}\n";
    let notes = reading(&text).notes;
    assert_eq!(notes.iter().map(|it| it.code.name).collect::<Vec<_>>(), ["bad-form"]);
}

#[test]
fn code_of_a_cluster_is_bounded_and_well_formed() {
    let spec = |code: &str| {
        format!(
            "spec: {{groups: [{{name: a, run: LaunchOnFirst, command: [mpirun, x], code: '{code}'}}]}}\n"
        )
    };
    for code in ["src", "hdfs://x/y", "configmaps:x:1", "configmaps:x:64", "claim:data/ring"] {
        assert_eq!(told(&spec(code)), [], "{code}");
    }
    let wrong = [
        "configmaps:x:4294967295",
        "configmaps:x:65",
        "configmaps:x:0",
        "configmaps:x:many",
        "configmaps:x",
        "configmaps::1",
        "claim:",
    ];
    for code in wrong {
        let place = "spec.groups[0].code".to_owned();
        assert_eq!(told(&spec(code)), [("invalid-job", place)], "{code}");
    }
}
