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
