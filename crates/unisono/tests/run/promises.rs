//! What each system promised inside its jobs is there, in the words of its own documents: files, variables, sizes, ports.

use std::collections::BTreeMap;

use unisono_testbed::mpi::Flavour;

use crate::{AZURE, KUBE_BATCH, SOON, TWO_TEMPLATES, User, V1ALPHA1, text};

/// What a launch line writes, in a job of that text.
fn written(job: &str, script: &str) -> String {
    let user = User::of(Flavour::OpenMpi4);
    let quoted = serde_json::to_string(script).expect("a line is text");
    let output = user.run(&job.replace("COMMAND", &quoted), &["--raw"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    user.watch.assert_nothing_left(SOON);
    text(&output.stdout)
}

#[test]
fn azure_names_its_host_file_by_a_variable_and_by_a_bare_word() {
    let script = "test AZUREML_MPI_HOSTFILE = $AZUREML_MPI_HOSTFILE && cat AZUREML_MPI_HOSTFILE; \
                  cmp $AZUREML_MPI_HOSTFILE $AZ_BATCHAI_MPI_HOST_FILE && mpirun -n 1 true";
    let lines = written(AZURE, script);
    assert_eq!(lines, "quad-node-0 slots=1\nquad-node-1 slots=1\n");
    // Where slots are told by the launch line they are in the file, too.
    let line = "cat AZUREML_MPI_HOSTFILE; mpirun -np 4 true";
    assert_eq!(written(AZURE, line), "quad-node-0 slots=2\nquad-node-1 slots=2\n");
}

#[test]
fn the_versions_of_mpijob_have_their_host_file_and_their_script_of_hosts() {
    let files =
        "cat /etc/mpi/hostfile; [ ! -e /etc/mpi/discover_hosts.sh ] || /etc/mpi/discover_hosts.sh";
    let names = "quad-worker-0 slots=2\nquad-worker-1 slots=2\n";
    assert_eq!(written(V1ALPHA1, files), names);
    let version = |version: &str| TWO_TEMPLATES.replace("VERSION", version);
    assert_eq!(written(&version("v1alpha2"), files), names);
    let hosts = "quad-worker-0:2\nquad-worker-1:2\n";
    assert_eq!(written(&version("v1"), files), format!("{names}{hosts}"));
    // On a cluster the last version calls hosts by their full names. MPIs know their own host only by the short one, so that is
    // what stands here; the full ones lead to the same hosts.
    let full = "ssh quad-worker-1.quad.default.svc hostname; getent hosts quad-worker-0.quad.default.svc | wc -l";
    let written = written(&version("v2beta1"), &format!("{files}; {full}"));
    let hosts = "quad-worker-0\nquad-worker-1\n";
    assert_eq!(written, format!("{names}{hosts}quad-worker-1\n1\n"));
}

#[test]
fn mpijobs_launchers_and_workers_have_their_variables() {
    let version = |version: &str| TWO_TEMPLATES.replace("VERSION", version);
    let script = "echo $OMPI_MCA_orte_default_hostfile; echo [${NVIDIA_VISIBLE_DEVICES-unset}]";
    for version in [version("v1alpha2"), version("v1")] {
        assert_eq!(written(&version, script), "/etc/mpi/hostfile\n[]\n");
    }
    let roles = "echo $K_MPI_JOB_ROLE; ssh quad-worker-1 'echo $K_MPI_JOB_ROLE'; \
                 echo $OMPI_MCA_orte_keep_fqdn_hostnames $OMPI_MCA_orte_set_default_slots; \
                 echo $OMPI_MCA_plm_rsh_args; echo $OMPI_MCA_orte_default_hostfile";
    let expected = "launcher\nworker\ntrue 2\n-o ConnectionAttempts=10\n/etc/mpi/hostfile\n";
    assert_eq!(written(&version("v2beta1"), roles), expected);
}

#[test]
fn what_only_helps_launchers_to_start_does_not_reach_ranks() {
    let script = "mpirun sh -c 'echo [$HWLOC_COMPONENTS][$HWLOC_PLUGINS_PATH][$UNISONO_NOT_FOR_RANKS]'; \
                  echo [$HWLOC_COMPONENTS]";
    assert_eq!(written(V1ALPHA1, script), "[][][]\n".repeat(4) + "[-pci,-linux:pci]\n");
}

#[test]
fn kube_batch_has_bare_names_in_a_file_of_its_own() {
    let script = "cat /mpi/hostfile; echo $HYDRA_HOST_FILE";
    let lines = written(KUBE_BATCH, script);
    let (hosts, file) = lines.rsplit_once("/mpi/").expect("two parts");
    assert_eq!(file, "hostfile\n");
    let names: Vec<&str> = hosts.lines().collect();
    assert_eq!(names.len(), 4, "{lines}");
    assert!(names.iter().all(|name| name.starts_with("quad-") && !name.contains(' ')), "{lines}");
}

const OPENPAI: &str = r#"{"jobName": "trio", "image": "lab/x:1", "virtualCluster": "fast",
  "jobEnvs": {"OMP_NUM_THREADS": 4, "GREETING": "good day"}, "taskRoles": [
  {"name": "main", "taskNumber": 1, "cpuNumber": 2, "memoryMB": 512, "shmMB": 128, "gpuNumber": 0,
   "minFailedTaskCount": 1, "minSucceededTaskCount": 1, "command": COMMAND},
  {"name": "node", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "sleep infinity",
   "portList": [{"label": "trace", "beginAt": 0, "portNumber": 2}]}]}"#;

/// Every name that OpenPAI's documents list and its last versions still set; `ROLE`, `I` and `LABEL` for those that are many.
const PAI_NAMES: &str = "
    PAI_JOB_NAME PAI_USER_NAME PAI_DEFAULT_FS_URI PAI_TASK_ROLE_COUNT PAI_TASK_ROLE_LIST PAI_TASK_ROLE_TASK_COUNT_ROLE
    PAI_HOST_IP_ROLE_I PAI_PORT_LIST_ROLE_I_LABEL PAI_RESOURCE_ROLE PAI_RESOURCE PAI_CURRENT_TASK_ROLE_NAME
    PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX PAI_TASK_ROLE_INSTANCES PAI_FRAMEWORK_NAME PAI_VIRTUAL_CLUSTER PAI_WORK_DIR
    PAI_JOB_VC_NAME PAI_DATA_DIR PAI_OUTPUT_DIR PAI_CODE_DIR PAI_CURRENT_TASK_ROLE_TASK_COUNT PAI_CURRENT_TASK_ROLE_CPU_COUNT
    PAI_CURRENT_TASK_ROLE_MEM_MB PAI_CURRENT_TASK_ROLE_SHM_MB PAI_CURRENT_TASK_ROLE_GPU_COUNT PAI_JOB_TASK_COUNT
    PAI_JOB_TASK_ROLE_COUNT PAI_JOB_TASK_ROLE_LIST PAI_CONTAINER_HOST_IP PAI_CONTAINER_HOST_PORT PAI_CONTAINER_SSH_PORT
    PAI_CONTAINER_HOST_PORT_LIST PAI_CONTAINER_HOST_LABEL_PORT_LIST PAI_TASK_ROLE_ROLE_HOST_LIST PAI_ROLE_I_LABEL_PORT
    PAI_CONTAINER_ID PAI_TASK_INDEX PAI_CURRENT_CONTAINER_IP PAI_CURRENT_CONTAINER_PORT PAI_TASK_ROLE_INDEX PAI_USERNAME
    PAI_TASK_ROLE_NAME PAI_TASK_ROLE_NUM PAI_TASK_CPU_NUM PAI_TASK_MEM_MB PAI_TASK_GPU_NUM PAI_TASKS_NUM PAI_TASK_ROLES_NUM
    APP_ID FRAMEWORK_NAME HADOOP_USER_NAME TASKROLE_NAME TASK_INDEX CONTAINER_ID CONTAINER_IP CONTAINER_PORTS
    FC_FRAMEWORK_NAME FC_TASKROLE_NAME FC_TASK_INDEX FC_FRAMEWORK_ATTEMPT_ID FC_TASK_ATTEMPT_ID";

/// Only where the file has a rule, which is the case for one role here.
const PAI_RULES: [&str; 4] = [
    "PAI_MIN_FAILED_TASK_COUNT_main",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_main",
    "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT",
    "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT",
];

/// The variables of the tasks `main-0` and `node-1`.
fn variables() -> [BTreeMap<String, String>; 2] {
    let lines = written(OPENPAI, "env -0 | tr '\\n\\0' ' \\n'; echo; ssh node-1 env");
    let (main, node) = lines.split_once("\n\n").expect("two tasks");
    [main, node].map(|lines| {
        let pairs = lines.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    })
}

#[test]
fn openpai_sets_every_variable_of_its_documents() {
    let [main, node] = variables();
    let named = PAI_NAMES.split_whitespace().map(|name| {
        let name = match name.contains("_I_") || name.ends_with("_I") {
            true => name.replace("_ROLE_I", "_node_1"),
            false if name.ends_with("_ROLE") || name == "PAI_TASK_ROLE_ROLE_HOST_LIST" => {
                name.replace("ROLE_ROLE", "ROLE_node").replace("COUNT_ROLE", "COUNT_node")
            }
            false => name.to_owned(),
        };
        name.replace("RESOURCE_ROLE", "RESOURCE_node")
    });
    for name in named {
        // The task that has such ports tells its own; everybody tells everybody's.
        let of_its_own = name.contains("CONTAINER_HOST_LABEL");
        let name = name.replace("LABEL", "trace");
        assert!(node.contains_key(&name), "node-1 has no {name}");
        assert!(of_its_own || main.contains_key(&name), "main-0 has no {name}");
    }
    for name in PAI_RULES {
        assert_eq!(main.get(name).map(String::as_str), Some("1"), "{name}");
    }
}

#[test]
fn openpais_variables_say_what_its_documents_say() {
    let [main, node] = variables();
    for (name, value) in [
        ("PAI_JOB_NAME", "trio"),
        ("PAI_TASK_ROLE_COUNT", "2"),
        ("PAI_TASK_ROLE_LIST", "main,node"),
        ("PAI_TASK_ROLE_TASK_COUNT_node", "2"),
        ("PAI_RESOURCE_main", "0,2,512,128"),
        ("PAI_TASK_ROLE_INSTANCES", "main:0,node:0,node:1"),
        ("PAI_VIRTUAL_CLUSTER", "fast"),
        ("PAI_JOB_TASK_COUNT", "3"),
        ("OMP_NUM_THREADS", "4"),
        ("GREETING", "good day"),
    ] {
        let told = [&main, &node].map(|task| task.get(name).map(String::as_str));
        assert_eq!(told, [Some(value); 2], "{name}");
    }
    let own = |name: &str| [&main[name], &node[name]].map(String::as_str);
    assert_eq!(own("PAI_CURRENT_TASK_ROLE_NAME"), ["main", "node"]);
    assert_eq!(own("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"), ["0", "1"]);
    assert_ne!(main["PAI_CONTAINER_ID"], node["PAI_CONTAINER_ID"]);
    assert_eq!(node["PAI_CONTAINER_HOST_IP"], main["PAI_HOST_IP_node_1"]);
    assert_eq!(node["CONTAINER_IP"], main["PAI_HOST_IP_node_1"]);
}

#[test]
fn openpais_ports_are_as_many_as_asked_for_and_nobody_elses() {
    let [main, node] = variables();
    let ports: Vec<u16> = ["http", "ssh", "trace"]
        .iter()
        .flat_map(|label| {
            (0..2).flat_map(move |task| vec![format!("PAI_PORT_LIST_node_{task}_{label}")])
        })
        .flat_map(|name| main[&name].split(',').map(str::to_owned).collect::<Vec<_>>())
        .map(|port| port.parse().expect("a port"))
        .collect();
    assert_eq!(ports.len(), 2 * (1 + 1 + 2), "{ports:?}");
    let mut different = ports.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), ports.len(), "{ports:?}");
    let listed = &node["PAI_CONTAINER_HOST_PORT_LIST"];
    let trace = &main["PAI_PORT_LIST_node_1_trace"];
    assert!(listed.contains(&format!("trace:{trace};")), "{listed}");
    assert_eq!(node["PAI_CONTAINER_HOST_trace_PORT_LIST"], *trace);
    let (http, address) = (&main["PAI_PORT_LIST_node_1_http"], &main["PAI_HOST_IP_node_1"]);
    assert!(main["PAI_TASK_ROLE_node_HOST_LIST"].ends_with(&format!(",{address}:{http}")));
}

#[test]
fn openpais_shared_memory_has_the_size_that_the_file_states() {
    let size = "df --output=size -k /dev/shm | tail -n 1";
    let script = format!("{size}; ssh node-0 '{size}'; test $PAI_WORK_DIR = $PWD && echo here");
    let lines = written(OPENPAI, &script);
    let words: Vec<&str> = lines.split_whitespace().collect();
    // 128 MiB, and 64 where nothing is stated.
    assert_eq!(words, ["131072", "65536", "here"]);
}
