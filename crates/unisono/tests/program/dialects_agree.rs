//! The same job in every dialect gives the same ranks on the same number of hosts.

use crate::environment::Environment;
use serde_json::Value;

/// Hosts, slots on each and ranks of a job.
struct Case {
    hosts: u64,
    slots: u64,
    ranks: u64,
}

const CASES: [Case; 5] = [
    Case { hosts: 1, slots: 1, ranks: 1 },
    Case { hosts: 5, slots: 1, ranks: 5 },
    Case { hosts: 2, slots: 4, ranks: 8 },
    Case { hosts: 3, slots: 2, ranks: 6 },
    Case { hosts: 8, slots: 8, ranks: 64 },
];

type Writer = fn(&Case) -> String;

const DIALECTS: [(&str, Writer); 11] = [
    ("azureml/mpijob", azure_mpijob),
    ("azureml/flat", azure_flat),
    ("azureml/v2", azure_command),
    ("openpai/v1", openpai_v1),
    ("openpai/v2", openpai_v2),
    ("kubeflow/v1alpha1", kubeflow_v1alpha1),
    ("kubeflow/v1alpha2", |case| kubeflow(case, "v1alpha2")),
    ("kubeflow/v1", |case| kubeflow(case, "v1")),
    ("kubeflow/v2beta1", |case| kubeflow(case, "v2beta1")),
    ("kube-batch", kube_batch),
    ("unisono", unisono),
];

fn azure_mpijob(Case { hosts, ranks, .. }: &Case) -> String {
    format!(
        "name: agree\ntype: MpiJob\nlauncher: {{spec: {{command: mpirun -np {ranks} --hostfile AZUREML_MPI_HOSTFILE ./a, environment: azureml:e:1}}}}\nworker: {{spec: {{environment: azureml:e:1}}}}\ncompute: {{type: AmlCompute, target: t, instance_count: {hosts}}}\n"
    )
}

fn azure_flat(Case { hosts, ranks, .. }: &Case) -> String {
    format!(
        "name: agree\ncommand: mpirun -np {ranks} ./a\nenvironment: azureml:e:1\ndistributed: {{mpi: {{}}}}\ncompute: {{target: azureml:t, instance_count: {hosts}}}\n"
    )
}

fn azure_command(Case { hosts, slots, .. }: &Case) -> String {
    format!(
        "name: agree\ntype: command\ncommand: ./a\nenvironment: azureml:e:1\ncompute: azureml:t\ndistribution: {{type: mpi, process_count_per_instance: {slots}}}\nresources: {{instance_count: {hosts}}}\n"
    )
}

/// OpenPAI's users name their hosts themselves.
fn host_list(Case { hosts, slots, .. }: &Case) -> String {
    let hosts: Vec<String> = (0..*hosts).map(|index| format!("worker-{index}:{slots}")).collect();
    hosts.join(",")
}

fn openpai_v1(case: &Case) -> String {
    let (hosts, ranks, list) = (case.hosts, case.ranks, host_list(case));
    format!(
        r#"{{"jobName": "agree", "image": "i", "taskRoles": [{{"name": "worker", "taskNumber": {hosts}, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "mpirun -np {ranks} -H {list} ./a"}}]}}"#
    )
}

fn openpai_v2(case: &Case) -> String {
    let (hosts, ranks, list) = (case.hosts, case.ranks, host_list(case));
    format!(
        "protocolVersion: 2\nname: agree\ntype: job\nprerequisites: [{{protocolVersion: 2, name: i, type: dockerimage, uri: i}}]\ntaskRoles:\n  worker: {{instances: {hosts}, dockerImage: i, resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}, commands: ['mpirun -np {ranks} -H {list} ./a']}}\n"
    )
}

fn kubeflow_v1alpha1(Case { hosts, slots, ranks }: &Case) -> String {
    format!(
        "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {{name: agree}}\nspec:\n  replicas: {hosts}\n  slotsPerWorker: {slots}\n  template: {{spec: {{containers: [{{name: c, image: i, command: [mpirun, -np, '{ranks}', ./a]}}]}}}}\n"
    )
}

fn kubeflow(Case { hosts, slots, ranks }: &Case, version: &str) -> String {
    format!(
        "apiVersion: kubeflow.org/{version}\nkind: MPIJob\nmetadata: {{name: agree}}\nspec:\n  slotsPerWorker: {slots}\n  mpiReplicaSpecs:\n    Launcher: {{replicas: 1, template: {{spec: {{containers: [{{name: c, image: i, command: [mpirun, -np, '{ranks}', ./a]}}]}}}}}}\n    Worker: {{replicas: {hosts}, template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}\n"
    )
}

fn kube_batch(Case { hosts, ranks, .. }: &Case) -> String {
    format!(
        "apiVersion: scheduling.incubator.k8s.io/v1alpha1\nkind: MPI\nmetadata: {{name: agree}}\nspec:\n  job: {{completions: {hosts}, parallelism: {hosts}, template: {{spec: {{containers: [{{name: c, image: i, command: [mpirun, -n, '{ranks}', ./a]}}]}}}}}}\n"
    )
}

fn unisono(Case { hosts, slots, ranks }: &Case) -> String {
    format!(
        "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: agree}}\nspec:\n  groups:\n  - {{name: launcher, run: Launch, command: [mpirun, -np, '{ranks}', ./a]}}\n  - {{name: worker, replicas: {hosts}, slots: {slots}}}\n"
    )
}

/// Hosts that run ranks, slots over all of them, and ranks.
fn outcome(plan: &Value) -> (usize, u64, Option<u64>) {
    let hosts = plan["hosts"].as_array().expect("hosts are a list");
    let slots: Vec<u64> = hosts.iter().filter_map(|host| host["slots"].as_u64()).collect();
    let hosting = slots.iter().filter(|slots| **slots > 0).count();
    (hosting, slots.iter().sum(), plan["ranks"].as_u64())
}

#[test]
fn every_dialect_gives_the_same_ranks_on_the_same_number_of_hosts() {
    let environment = Environment::new();
    for case in &CASES {
        let expected = usize::try_from(case.hosts).expect("it is small");
        for (dialect, write) in DIALECTS {
            // kube-batch has no word for slots: every pod runs one rank.
            if dialect == "kube-batch" && case.slots > 1 {
                continue;
            }
            environment.file("job", write(case));
            let plan = environment.plan(&["job"]);
            assert_eq!(plan["job"]["dialect"], dialect);
            let (hosts, slots, ranks) = outcome(&plan);
            assert_eq!((hosts, ranks), (expected, Some(case.ranks)), "{dialect}");
            assert!(slots >= case.ranks, "{dialect} has {slots} slots for {} ranks", case.ranks);
        }
    }
}
