//! What `unisono submit` does without a cluster: mappings, code that travels, and clear words where something is missing.

use crate::environment::Environment;

const AZURE: &str = "\
name: ring
type: MpiJob
launcher: {spec: {command: mpirun -np 2 ./a, code: {path: src}, environment: azureml:mpi:3}}
worker: {spec: {environment: azureml:mpi:3}}
compute: {type: AmlCompute, target: d8-pool, instance_count: 2}
";

const SETTINGS: &str = "\
[environments]
\"azureml:mpi\" = \"lab/mpi:3\"
[compute.d8-pool]
namespace = \"ml\"
node_selector = { pool = \"d8\" }
";

fn environment() -> Environment {
    let environment = Environment::new();
    environment.file("job.yaml", AZURE).file("unisono.toml", SETTINGS).file("src/a", "x");
    environment
}

#[test]
fn names_of_azure_become_the_clusters_and_code_travels() {
    let shown = environment().run(&["submit", "--dry-run", "job.yaml"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{}", shown.stdout);
    for part in [
        "kind: UnisonoJob",
        "image: lab/mpi:3",
        "namespace: ml",
        "pool: d8",
        "code: configmaps:ring-code:1",
        "name: ring-code-0",
        "workingDir: /opt/unisono/code",
        "- --code\n",
    ] {
        assert!(shown.stdout.contains(part), "no {part:?} in\n{}", shown.stdout);
    }
}

#[test]
fn an_environment_without_an_image_is_a_fault_with_the_line_to_add() {
    let environment = environment();
    environment.file("unisono.toml", "");
    let refused = environment.run(&["submit", "job.yaml"]);
    assert_eq!(refused.code, 1);
    let line = "\"azureml:mpi:3\" = \"REGISTRY/IMAGE:TAG\"";
    assert!(refused.stderr.contains(line), "{}", refused.stderr);
    assert!(refused.stderr.contains("job.yaml:4:"), "{}", refused.stderr);
}

#[test]
fn code_that_is_too_large_is_refused_or_taken_from_a_volume() {
    let environment = environment();
    let large = std::fs::File::create(environment.path().join("src/model.bin")).unwrap();
    large.set_len(20 << 20).unwrap();
    let refused = environment.run(&["submit", "job.yaml"]);
    assert_eq!(refused.code, 125);
    for part in ["20.0 MiB in 2 files", "model.bin (20.0 MiB)", "--code-volume"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let words = ["submit", "--dry-run", "job.yaml", "--code-volume", "data/ring"];
    let shown = environment.run(&words);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for part in ["claimName: data", "subPath: ring", "workingDir: /opt/unisono/code"] {
        assert!(shown.stdout.contains(part), "no {part:?} in\n{}", shown.stdout);
    }
}

#[test]
fn a_cluster_that_is_not_there_is_told() {
    let environment = environment();
    let unknown = environment.run(&["submit", "job.yaml"]);
    assert_eq!(unknown.code, 125);
    assert!(unknown.stderr.contains("no cluster is known"), "{}", unknown.stderr);
    environment.file(
        "kubeconfig",
        "\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: a, user: {token: x}}]
",
    );
    let mut command = environment.command(&["submit", "job.yaml"]);
    let path = environment.path().join("kubeconfig");
    let unreachable =
        crate::environment::Ended::of(command.env("KUBECONFIG", &path).output().unwrap());
    assert_eq!(unreachable.code, 125);
    let told = "no cluster can be reached at http://127.0.0.1:9/";
    assert!(unreachable.stderr.contains(told), "{}", unreachable.stderr);
}

#[test]
fn objects_of_a_file_are_shown_as_they_are() {
    let environment = Environment::new();
    environment.file(
        "job.yaml",
        "\
apiVersion: v1
kind: ConfigMap
metadata: {name: data}
data: {key: value}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  unknownField: 7
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: i, command: [mpirun, /pi]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: i}]}}}
",
    );
    let shown = environment.run(&["submit", "--dry-run", "job.yaml"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.starts_with("apiVersion: v1\nkind: ConfigMap\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("unknownField: 7"), "{}", shown.stdout);
    assert_eq!(shown.stdout.matches("kind: Pod\n").count(), 3);
}

#[test]
fn an_object_that_only_shares_a_jobs_name_is_not_the_job() {
    let environment = Environment::new();
    environment.file("src/pi", "x");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: pi}\n---\n";
    let job = "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: pi}
spec:
  groups: [{name: node, run: LaunchOnFirst, image: i, code: src, command: [mpirun, ./pi]}]
";
    environment.file("job.yaml", format!("{claim}{job}"));
    let shown = environment.run(&["submit", "--dry-run", "job.yaml", "--job", "pi"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.starts_with("apiVersion: v1\nkind: PersistentVolumeClaim\n"));
    assert_eq!(shown.stdout.matches("kind: UnisonoJob\nmetadata").count(), 1, "{}", shown.stdout);
    assert!(!shown.stdout.contains("code: src"), "{}", shown.stdout);
}

#[test]
fn a_job_whose_name_the_cluster_makes_up_is_a_job() {
    let environment = Environment::new();
    environment.file(
        "job.yaml",
        "\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {generateName: pi-}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: i, command: [mpirun, /pi]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: i}]}}}
",
    );
    // It gets as far as asking for a cluster: one job is there to follow.
    let followed = environment.run(&["submit", "--follow", "job.yaml"]);
    assert_eq!(followed.code, 125, "{}", followed.stderr);
    assert!(followed.stderr.contains("no cluster is known"), "{}", followed.stderr);
}

const OPENPAI: &str = r#"{"jobName": "ring", "image": "i", "virtualCluster": "vc1", "codeDir": "home/$PAI_USER_NAME/src",
  "taskRoles": [{"name": "w", "taskNumber": 1, "command": "./a"}]}"#;

/// What is told of a job with a queue.
const NO_POD_GROUP: &str = "a PodGroup is not shown: whether and how the operator makes one follows from its flag --gang\n";

#[test]
fn openpais_variables_and_folders_name_who_submits_the_job_and_where() {
    let environment = Environment::new();
    environment.file("job.json", OPENPAI).file("home/somebody/src/a", "x");
    environment.file("unisono.toml", "virtual_clusters.vc1.queue = \"gold\"\n");
    let shown = environment.run(&["submit", "--dry-run", "job.json"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, NO_POD_GROUP), "{}", shown.stdout);
    for part in [
        "queue: gold",
        "code: configmaps:ring-code:1",
        "name: PAI_USER_NAME\n      value: somebody\n",
        "name: PAI_FRAMEWORK_NAME\n      value: somebody~ring\n",
        "name: PAI_OUTPUT_DIR\n      value: /Output/somebody/ring\n",
        "name: PAI_VIRTUAL_CLUSTER\n      value: vc1\n",
    ] {
        assert!(shown.stdout.contains(part), "no {part:?} in\n{}", shown.stdout);
    }
}

#[test]
fn secrets_are_hidden_in_what_is_shown() {
    let environment = Environment::new();
    environment.file(
        "job.yaml",
        "\
protocolVersion: 2
name: ring
type: job
secrets: {key: hunter2}
prerequisites: [{protocolVersion: 2, name: mpi, type: dockerimage, uri: i}]
taskRoles:
  w:
    instances: 1
    dockerImage: mpi
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: ['login --password=<% $secrets.key %>']
",
    );
    let shown = environment.run(&["submit", "--dry-run", "job.yaml"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("login --password=<% $secrets.key %>"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("hunter2"), "{}", shown.stdout);
}

#[test]
fn a_volume_on_the_command_line_wins_over_a_folder_that_could_travel() {
    let words = ["submit", "--dry-run", "job.yaml", "--code-volume", "data/ring"];
    let shown = environment().run(&words);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("code: claim:data/ring"), "{}", shown.stdout);
    let environment = environment();
    environment.file("unisono.toml", format!("code_volume = \"data/ring\"\n{SETTINGS}"));
    let shown = environment.run(&["submit", "--dry-run", "job.yaml"]);
    assert!(shown.stdout.contains("code: configmaps:ring-code:1"), "{}", shown.stdout);
}

#[test]
fn a_preview_counts_the_gpus_of_a_node_as_the_settings_do() {
    let environment = Environment::new();
    environment.file(
        "job.yaml",
        "\
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: pi}
spec: {gpus: 8, template: {spec: {containers: [{name: c, image: i, command: [mpirun, /pi]}]}}}
",
    );
    for (gpus, pods) in [("8", 2), ("4", 3)] {
        let shown = environment.run(&["submit", "--dry-run", "job.yaml", "--gpus-per-node", gpus]);
        assert_eq!(shown.stdout.matches("kind: Pod\n").count(), pods, "{gpus}: {}", shown.stderr);
    }
}

#[test]
fn code_that_an_object_names_is_told_not_to_be_in_the_cluster() {
    let environment = Environment::new();
    environment.file(
        "job.yaml",
        "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: pi}
spec: {groups: [{name: node, run: LaunchOnFirst, image: i, code: ./src, command: [mpirun, ./pi]}]}
",
    );
    let planned = environment.run(&["plan", "--engine", "kubernetes", "job.yaml"]);
    let told = "the code `./src` of node is not in the cluster";
    assert!((planned.stderr + &planned.stdout).contains(told));
    let here = environment.run(&["plan", "job.yaml"]);
    assert!(!(here.stderr + &here.stdout).contains("not in the cluster"));
}

#[test]
fn a_table_for_rdma_means_that_the_cluster_has_it() {
    let environment = Environment::new();
    let job = OPENPAI.replace(
        "\"codeDir\": \"home/$PAI_USER_NAME/src\",",
        "\"jobEnvs\": {\"paiAzRDMA\": true},",
    );
    environment.file("job.json", job);
    environment.file(
        "unisono.toml",
        "rdma.resources = { \"rdma/hca\" = \"1\" }\nvirtual_clusters.vc1.queue = \"x\"\n",
    );
    let shown = environment.run(&["submit", "--dry-run", "job.json"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, NO_POD_GROUP));
    assert!(shown.stdout.contains("rdma/hca: 1"), "{}", shown.stdout);
}

#[test]
fn a_switch_for_rdma_in_quotes_is_none() {
    let environment = Environment::new();
    let job = OPENPAI.replace(
        "\"codeDir\": \"home/$PAI_USER_NAME/src\",",
        "\"jobEnvs\": {\"paiAzRDMA\": \"true\"},",
    );
    environment.file("job.json", job);
    environment.file("unisono.toml", "rdma.resources = { \"rdma/hca\" = \"1\" }\n");
    let shown = environment.run(&["submit", "--dry-run", "job.json"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let told = "only the value true, without quotes, asks for RDMA";
    assert!(shown.stderr.contains(told), "{}", shown.stderr);
    assert!(!shown.stdout.contains("rdma/hca"), "{}", shown.stdout);
}

#[test]
fn a_plan_for_a_cluster_takes_names_as_the_cluster_is_given_them() {
    let environment = environment();
    let words = ["plan", "--engine", "kubernetes", "job.yaml"];
    let planned = environment.run(&[&words[..], &["--output", "json"]].concat());
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(planned.stdout.contains("\"namespace\": \"ml\""), "{}", planned.stdout);
    environment.file("unisono.toml", "");
    let refused = environment.run(&words);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let line = "\"azureml:mpi:3\" = \"REGISTRY/IMAGE:TAG\"";
    assert!(refused.stderr.contains(line), "{}", refused.stderr);
    let here = environment.run(&["plan", "job.yaml"]);
    assert_eq!(here.code, 0, "{}", here.stderr);
}
