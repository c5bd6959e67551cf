//! Every object of every version, as it is sent; and what must be true of them whatever the job.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unisono_dialect::{Options, read};
use unisono_job::Job;
use unisono_plan::bind::Addresses;
use unisono_plan::{Host, HostRuns, Plan, lay_out};
use unisono_testkit::scenario::Scenario;

use super::fixtures::{JOBS, owner, plan, settings};
use super::{Owner, Rendering};
use crate::settings::{GangScheduler, Settings};

const JOB_UID: &str = "99999999-8888-7777-6666-555555555555";

/// All objects of a job; of a group's pods only the first, and of keys only that they are there.
fn objects(plan: &Plan, settings: &Settings, owner: &Owner) -> Vec<Value> {
    let rendering = Rendering { plan, settings, owner };
    let mut objects = rendering.secrets(&rendering.mint().unwrap()).unwrap();
    for (_, value) in objects.iter_mut().flat_map(|it| it["stringData"].as_object_mut().unwrap()) {
        let lines = value.as_str().unwrap_or_default().lines().count();
        *value = json!(format!("({lines} lines)"));
    }
    objects.push(rendering.config_map());
    objects.extend(rendering.service());
    objects.extend(rendering.kube_batch_objects());
    objects.extend(rendering.network_policy());
    objects.extend(rendering.pod_group());
    objects.extend(rendering.launcher_job());
    let firsts = plan.hosts.iter().filter(|host| host.member.index == 0);
    objects.extend(firsts.map(|host| {
        let job_uid = rendering.is_in_job(host).then_some(JOB_UID);
        rendering.pod(host, 0, 0, job_uid)
    }));
    objects
}

#[test]
fn every_object_of_every_version() {
    for (name, text) in JOBS {
        let plan = plan(text);
        insta::assert_yaml_snapshot!(name, objects(&plan, &settings(), &owner(&plan)));
    }
}

#[test]
fn gangs_in_the_words_of_each_scheduler() {
    insta::assert_yaml_snapshot!("gangs", gangs_of(&plan(JOBS[3].1)));
}

#[test]
fn the_gang_of_kube_batchs_own_job_in_the_words_of_each_scheduler() {
    insta::assert_yaml_snapshot!("gangs-kube-batch", gangs_of(&plan(JOBS[10].1)));
}

#[test]
fn a_queue_is_known_to_whoever_is_told_it() {
    let plan = plan(JOBS[3].1);
    let scheduler = "gang-scheduler".to_owned();
    for gang in [
        GangScheduler::None,
        GangScheduler::SchedulerPlugins { scheduler },
        GangScheduler::Volcano,
        GangScheduler::KubeBatch,
    ] {
        let (settings, owner) = (Settings { gang, ..settings() }, owner(&plan));
        let group = Rendering { plan: &plan, settings: &settings, owner: &owner }.pod_group();
        let is_told = group.is_some_and(|it| it["spec"]["queue"] == "gold");
        assert_eq!(settings.facts("lab").knows_queues, is_told, "{:?}", settings.gang);
    }
}

/// The PodGroup of each scheduler, and how a pod that only hosts ranks belongs to it.
fn gangs_of(plan: &Plan) -> Vec<Value> {
    let gangs = [
        GangScheduler::SchedulerPlugins { scheduler: "gang-scheduler".to_owned() },
        GangScheduler::Volcano,
        GangScheduler::KubeBatch,
    ];
    gangs
        .into_iter()
        .map(|gang| {
            let settings = Settings { gang, ..settings() };
            let owner = owner(plan);
            let rendering = Rendering { plan, settings: &settings, owner: &owner };
            let pod = rendering.pod(&plan.hosts[1], 0, 0, None);
            json!({
                "podGroup": rendering.pod_group(),
                "labels": pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"],
                "annotations": pod["metadata"]["annotations"],
                "schedulerName": pod["spec"]["schedulerName"],
            })
        })
        .collect()
}

#[test]
fn a_gang_does_not_wait_for_a_launcher_that_waits_for_its_workers() {
    let late = "slotsPerWorker: 1\n  launcherCreationPolicy: WaitForWorkersReady";
    let late = JOBS[3].1.replace("slotsPerWorker: 1", late);
    let size = |text: &str| {
        let (plan, settings) =
            (plan(text), Settings { gang: GangScheduler::Volcano, ..settings() });
        let owner = owner(&plan);
        let group = Rendering { plan: &plan, settings: &settings, owner: &owner }.pod_group();
        let spec = group.unwrap()["spec"].take();
        (spec["minMember"].clone(), spec["minResources"]["cpu"].clone())
    };
    assert_eq!(size(JOBS[3].1), (json!(3), json!("3")));
    assert_eq!(size(&late), (json!(2), json!("2")));
    let stated = late.replace("queue: gold", "queue: gold, minAvailable: 3");
    assert_eq!(size(&stated), (json!(2), json!("2")), "three would never be there");
}

#[test]
fn a_worker_that_only_runs_an_ssh_server_needs_none_however_it_is_written() {
    let text = JOBS[3].1.replace("[/usr/sbin/sshd]", "[bash, -c]");
    let text = text.replace("[-De, -f, /home/mpiuser/.sshd_config]", "[exec /usr/sbin/sshd -De]");
    let plan = plan(&text);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    let worker = rendering.pod(&plan.hosts[1], 0, 0, None);
    let container = &worker["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/opt/unisono/unisono-agent", "serve"]));
    assert_eq!(container["args"], Value::Null);
}

#[test]
fn a_launcher_that_hosts_ranks_is_the_first_host_and_shifts_the_numbers_of_its_workers() {
    let text =
        JOBS[3].1.replace("slotsPerWorker: 1", "slotsPerWorker: 2\n  runLauncherAsWorker: true");
    let plan = plan(&text);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    assert_eq!(
        rendering.config_map()["data"]["hostfile"],
        "pi-launcher.pi.lab.svc slots=2\npi-worker-0.pi.lab.svc slots=2\npi-worker-1.pi.lab.svc slots=2\n"
    );
    let pods: Vec<Value> =
        plan.hosts.iter().map(|host| rendering.pod(host, 0, 0, Some(JOB_UID))).collect();
    let numbers: Vec<Value> = pods
        .iter()
        .map(|pod| {
            let metadata = &pod["metadata"];
            let number = &metadata["labels"]["training.kubeflow.org/replica-index"];
            json!([metadata["name"], metadata["labels"]["training.kubeflow.org/job-role"], number])
        })
        .collect();
    assert_eq!(
        json!(numbers),
        json!([
            ["pi-launcher", "launcher", "0"],
            ["pi-worker-0", "worker", "1"],
            ["pi-worker-1", "worker", "2"],
        ])
    );
    // Its ranks see the devices that a mere launcher is kept from, and find it before it is ready.
    let variables = pods[0]["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(variables.iter().all(|it| !it["name"].as_str().unwrap().starts_with("NVIDIA")));
    assert_eq!(rendering.service().unwrap()["spec"]["publishNotReadyAddresses"], true);
}

/// Everything that is wrong with a pod, as sentences.
fn faults(plan: &Plan, host: &Host, pod: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let list =
        |pointer: &str| pod.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let containers: Vec<Value> = [list("/spec/containers"), list("/spec/initContainers")].concat();
    let volumes = list("/spec/volumes");
    let mut unique = |what: &str, values: &[Value], key: &str| {
        let mut seen = BTreeSet::new();
        for value in values {
            if !seen.insert(value[key].to_string()) {
                faults.push(format!("{what} {} stands twice", value[key]));
            }
        }
    };
    unique("container", &containers, "name");
    unique("volume", &volumes, "name");
    for container in &containers {
        let part = |key: &str| container[key].as_array().cloned().unwrap_or_default();
        unique("variable", &part("env"), "name");
        unique("mount", &part("volumeMounts"), "mountPath");
        unique("port", &part("ports"), "containerPort");
    }
    for container in &containers {
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            if !volumes.iter().any(|volume| volume["name"] == mount["name"]) {
                faults.push(format!("{} is mounted and no volume", mount["name"]));
            }
        }
    }
    if pod["metadata"]["namespace"] != plan.namespace() {
        faults.push("another namespace".to_owned());
    }
    if pod["spec"]["restartPolicy"] != "Never" {
        faults.push("the pod may restart".to_owned());
    }
    let launchers_key = pod.to_string().contains("launcher.key");
    if launchers_key && !plan.may_launch(host.member) {
        faults.push("it has the launcher's key and may not launch".to_owned());
    }
    faults
}

/// Checks every pod of a job and says how many there were.
fn check_pods(job: &Job, what: &dyn std::fmt::Display) -> usize {
    let plan = lay_out(job, &settings().facts("lab"), 1);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    for host in &plan.hosts {
        let pod = rendering.pod(host, 0, 3, None);
        assert_eq!(faults(&plan, host, &pod), [""; 0], "{} of {what}", host.name);
    }
    plan.hosts.len()
}

#[test]
fn whatever_the_job_its_pods_are_sound() {
    let pods: usize = (0..500).map(|seed| check_pods(&Scenario::from_seed(seed).job, &seed)).sum();
    assert!(pods > 500, "only {pods} pods");
}

#[test]
fn whatever_the_file_its_pods_are_sound() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialect/tests/fixtures");
    let (mut waiting, mut pods) = (vec![folder], 0);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let readings = read(&std::fs::read(&path).unwrap(), &Options::default());
            let jobs = readings.into_iter().filter_map(|reading| reading.job);
            pods += jobs.map(|job| check_pods(&job, &path.display())).sum::<usize>();
        }
    }
    assert!(pods > 50, "only {pods} pods");
}

#[test]
fn what_the_template_says_stays_even_if_nobody_here_knows_it() {
    let unknown = "from2031: {deep: [1, null, 2.5]}";
    let text = JOBS[3]
        .1
        .replace("lab/pi:1, ", &format!("lab/pi:1, {unknown}, "))
        .replace("lab/pi:1\n", &format!("lab/pi:1\n            {unknown}\n"));
    let plan = plan(&text);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    for host in &plan.hosts {
        let pod = rendering.pod(host, 0, 0, None);
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let main = containers.iter().find(|it| it["name"] == "main").unwrap();
        assert_eq!(main["from2031"], json!({"deep": [1, null, 2.5]}), "{}", host.name);
    }
}

#[test]
fn a_template_without_containers_keeps_its_nodes_labels_and_volumes() {
    let text = JOBS[8].1.replace(
        "\n        containers:\n        - name: observe\n",
        "\n        tolerations: [{key: k}]\n        volumes: [{name: v, emptyDir: {}}]\n      metadata: {labels: {team: x}}\n",
    );
    let plan = plan(&text);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    let observer = plan.hosts.iter().find(|host| plan.group_of(host).name == "observer").unwrap();
    let pod = rendering.pod(observer, 0, 0, None);
    let spec = &pod["spec"];
    assert_eq!(pod["metadata"]["labels"]["team"], "x");
    assert_eq!(spec["nodeSelector"], json!({"disk": "fast"}));
    assert_eq!(spec["tolerations"], json!([{"key": "k"}]));
    assert!(spec["volumes"].as_array().unwrap().iter().any(|it| it["name"] == "v"), "{spec}");
    let [container] = &spec["containers"].as_array().unwrap()[..] else { panic!("{spec}") };
    let (name, image) = (&container["name"], &container["image"]);
    assert_eq!((name, image), (&json!("observer"), &json!("lab/observer:1")));
}

#[test]
fn only_who_is_launched_on_has_a_hosts_key() {
    for (name, text) in JOBS {
        let plan = plan(text);
        let (settings, owner) = (settings(), owner(&plan));
        let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
        for host in &plan.hosts {
            let text = rendering.pod(host, 0, 0, None).to_string();
            let has_host_key = text.contains(r#""path":"host.key""#);
            let wanted = super::answers(&plan, host) && name != "v2beta1-entry"
                || host.runs == HostRuns::Ranks && !plan.reaches_by_ssh();
            assert_eq!(has_host_key, wanted, "{name} {}", host.name);
        }
    }
}

#[test]
fn a_table_of_a_thousand_hosts_goes_into_the_config_map() {
    let few = plan(JOBS[3].1);
    assert!(!super::is_large(&few));
    let many = plan(&JOBS[3].1.replace("replicas: 2", "replicas: 1200"));
    assert!(super::is_large(&many));
    let (settings, owner) = (settings(), owner(&many));
    let rendering = Rendering { plan: &many, settings: &settings, owner: &owner };
    let launcher = rendering.pod(&many.hosts[0], 0, 0, None).to_string();
    assert!(launcher.contains(r#""key":"table-0""#) && !launcher.contains("downwardAPI"));
}

#[test]
fn what_needs_addresses_is_told_once_they_are_known() {
    let fillings = |text: &str| {
        let plan = plan(text);
        let hosts = plan.hosts.iter().zip(1_u8..);
        let addresses: Addresses =
            hosts.map(|(host, last)| (host.member, [10, 0, 0, last].into())).collect();
        let (settings, owner) = (settings(), owner(&plan));
        let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
        let pods: Vec<String> = plan.hosts.iter().map(|host| plan.pod_name(host, 0)).collect();
        let fillings = rendering.kube_batch_fillings(&pods, &addresses).into_iter();
        let filled: Vec<Value> = fillings
            .map(|it| json!({"kind": it.kind, "name": it.name, "changes": it.changes}))
            .collect();
        let table = super::table(&plan, "uid", 0, 0, &addresses).unwrap().unwrap();
        let table: Value = serde_json::from_str(&table).unwrap();
        json!({"filled": filled, "table": table})
    };
    insta::assert_yaml_snapshot!("filled-kube-batch", fillings(JOBS[10].1));
    let openpai = fillings(JOBS[9].1);
    insta::assert_yaml_snapshot!("filled-openpai", openpai["table"]);
}

#[test]
fn what_a_shell_reads_is_not_the_kubelets_to_expand() {
    let plan = plan(JOBS[9].1);
    let (settings, owner) = (settings(), owner(&plan));
    let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
    let text = rendering.pod(&plan.hosts[0], 0, 0, None).to_string();
    assert!(text.contains("./ring $$$$ $$(date)"), "{text}");
    assert!(text.contains("costs $$(HOME) $$5"), "{text}");
}

#[test]
fn no_number_of_pieces_makes_a_pod_without_bounds() {
    let mut plan = plan(JOBS[0].1);
    for group in &mut plan.job.groups {
        group.code = Some(unisono_job::CodeFolder::pieces("x", u32::MAX));
    }
    let pod = Rendering { plan: &plan, settings: &settings(), owner: &owner(&plan) }.pod(
        &plan.hosts[0],
        0,
        0,
        None,
    );
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let code = volumes.iter().find(|it| it["name"] == "unisono-code").unwrap();
    assert_eq!(code["projected"]["sources"].as_array().unwrap().len(), 64);
}
