//! `MPIJob` v1alpha2, v1 and v2beta1: what a file says, what its version adds, and what is told about it.

use unisono_dialect::{Options, Reading, read, read_object};
use unisono_job::{
    CleanUp, Command, Dialect, Flavour, Job, LauncherStart, MpiFrom, Origins, RestartPolicy, Retry,
    Runs, SlotsFrom,
};

/// An MPIJob: lines under `spec`, under `Launcher` and under `Worker`; `-` leaves the entry out.
fn document(version: &str, spec: &str, launcher: &str, worker: &str) -> String {
    let head =
        format!("apiVersion: kubeflow.org/{version}\nkind: MPIJob\nmetadata: {{name: stencil}}");
    let command = ", command: [mpirun], args: [/app/stencil]";
    let mut lines = vec![head, "spec:".to_owned()];
    lines.extend(spec.lines().map(|line| format!("  {line}")));
    lines.push("  mpiReplicaSpecs:".to_owned());
    for (key, more, command) in [("Launcher", launcher, command), ("Worker", worker, "")] {
        if more == "-" {
            continue;
        }
        lines.push(format!("    {key}:"));
        lines.extend(more.lines().map(|line| format!("      {line}")));
        if !more.contains("template:") {
            lines.push(format!(
                "      template: {{spec: {{containers: [{{name: main, image: 'lab/stencil:5'{command}}}]}}}}"
            ));
        }
    }
    lines.join("\n") + "\n"
}

fn reading(text: &str) -> Reading {
    let mut readings = read(text.as_bytes(), &Options::default());
    assert_eq!(readings.len(), 1);
    readings.remove(0)
}

fn job(text: &str) -> Job {
    let reading = reading(text);
    reading.job.unwrap_or_else(|| panic!("no job: {:#?}\n{text}", reading.notes))
}

/// Every note as `code path`.
fn told(text: &str) -> Vec<String> {
    let place = |note: &unisono_job::Note| note.place.clone().map(|it| it.path).unwrap_or_default();
    reading(text).notes.iter().map(|it| format!("{} {}", it.code.name, place(it))).collect()
}

#[test]
fn an_object_as_kubectl_prints_it_is_read_without_noise() {
    let text = include_str!("fixtures/kubeflow/v1alpha2-as-printed.yaml");
    let job = job(text);
    assert_eq!(
        told(text),
        [
            "unknown-key spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].resources.request",
            "unknown-key spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.request",
        ]
    );
    let hints: Vec<_> = reading(text).notes.into_iter().filter_map(|it| it.hint).collect();
    assert_eq!(hints, ["did you mean `requests`?"; 2]);
    let [launcher, worker] = job.groups.as_slice() else { panic!("two groups") };
    assert_eq!((launcher.replicas, launcher.slots.count), (1, 0));
    assert_eq!((worker.replicas, worker.slots.count), (1, 2));
    assert_eq!(job.policies.clean_up, CleanUp::Running);
    assert_eq!(job.mpi.flavour, Some(Flavour::OpenMpi));
    assert_eq!(job.mpi.from, MpiFrom::LaunchLine);
    assert_eq!(job.namespace.as_deref(), Some("default"));
    assert!(job.annotations.is_empty());
    let words = ["/bin/bash", "-c", "mpirun --allow-run-as-root python fashion.py"];
    assert_eq!(launcher.runs, Runs::Launch(Command::Words(words.map(str::to_owned).to_vec())));
    assert_eq!(worker.runs, Runs::Ranks(None));
}

#[test]
fn each_version_has_its_own_defaults() {
    let facts = |version, worker| {
        let job = job(&document(version, "", "", worker));
        let restarts: Vec<_> = job.groups.iter().map(|it| it.restart).collect();
        let slots = job.groups.last().unwrap().slots;
        assert_eq!((slots.count, slots.from), (1, SlotsFrom::Default));
        assert_eq!(job.policies.clean_up, CleanUp::None);
        assert_eq!(job.policies.launcher_start, LauncherStart::AtOnce);
        (job.dialect, job.policies.retry, restarts)
    };
    use RestartPolicy::{Always, Never, OnFailure};
    assert_eq!(
        facts("v1alpha2", "replicas: 2"),
        (Dialect::KubeflowV1alpha2, Retry::Backoff { limit: 6 }, vec![OnFailure, Always])
    );
    assert_eq!(
        facts("v1", "replicas: 2"),
        (Dialect::KubeflowV1, Retry::Backoff { limit: 0 }, vec![Never, Never])
    );
    assert_eq!(
        facts("v2beta1", "replicas: 2"),
        (Dialect::KubeflowV2beta1, Retry::Backoff { limit: 6 }, vec![OnFailure, Never])
    );
}

#[test]
fn run_policy_wins_over_the_top_in_v1alpha2_except_for_clean_up() {
    let spec = "backoffLimit: 2\nactiveDeadlineSeconds: 100\ncleanPodPolicy: All\nrunPolicy: {backoffLimit: 3, activeDeadlineSeconds: 7, cleanPodPolicy: Running, ttlSecondsAfterFinished: 9}";
    let text = document("v1alpha2", spec, "", "replicas: 1");
    let job = job(&text);
    assert_eq!(job.policies.retry, Retry::Backoff { limit: 3 });
    assert_eq!(job.policies.deadline_seconds, Some(7));
    assert_eq!((job.policies.clean_up, job.policies.ttl_seconds), (CleanUp::All, None));
    assert_eq!(
        told(&text),
        [
            "ignored-field spec.runPolicy.cleanPodPolicy",
            "ignored-field spec.runPolicy.ttlSecondsAfterFinished"
        ]
    );
}

#[test]
fn restart_policies_of_v1alpha2_act_as_its_controller_did() {
    let text =
        document("v1alpha2", "", "restartPolicy: ExitCode", "replicas: 1\nrestartPolicy: Never");
    let restarts: Vec<_> = job(&text).groups.iter().map(|it| it.restart).collect();
    assert_eq!(restarts, [RestartPolicy::OnFailure, RestartPolicy::Always]);
    assert_eq!(
        told(&text),
        [
            "approximated-value spec.mpiReplicaSpecs.Launcher.restartPolicy",
            "overridden-field spec.mpiReplicaSpecs.Worker.restartPolicy"
        ]
    );
}

#[test]
fn words_that_the_definition_of_v1alpha2_took_are_taken_and_told() {
    let spec =
        "cleanPodPolicy: running\nrunPolicy: {cleanPodPolicy: never, ttlSecondsAfterFinished: -1}";
    let text =
        document("v1alpha2", spec, "restartPolicy: never", "replicas: 1\nrestartPolicy: maybe");
    let job = job(&text);
    assert_eq!(job.policies.clean_up, CleanUp::None);
    let restarts: Vec<_> = job.groups.iter().map(|it| it.restart).collect();
    assert_eq!(restarts, [RestartPolicy::OnFailure, RestartPolicy::Always]);
    let mut told = told(&text);
    told.sort();
    assert_eq!(
        told,
        [
            "approximated-value spec.cleanPodPolicy",
            "approximated-value spec.mpiReplicaSpecs.Launcher.restartPolicy",
            "ignored-field spec.runPolicy.cleanPodPolicy",
            "ignored-field spec.runPolicy.ttlSecondsAfterFinished",
            "overridden-field spec.mpiReplicaSpecs.Worker.restartPolicy",
        ]
    );
}

#[test]
fn a_clean_up_policy_that_nobody_knows_keeps_the_workers_of_v1() {
    for (spec, path) in [
        ("cleanPodPolicy: running", "cleanPodPolicy"),
        ("runPolicy: {cleanPodPolicy: all}", "runPolicy.cleanPodPolicy"),
    ] {
        let text = document("v1", spec, "", "replicas: 1");
        assert_eq!(job(&text).policies.clean_up, CleanUp::None);
        assert_eq!(told(&text), [format!("approximated-value spec.{path}")]);
    }
}

#[test]
fn v1_takes_clean_up_from_the_run_policy_and_never_retries_a_launcher_that_never_restarts() {
    let spec = "cleanPodPolicy: All\nrunPolicy: {cleanPodPolicy: Running, backoffLimit: 4, ttlSecondsAfterFinished: 60, suspend: true, managedBy: kueue.x-k8s.io/multikueue}";
    let text = document("v1", spec, "", "replicas: 2");
    let policies = job(&text).policies;
    assert_eq!((policies.clean_up, policies.ttl_seconds), (CleanUp::Running, Some(60)));
    assert!(policies.suspend);
    assert_eq!(policies.managed_by.as_deref(), Some("kueue.x-k8s.io/multikueue"));
    assert_eq!(
        told(&text),
        ["overridden-field spec.cleanPodPolicy", "overridden-field spec.runPolicy.backoffLimit"]
    );
    let retrying = document("v1", spec, "restartPolicy: OnFailure", "replicas: 2");
    assert_eq!(job(&retrying).policies.retry, Retry::Backoff { limit: 4 });
}

#[test]
fn a_v1_launcher_with_a_gpu_hosts_ranks() {
    let launcher = "template: {spec: {containers: [{name: a, image: b, command: [mpirun, x], resources: {limits: {amd.com/gpu: 2}}}]}}";
    let gpu = job(&document("v1", "slotsPerWorker: 2", launcher, "replicas: 1"));
    assert_eq!(gpu.groups[0].slots.count, 2);
    let old = job(&document("v1alpha2", "slotsPerWorker: 2", launcher, "replicas: 1"));
    assert_eq!(old.groups[0].slots.count, 0);
}

#[test]
fn v1_workers_may_be_none() {
    let text = document("v1", "", "", "restartPolicy: Never");
    assert_eq!(job(&text).groups.len(), 1);
    assert_eq!(told(&text), ["ignored-field spec.mpiReplicaSpecs.Worker"]);
}

#[test]
fn a_v2beta1_launcher_can_be_alone() {
    let spec = "runLauncherAsWorker: true\nslotsPerWorker: 4\nsshAuthMountPath: /home/mpiuser/.ssh\nrunPolicy: {cleanPodPolicy: Running, backoffLimit: 0, activeDeadlineSeconds: 900}";
    let job = job(&document("v2beta1", spec, "", "-"));
    let [launcher] = job.groups.as_slice() else { panic!("one group") };
    assert_eq!((launcher.slots.count, launcher.slots.from), (4, SlotsFrom::Stated));
    let extras = launcher.extras.as_ref().unwrap();
    assert_eq!(extras.ssh_auth_path.as_deref(), Some("/home/mpiuser/.ssh"));
    assert_eq!(job.policies.retry, Retry::Backoff { limit: 0 });
    assert_eq!(job.policies.deadline_seconds, Some(900));
}

#[test]
fn a_creation_policy_that_nobody_knows_waits() {
    let start = |policy: &str| {
        let text =
            document("v2beta1", &format!("launcherCreationPolicy: {policy}"), "", "replicas: 1");
        (job(&text).policies.launcher_start, told(&text))
    };
    assert_eq!(start("AtStartup"), (LauncherStart::AtOnce, vec![]));
    assert_eq!(start("WaitForWorkersReady"), (LauncherStart::AfterWorkers, vec![]));
    let warned = vec!["approximated-value spec.launcherCreationPolicy".to_owned()];
    assert_eq!(start("Later"), (LauncherStart::AfterWorkers, warned));
}

#[test]
fn gangs_have_a_size_a_queue_and_a_priority() {
    let spec = "runPolicy: {schedulingPolicy: {minAvailable: 9, queue: gold, priorityClass: high, scheduleTimeoutSeconds: 30, minResources: {cpu: 4}}, managedBy: kubeflow.org/mpi-operator}";
    let text = document("v2beta1", spec, "", "replicas: 2");
    let policies = job(&text).policies;
    let gang = &policies.gang;
    assert_eq!((gang.min_members, gang.queue.as_deref()), (Some(9), Some("gold")));
    assert_eq!(gang.priority_class.as_deref(), Some("high"));
    assert_eq!(gang.schedule_timeout_seconds, Some(30));
    assert_eq!(gang.min_resources["cpu"].whole(), 4);
    assert_eq!(policies.managed_by, None, "the operator itself is nobody else");
    assert_eq!(told(&text), ["gang-larger-than-job spec.runPolicy.schedulingPolicy.minAvailable"]);
}

#[test]
fn a_gang_cannot_wait_for_a_launcher_that_waits_for_the_gang() {
    let policy = "runPolicy: {schedulingPolicy: {minAvailable: 3}}";
    let waiting = format!("launcherCreationPolicy: WaitForWorkersReady\n{policy}");
    assert_eq!(told(&document("v2beta1", policy, "", "replicas: 2")), Vec::<String>::new());
    assert_eq!(
        told(&document("v2beta1", &waiting, "", "replicas: 2")),
        ["gang-larger-than-job spec.runPolicy.schedulingPolicy.minAvailable"]
    );
}

#[test]
fn a_gang_takes_its_priority_from_the_templates_and_its_queue_from_the_annotation() {
    let worker = "replicas: 1\ntemplate: {spec: {priorityClassName: low, containers: [{name: a, image: b}]}}";
    let text = document("v2beta1", "", "", worker).replace(
        "{name: stencil}",
        "{name: stencil, annotations: {scheduling.volcano.sh/queue-name: q}}",
    );
    let gang = job(&text).policies.gang;
    assert_eq!((gang.priority_class.as_deref(), gang.queue.as_deref()), (Some("low"), Some("q")));
}

#[test]
fn the_stated_mpi_counts_and_a_launch_line_for_another_is_told() {
    let launcher =
        "template: {spec: {containers: [{name: a, image: b, command: [mpirun, -ppn, '2', x]}]}}";
    let mpi = |version, spec: &str| {
        let text = document(version, spec, launcher, "replicas: 1");
        (job(&text).mpi.flavour.unwrap(), job(&text).mpi.from, told(&text))
    };
    assert_eq!(mpi("v2beta1", ""), (Flavour::Mpich, MpiFrom::LaunchLine, vec![]));
    let intel = (Flavour::Intel, MpiFrom::Stated, vec![]);
    assert_eq!(mpi("v2beta1", "mpiImplementation: Intel"), intel);
    assert_eq!(mpi("v1alpha2", "mpiDistribution: IntelMPI"), intel);
    let warned = vec!["mpi-mismatch spec.mpiImplementation".to_owned()];
    assert_eq!(
        mpi("v2beta1", "mpiImplementation: OpenMPI"),
        (Flavour::OpenMpi, MpiFrom::Stated, warned)
    );
    let plain = job(&document("v1", "", "", "replicas: 1")).mpi;
    assert_eq!((plain.flavour, plain.from), (Some(Flavour::OpenMpi), MpiFrom::Default));
}

#[test]
fn the_main_container_counts_before_v2beta1() {
    let template = "template: {spec: {containers: [{name: proxy, image: p}, {name: mpi, image: m, command: [mpirun, ring]}]}}";
    let text = document("v1", "mainContainer: mpi", template, &format!("replicas: 1\n{template}"));
    let read = job(&text);
    assert!(read.groups.iter().all(|it| it.extras.as_ref().unwrap().container == 1));
    assert_eq!(read.groups[0].extras.as_ref().unwrap().kubernetes_only, ["spec.containers[0]"]);
    let missing = document("v1alpha2", "mainContainer: mpi", template, "replicas: 1");
    assert_eq!(told(&missing), ["invalid-job spec.mainContainer"]);
}

#[test]
fn workers_of_old_versions_drop_arguments_without_a_command() {
    let worker = "replicas: 1\ntemplate: {spec: {containers: [{name: a, image: b, args: [x]}]}}";
    for version in ["v1alpha2", "v1"] {
        let text = document(version, "", "", worker);
        assert_eq!(job(&text).groups[1].runs, Runs::Ranks(None));
        assert_eq!(told(&text).len(), 1);
    }
    let kept = Command::ImageEntry(vec!["x".to_owned()]);
    let text = document("v2beta1", "", "", worker);
    assert_eq!(job(&text).groups[1].runs, Runs::Ranks(Some(kept)));
}

#[test]
fn an_object_served_in_another_version_is_read_by_the_one_it_was_written_in() {
    let text = document("v1", "mpiImplementation: Intel", "", "replicas: 1")
        .replace("{name: stencil}", "{name: stencil, uid: 3f, resourceVersion: '7'}");
    let reading = reading(&text);
    assert_eq!(reading.dialect, Some(Dialect::KubeflowV2beta1));
    assert_eq!(reading.job.unwrap().dialect, Dialect::KubeflowV2beta1);
    assert_eq!(told(&text), ["read-as-written apiVersion"]);
}

#[test]
fn an_object_of_a_cluster_is_read_as_a_file_is() {
    let texts = [
        include_str!("fixtures/kubeflow/v1alpha2-as-printed.yaml").to_owned(),
        include_str!("fixtures/kubeflow/v2beta1-served-as-v1.yaml").to_owned(),
        document("v2beta1", "slotsPerWorker: -1", "restartPolicy: Always", "replicas: 0"),
    ];
    for text in texts {
        let object: serde_json::Value = serde_saphyr::from_str(&text).expect("it is YAML");
        let (of_object, of_file) = (read_object(&object, &Options::default()), reading(&text));
        assert_eq!(of_object.dialect, of_file.dialect);
        let bare = |job: Option<Job>| job.map(|it| Job { origins: Origins::default(), ..it });
        assert_eq!(bare(of_object.job), bare(of_file.job));
        let told = |notes: &[unisono_job::Note]| {
            let mut told: Vec<_> = notes
                .iter()
                .map(|it| (it.code.name, it.place.clone().map(|place| place.path)))
                .collect();
            told.sort();
            told
        };
        assert_eq!(told(&of_object.notes), told(&of_file.notes));
    }
}

#[test]
fn every_rule_that_a_version_has_is_a_fault_with_a_place() {
    let ok = "replicas: 1";
    let faults = |version, spec: &str, launcher: &str, worker: &str| {
        let text = document(version, spec, launcher, worker);
        assert_eq!(reading(&text).job, None, "{text}");
        told(&text)
    };
    let in_spec = |path: &str, code: &str| vec![format!("{code} spec.{path}")];
    let worker = "mpiReplicaSpecs.Worker";
    for version in ["v1alpha2", "v2beta1"] {
        assert_eq!(faults(version, "", "", ""), in_spec(worker, "missing-field"));
        assert_eq!(
            faults(version, "", "", "replicas: 0"),
            in_spec(&format!("{worker}.replicas"), "out-of-range")
        );
    }
    assert_eq!(faults("v1alpha2", "", "", "-"), in_spec("mpiReplicaSpecs", "missing-field"));
    for version in ["v1alpha2", "v1", "v2beta1"] {
        assert_eq!(faults(version, "", "-", ok), in_spec("mpiReplicaSpecs", "missing-field"));
        assert_eq!(
            faults(version, "", "replicas: 2", ok),
            in_spec("mpiReplicaSpecs.Launcher.replicas", "out-of-range")
        );
        assert_eq!(
            faults(version, "slotsPerWorker: -1", "", ok),
            in_spec("slotsPerWorker", "out-of-range")
        );
        assert_eq!(
            faults(version, "runPolicy: {backoffLimit: -1}", "", ok),
            in_spec("runPolicy.backoffLimit", "out-of-range")
        );
        let empty = "replicas: 1\ntemplate: {spec: {containers: []}}";
        assert_eq!(
            faults(version, "", "", empty),
            in_spec("mpiReplicaSpecs.Worker.template.spec.containers", "bad-form")
        );
    }
    assert_eq!(
        faults("v1alpha2", "slotsPerWorker: 0", "", ok),
        in_spec("slotsPerWorker", "out-of-range")
    );
    assert_eq!(
        faults("v1alpha2", "mpiDistribution: Intel", "", ok),
        in_spec("mpiDistribution", "not-one-of")
    );
    assert_eq!(
        faults("v2beta1", "mpiImplementation: IntelMPI", "", ok),
        in_spec("mpiImplementation", "not-one-of")
    );
    assert_eq!(
        faults("v2beta1", "runPolicy: {cleanPodPolicy: none}", "", ok),
        in_spec("runPolicy.cleanPodPolicy", "not-one-of")
    );
    assert_eq!(
        faults("v2beta1", "runPolicy: {managedBy: me}", "", ok),
        in_spec("runPolicy.managedBy", "not-one-of")
    );
    assert_eq!(
        faults("v2beta1", "", "restartPolicy: Always", ok),
        in_spec("mpiReplicaSpecs.Launcher.restartPolicy", "not-one-of")
    );
    let nameless = "template: {spec: {containers: [{args: [1]}]}}";
    assert_eq!(
        faults("v1", "", nameless, ok),
        [
            "missing-field spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]",
            "missing-field spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]",
            "wrong-type spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].args[0]",
        ]
    );
}

#[test]
fn replica_keys_are_written_exactly_so() {
    let text = document("v2beta1", "", "", "replicas: 1").replace("Worker:", "worker:");
    assert_eq!(told(&text), ["wrong-replica-key spec.mpiReplicaSpecs.worker"]);
    let hint = reading(&text).notes[0].hint.clone();
    assert_eq!(hint.as_deref(), Some("write `Worker`, exactly so"));
}

#[test]
fn the_name_of_the_last_v2beta1_worker_must_be_a_dns_label() {
    let named = |version, name: &str, workers: u32| {
        let text = document(version, "", "", &format!("replicas: {workers}"));
        told(&text.replace("{name: stencil}", &format!("{{name: {name}}}")))
    };
    let fault = vec!["bad-form metadata.name".to_owned()];
    let fits = "a".repeat(63 - "-worker-9".len());
    assert_eq!(named("v2beta1", &fits, 10), Vec::<String>::new());
    assert_eq!(named("v2beta1", &fits, 11), fault);
    assert_eq!(named("v2beta1", "8ranks", 1), fault);
    assert_eq!(named("v2beta1", "a.b", 1), fault);
    assert_eq!(named("v1", "8ranks", 1), Vec::<String>::new());
    assert_eq!(named("v1", "Eight", 1), fault);
    assert_eq!(named("v1", "", 1), ["missing-field metadata"]);
}

#[test]
fn a_restart_policy_inside_a_template_is_overwritten() {
    let worker =
        "replicas: 1\ntemplate: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}";
    let path = "spec.mpiReplicaSpecs.Worker.template.spec.restartPolicy";
    assert_eq!(told(&document("v2beta1", "", "", worker)), [format!("overridden-field {path}")]);
}

#[test]
fn a_flood_of_wrong_keys_is_told_in_part() {
    let keys: String = (0..5000).map(|it| format!("    r{it}: 1\n")).collect();
    let text = document("v2beta1", "", "", "replicas: 1")
        .replace("    Launcher:", &format!("{keys}    Launcher:"));
    let told = told(&text);
    assert!(told.len() < 300, "{} notes", told.len());
    assert!(told.iter().any(|it| it.starts_with("more-notes")));
}
