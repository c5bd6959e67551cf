//! Plans of representative jobs: what every dialect gets, and what is true of all plans.

use std::collections::BTreeMap;

use proptest::prelude::*;
use unisono_job::{
    CodeFolder, Command, Dialect, EndRule, EnvVar, Extras, Flavour, Quantity, Runs, Slots,
};
use unisono_plan::bind::{Addresses, CalledBy, bind};
use unisono_plan::{
    Argv, EngineKind, Facts, HostRuns, Member, Overrides, Plan, View, env, lay_out, lint,
};
use unisono_testkit::jobs::{azure, group, job, kube_batch, kubeflow, openpai, role, words};

const MPIRUN: &[&str] = &["mpirun", "./a"];

fn plan(job: &unisono_job::Job) -> Plan {
    let plan = lay_out(job, &Facts::default(), 1);
    assert_eq!(lint(&plan), Vec::<String>::new());
    plan
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.hosts.iter().map(|host| host.name.as_str()).collect()
}

fn codes(plan: &Plan) -> Vec<&str> {
    plan.notes.iter().map(|note| note.code.name).collect()
}

fn launch_words(plan: &Plan) -> Vec<String> {
    match &plan.program_of(plan.launch_host().unwrap()).argv {
        Argv::Words(words) => words.clone(),
        other => panic!("no words: {other:?}"),
    }
}

#[test]
fn a_kubeflow_job_has_a_launcher_without_slots_and_numbered_workers() {
    for dialect in [Dialect::KubeflowV1alpha1, Dialect::KubeflowV1alpha2, Dialect::KubeflowV1] {
        let plan = plan(&kubeflow(dialect, "stencil", 2, 3, MPIRUN));
        assert_eq!(names(&plan), ["stencil-launcher", "stencil-worker-0", "stencil-worker-1"]);
        assert_eq!((plan.ranks, plan.hosts[0].slots), (Some(6), 0));
        assert_eq!(
            View::of(&plan).hostfile,
            "stencil-worker-0 slots=3\nstencil-worker-1 slots=3\n"
        );
    }
}

#[test]
fn a_queue_or_a_priority_class_that_nobody_reads_is_told() {
    let told = |job: &unisono_job::Job, knows_queues: bool| {
        let facts = Facts { engine: EngineKind::Kubernetes, knows_queues, ..Facts::default() };
        let notes = lay_out(job, &facts, 1).notes.into_iter();
        notes.filter(|it| it.code.name == "queue-unused").map(|it| it.message).collect::<Vec<_>>()
    };
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "pi", 2, 1, MPIRUN);
    assert_eq!(told(&job, false), [""; 0]);
    job.policies.gang.priority_class = Some("high".to_owned());
    let [only_class] = &told(&job, false)[..] else { panic!("one note") };
    assert!(only_class.contains("without the priority class `high`:"), "{only_class}");
    job.policies.gang.queue = Some("gold".to_owned());
    let [both] = &told(&job, false)[..] else { panic!("one note") };
    assert!(both.contains("the queue `gold` and the priority class `high`:"), "{both}");
    assert_eq!(told(&job, true), [""; 0]);
    job.policies.gang.queue = None;
    let kubernetes_only = vec!["spec.priorityClassName".to_owned()];
    job.groups[0].extras = Some(Extras { kubernetes_only, ..Extras::default() });
    assert_eq!(told(&job, false), [""; 0], "its pods have it");
}

#[test]
fn version_2_has_full_names_and_a_launcher_that_works_comes_first() {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "solo", 1, 4, MPIRUN);
    job.groups[0].slots = Slots::stated(4);
    job.namespace = Some("lab".to_owned());
    let plan = plan(&job);
    assert_eq!(
        View::of(&plan).hostfile,
        "solo-launcher.solo.lab.svc slots=4\nsolo-worker-0.solo.lab.svc slots=4\n"
    );
    assert_eq!(plan.hosts[0].runs, HostRuns::LaunchAndRanks);
    assert_eq!(plan.ranks, Some(8));
    let facts = Facts { cluster_domain: Some("cluster.local".to_owned()), ..Facts::default() };
    let hostfile = View::of(&lay_out(&job, &facts, 1)).hostfile;
    assert!(hostfile.starts_with("solo-launcher.solo.lab.svc.cluster.local slots=4\n"));
}

#[test]
fn hydra_reads_counts_after_a_colon() {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "h", 1, 2, MPIRUN);
    job.mpi.flavour = Some(Flavour::Intel);
    assert_eq!(View::of(&plan(&job)).hostfile, "h-worker-0.h.default.svc:2\n");
}

#[test]
fn azure_launches_on_host_0_and_knows_the_bare_word() {
    let line = "mpirun -np 16 --hostfile AZUREML_MPI_HOSTFILE -x PATH python train.py";
    let plan = plan(&azure("hvd", 4, 4, line));
    assert_eq!(names(&plan), ["hvd-node-0", "hvd-node-1", "hvd-node-2", "hvd-node-3"]);
    assert_eq!((plan.ranks, plan.slot_count()), (Some(16), 16));
    assert_eq!(plan.launch_on, Some(Member { group: 0, index: 0 }));
    assert_eq!(plan.hosts[1].runs, HostRuns::Ranks);
    assert_eq!(
        launch_words(&plan)[2],
        "mpirun -np 16 --hostfile /etc/mpi/hostfile -x PATH python train.py"
    );
    let env = View::of(&plan).launch.unwrap().env;
    assert_eq!(env["AZUREML_MPI_HOSTFILE"], "/etc/mpi/hostfile");
    assert_eq!(plan.program_of(&plan.hosts[1]).argv, Argv::Nothing);
}

#[test]
fn openpai_tasks_are_called_by_role_and_index_and_all_may_launch() {
    let mut worker = role("worker", 2, "sleep infinity");
    worker.end = EndRule::FIRST;
    let job = openpai("ring", vec![role("master", 1, "sleep 1000 && ./go"), worker]);
    let plan = plan(&job);
    assert_eq!(names(&plan), ["master-0", "worker-0", "worker-1"]);
    assert_eq!((plan.ranks, plan.launch_on), (None, None));
    assert!(plan.hosts.iter().all(|host| plan.may_launch(host.member)));
    assert!(plan.hosts.iter().all(|host| host.runs == HostRuns::Command));
    assert_eq!(codes(&plan), ["leading-sleep"]);
}

#[test]
fn an_openpai_task_that_calls_mpirun_is_where_ranks_start() {
    let job = openpai(
        "ring",
        vec![
            role("node", 2, "sleep infinity"),
            role("main", 1, "mpirun -np 4 -H node-0:2,node-1:2 ./ring"),
        ],
    );
    let plan = plan(&job);
    assert_eq!(plan.ranks, Some(4));
    assert_eq!(View::of(&plan).launch.unwrap().on, "main-0");
}

#[test]
fn openpai_variables_name_every_task_with_address_and_ports() {
    let plan = plan(&openpai("ring", vec![role("a", 2, "x"), role("b", 1, "y")]));
    let addresses = plan
        .hosts
        .iter()
        .zip(1_u8..)
        .map(|(host, last)| (host.member, [127, 0, 1, last].into()))
        .collect();
    let host = &plan.hosts[1];
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let shared = plan.program_of(host).added_env.clone();
    for variable in shared
        .into_iter()
        .chain(env::of_host(&plan, host))
        .chain(env::with_addresses(&plan, host, &addresses))
    {
        assert_eq!(all.insert(variable.name.clone(), variable.value), None, "{}", variable.name);
    }
    assert_eq!(all["PAI_TASK_ROLE_LIST"], "a,b");
    assert_eq!(all["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"], "1");
    assert_eq!(all["PAI_HOST_IP_b_0"], "127.0.1.3");
    assert_eq!(all["PAI_CONTAINER_HOST_IP"], "127.0.1.2");
    assert_eq!(all["PAI_TASK_ROLE_INSTANCES"], "a:0,a:1,b:0");
    assert_eq!(all["PAI_CONTAINER_HOST_PORT"], all["PAI_PORT_LIST_a_1_http"]);
    assert_ne!(all["PAI_PORT_LIST_a_0_http"], all["PAI_PORT_LIST_a_1_http"]);
}

#[test]
fn openpai_folders_hold_the_submitters_name_and_have_defaults() {
    let mut main = role("main", 1, "x");
    let output = "/Output/$PAI_USER_NAME/$PAI_USERNAME".to_owned();
    main.env = vec![EnvVar { name: "PAI_OUTPUT_DIR".to_owned(), value: Some(output) }];
    main.code = Some(CodeFolder { path: "code/$PAI_USER_NAME".to_owned() });
    let plan = plan(&openpai("ring", vec![main, role("node", 1, "y")]));
    let folders = |at: usize| {
        let env = env::complete(&plan, &plan.hosts[at], &Addresses::new());
        ["PAI_DATA_DIR", "PAI_OUTPUT_DIR", "PAI_CODE_DIR"].map(|name| env[name].clone())
    };
    assert_eq!(folders(0), ["", "/Output/user/user", ""]);
    assert_eq!(folders(1), ["", "/Output/user/ring", ""]);
    assert_eq!(plan.group_of(&plan.hosts[0]).code.as_ref().unwrap().path, "code/user");
    let start = env::Start { attempt: 2, folder: Some("/work") };
    let started: BTreeMap<_, _> =
        env::at_start(&plan, &start).into_iter().map(|it| (it.name, it.value)).collect();
    assert_eq!(started["FC_FRAMEWORK_ATTEMPT_ID"], "2");
    assert_eq!(started["PAI_WORK_DIR"], "/work");
}

#[test]
fn an_ssh_server_is_left_out_here_and_kept_on_kubernetes() {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "pi", 1, 1, MPIRUN);
    job.groups[1].runs = Runs::Ranks(Some(words(&["/usr/sbin/sshd", "-De"])));
    let here = plan(&job);
    assert_eq!(here.program_of(&here.hosts[1]).argv, Argv::Nothing);
    assert_eq!(codes(&here), ["sshd-left-out"]);
    let facts = Facts { engine: EngineKind::Kubernetes, ..Facts::default() };
    let there = lay_out(&job, &facts, 1);
    assert_eq!(
        there.program_of(&there.hosts[1]).argv,
        Argv::Words(vec!["/usr/sbin/sshd".to_owned(), "-De".to_owned()])
    );
    assert_eq!(codes(&there), [""; 0]);

    job.groups[1].runs = Runs::Ranks(Some(words(&["sleep", "365d"])));
    assert_eq!(codes(&plan(&job)), ["command-left-out"]);
    let task = plan(&openpai("ring", vec![role("node", 1, "/usr/sbin/sshd -D")]));
    assert_eq!(codes(&task), ["sshd-left-out"]);
    assert_eq!(
        task.program_of(&task.hosts[0]).argv,
        Argv::Words(vec!["sleep".to_owned(), "infinity".to_owned()])
    );
}

#[test]
fn hosts_in_the_launch_line_tell_its_ranks() {
    let ranks = |line: &str| plan(&openpai("ring", vec![role("node", 2, line)])).ranks;
    assert_eq!(ranks("mpirun -H node-0,node-1 ./a"), Some(2));
    assert_eq!(ranks("mpirun -H node-0:2,node-1:2 ./a"), Some(4));
    assert_eq!(ranks("mpirun -np 3 -H node-0:2,node-1:2 ./a"), Some(3));
    assert_eq!(ranks("mpirun -H $HOSTS ./a"), None);
    assert_eq!(ranks("mpirun --hostfile mine ./a"), None);
}

#[test]
fn kube_batch_lists_bare_pod_names() {
    let plan = plan(&kube_batch("tri", 3, &["mpirun", "-n", "3", "/bin/where"]));
    assert_eq!(names(&plan), ["tri-0", "tri-1", "tri-2"]);
    assert_eq!(View::of(&plan).hostfile, "tri-0\ntri-1\ntri-2\n");
    assert_eq!(plan.ranks, Some(3));
    let env = View::of(&plan).launch.unwrap().env;
    assert_eq!(env["HYDRA_HOST_FILE"], "/mpi/hostfile");
    assert_eq!(env["OMPI_MCA_orte_default_hostfile"], "/opt/unisono/hostfile.openmpi");
}

#[test]
fn kubernetes_references_are_expanded_here_and_left_to_the_kubelet_there() {
    let mut job = kubeflow(Dialect::KubeflowV1, "x", 1, 1, &["mpirun", "-np", "$(N)", "$$(N)"]);
    job.groups[0].env = [("BASE", "2"), ("N", "$(BASE)")]
        .map(|(name, value)| EnvVar { name: name.to_owned(), value: Some(value.to_owned()) })
        .into();
    assert_eq!(launch_words(&plan(&job))[2..], ["2", "$(N)"]);
    let facts = Facts { engine: EngineKind::Kubernetes, ..Facts::default() };
    assert_eq!(launch_words(&lay_out(&job, &facts, 1))[2..], ["$(N)", "$$(N)"]);
}

#[test]
fn numbers_of_the_caller_shrink_hosts_slots_and_the_count_in_the_line() {
    let line = "mpirun -np 64 --hostfile $AZUREML_MPI_HOSTFILE ./a -n 64";
    let facts = Facts {
        overrides: Overrides { hosts: Some(2), slots: Some(1), ..Overrides::default() },
        ..Facts::default()
    };
    let plan = lay_out(&azure("big", 8, 8, line), &facts, 1);
    assert_eq!((plan.hosts.len(), plan.ranks), (2, Some(2)));
    assert_eq!(launch_words(&plan)[2], "mpirun -np 2 --hostfile $AZUREML_MPI_HOSTFILE ./a -n 64");
    assert_eq!(codes(&plan), ["ranks-changed"]);
}

#[test]
fn numbers_that_do_not_fit_are_told() {
    let told = |np: &str| {
        let job = kubeflow(Dialect::KubeflowV1, "x", 2, 2, &["mpirun", "-np", np, "./a"]);
        codes(&plan(&job)).join(" ")
    };
    assert_eq!(told("8"), "ranks-over-slots");
    assert_eq!(told("4"), "");
    assert_eq!(told("2"), "slots-idle");
    assert_eq!(told("$N"), "ranks-unknown");

    let mut gpus = kubeflow(Dialect::KubeflowV1, "x", 2, 2, MPIRUN);
    let limits = &mut gpus.groups[1].resources.limits;
    limits.insert("nvidia.com/gpu".to_owned(), Quantity::of(4));
    assert_eq!(codes(&plan(&gpus)), ["gpus-differ-from-slots"]);

    let mut uneven = job(
        "x",
        Dialect::Unisono,
        vec![
            group("launcher", 1, 0, Runs::Launch(words(MPIRUN))),
            group("fat", 1, 4, Runs::Ranks(None)),
            group("thin", 1, 1, Runs::Ranks(None)),
        ],
    );
    uneven.mpi.flavour = Some(Flavour::Intel);
    assert_eq!(codes(&plan(&uneven)), ["uneven-slots"]);

    let mut entry = kubeflow(Dialect::KubeflowV1, "x", 1, 1, MPIRUN);
    entry.groups[0].runs = Runs::Launch(Command::ImageEntry(Vec::new()));
    assert_eq!(codes(&plan(&entry)), ["no-launcher-visible", "image-entry"]);
}

/// What one job asks for, written in every dialect, gives the same ranks on as many hosts of as many slots.
#[test]
fn the_same_job_in_any_dialect_gives_the_same_ranks_on_the_same_hosts() {
    let launch: &[&str] = &["mpirun", "-np", "3", "./a"];
    let line = "mpirun -np 3 ./a";
    let mut jobs = vec![
        azure("same", 3, 1, line),
        kube_batch("same", 3, launch),
        openpai("same", vec![role("main", 1, line), role("node", 2, "sleep infinity")]),
    ];
    for dialect in [
        Dialect::KubeflowV1alpha1,
        Dialect::KubeflowV1alpha2,
        Dialect::KubeflowV1,
        Dialect::KubeflowV2beta1,
        Dialect::Unisono,
    ] {
        jobs.push(kubeflow(dialect, "same", 3, 1, launch));
    }
    for job in jobs {
        let plan = plan(&job);
        let slots: Vec<u32> = plan.rank_hosts().map(|host| host.slots).collect();
        assert_eq!((plan.ranks, slots), (Some(3), vec![1, 1, 1]), "{}", job.dialect);
    }
}

#[test]
fn a_bound_plan_has_every_host_and_every_file() {
    let mut job = kubeflow(Dialect::KubeflowV2beta1, "b", 2, 2, MPIRUN);
    job.namespace = Some("lab".to_owned());
    let plan = plan(&job);
    let mut addresses: Addresses = plan
        .hosts
        .iter()
        .zip(1_u8..)
        .map(|(host, last)| (host.member, [10, 0, 0, last].into()))
        .collect();
    let bound = bind(&plan, &addresses, CalledBy::Address).unwrap();
    assert_eq!(
        bound.table[1].names,
        ["b-worker-0", "b-worker-0.b", "b-worker-0.b.lab", "b-worker-0.b.lab.svc"]
    );
    assert_eq!(
        bound.table.iter().map(|it| it.may_launch).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert_eq!(bound.files["/etc/mpi/hostfile"].text, "10.0.0.2 slots=2\n10.0.0.3 slots=2\n");
    assert_eq!(bound.files["/opt/unisono/hostfile.hydra"].text, "10.0.0.2:2\n10.0.0.3:2\n");
    let by_name = bind(&plan, &addresses, CalledBy::Name).unwrap();
    assert_eq!(
        by_name.files["/etc/mpi/discover_hosts.sh"].text,
        "#!/bin/sh\necho b-worker-0\necho b-worker-1\n"
    );
    addresses.pop_last();
    let unbound = bind(&plan, &addresses, CalledBy::Promised).unwrap_err();
    assert_eq!(unbound.to_string(), "host b-worker-1 has no address yet");
}

#[test]
fn the_files_own_tuning_wins_and_its_own_way_to_reach_hosts_does_not() {
    let mut job = kubeflow(Dialect::KubeflowV1, "x", 1, 1, MPIRUN);
    job.groups[0].env = [("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_plm_rsh_agent", "/old")]
        .map(|(name, value)| EnvVar { name: name.to_owned(), value: Some(value.to_owned()) })
        .into();
    let plan = plan(&job);
    let env = env::complete(&plan, &plan.hosts[0], &Addresses::new());
    assert_eq!(env["OMPI_MCA_btl"], "tcp,self");
    assert_eq!(env["OMPI_MCA_plm_rsh_agent"], "/opt/unisono/bin/ssh");
}

#[test]
fn plans_look_as_reviewed() {
    let jobs = [
        kubeflow(
            Dialect::KubeflowV1alpha2,
            "mnist",
            1,
            2,
            &["/bin/bash", "-c", "mpirun --allow-run-as-root python fashion.py"],
        ),
        kubeflow(Dialect::KubeflowV2beta1, "pi", 2, 1, &["mpirun", "-n", "2", "/home/pi"]),
        azure("hvd", 2, 4, "horovodrun -np 8 --hostfile AZUREML_MPI_HOSTFILE python train.py"),
        openpai(
            "ring",
            vec![
                role("main", 1, "mpirun -np 2 -H node-0,node-1 ./ring"),
                role("node", 2, "sleep infinity"),
            ],
        ),
        kube_batch("tri", 3, &["mpirun", "-n", "3", "hostname"]),
    ];
    for job in jobs {
        let plan = plan(&job);
        insta::assert_json_snapshot!(
            format!("{}-{}", job.dialect.name().replace('/', "-"), job.name),
            View::of(&plan)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound_and_grows_without_renaming(
        name in "[A-Za-z0-9._-]{1,120}",
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
        shape in prop::collection::vec(("[A-Za-z0-9_.~-]{1,70}", 0_u32..4, 0_u32..5, 0_u8..3), 1..4),
        more in 0_u32..3,
    ) {
        prop_assume!(!name.starts_with('.'));
        let mut launched = false;
        let mut groups: Vec<unisono_job::Group> = Vec::new();
        for (group_name, replicas, slots, kind) in shape {
            if groups.iter().any(|other| other.name == group_name) {
                continue;
            }
            let runs = match kind {
                0 if !launched => { launched = true; Runs::LaunchOnFirst(words(MPIRUN)) }
                1 => Runs::Own(words(&["./own"])),
                _ => Runs::Ranks(None),
            };
            groups.push(group(&group_name, replicas, slots, runs));
        }
        let small = job(&name, dialect, groups);
        let plan = plan(&small);
        if let Some(ranks) = plan.ranks {
            prop_assert_eq!(u64::from(ranks), plan.slot_count());
        }
        let mut large = small.clone();
        for group in &mut large.groups {
            group.replicas += more;
        }
        let grown = lay_out(&large, &Facts::default(), 2);
        prop_assert_eq!(lint(&grown), Vec::<String>::new());
        for host in &plan.hosts {
            prop_assert_eq!(&grown.host(host.member).unwrap().name, &host.name);
        }
    }
}
