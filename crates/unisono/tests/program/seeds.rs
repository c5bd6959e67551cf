//! The sample documents that Unisono was asked to run, through the program: hosts, slots, ranks and where each launches.

use crate::environment::Environment;
use serde_json::{Value, json};

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dialect/tests/seeds");

fn plan(file: &str) -> Value {
    Environment::new().plan(&[file])
}

fn seed(name: &str) -> Value {
    plan(&format!("{SEEDS}/{name}"))
}

fn own(name: &str) -> Value {
    plan(&format!("{}/tests/seeds/{name}", env!("CARGO_MANIFEST_DIR")))
}

/// Group, slots and purpose of every host.
fn hosts(plan: &Value) -> Vec<(&str, u64, &str)> {
    let list = plan["hosts"].as_array().expect("hosts are a list");
    let text = |value: &'_ Value| -> String { value.as_str().expect("it is text").to_owned() };
    list.iter()
        .map(|host| {
            assert!(!text(&host["name"]).is_empty() && host["index"].is_u64());
            (
                host["group"].as_str().expect("a group has a name"),
                host["slots"].as_u64().expect("slots are a number"),
                host["runs"].as_str().expect("it says what it runs"),
            )
        })
        .collect()
}

fn codes(plan: &Value) -> Vec<&str> {
    let notes = plan["notes"].as_array().expect("notes are a list");
    notes.iter().map(|note| note["code"].as_str().expect("a code has a name")).collect()
}

#[test]
fn azure_on_managed_hosts() {
    for name in ["azureml-1.yaml", "azureml-2.yaml"] {
        let plan = seed(name);
        assert_eq!(plan["job"]["name"], "sample-mpi-job");
        assert_eq!(plan["job"]["dialect"], "azureml/mpijob");
        assert_eq!(
            hosts(&plan),
            [
                ("node", 4, "launch+ranks"),
                ("node", 4, "ranks"),
                ("node", 4, "ranks"),
                ("node", 4, "ranks")
            ]
        );
        assert_eq!(plan["ranks"], 16);
        assert_eq!(plan["launch"]["on"], plan["hosts"][0]["name"]);
        let hostfile = plan["hostfile"].as_str().expect("it is text");
        assert_eq!(hostfile.lines().filter(|line| line.ends_with(" slots=4")).count(), 4);
        assert!(plan["launch"]["env"]["AZUREML_MPI_HOSTFILE"].is_string());
        let line = plan["launch"]["argv"].to_string();
        assert!(!line.contains(" AZUREML_MPI_HOSTFILE"), "the bare word means the path: {line}");
    }
}

#[test]
fn azure_on_kubernetes() {
    let plan = seed("azureml-3.yaml");
    let mut expected = vec![("launcher", 0, "launch")];
    expected.extend([("worker", 4, "ranks"); 4]);
    assert_eq!(hosts(&plan), expected);
    assert_eq!(plan["ranks"], 16);
    assert_eq!(plan["launch"]["env"]["OMPI_MCA_orte_default_hostfile"], "/etc/mpi/hostfile");
}

#[test]
fn openpai() {
    let plan = seed("openpai.json");
    assert_eq!(plan["hosts"][0]["name"], "master-0");
    assert_eq!(plan["hosts"][1]["name"], "worker-0");
    assert_eq!(hosts(&plan).iter().map(|host| host.2).collect::<Vec<_>>(), ["command"; 2]);
    assert_eq!(plan["ranks"], Value::Null);
    assert!(codes(&plan).contains(&"rdma-off"));
}

#[test]
fn ksonnet_quick_start() {
    let plan = own("ksonnet.yaml");
    assert_eq!(
        hosts(&plan),
        [("launcher", 0, "launch"), ("worker", 8, "ranks"), ("worker", 8, "ranks")]
    );
    assert_eq!(plan["ranks"], 16);
}

#[test]
fn kubeflow() {
    let plan = own("kubeflow.yaml");
    assert_eq!(hosts(&plan), [("launcher", 0, "launch"), ("worker", 2, "ranks")]);
    assert_eq!(plan["ranks"], 2);
    assert_eq!(plan["hostfile"], "tensorflow-mnist-worker-0 slots=2\n");
    assert_eq!(
        plan["launch"]["argv"],
        json!(["/bin/bash", "-c", "mpirun --allow-run-as-root python fashion.py"])
    );
    let notes = plan["notes"].as_array().expect("notes are a list");
    let request = notes.iter().find(|note| note["code"] == "unknown-key").expect("it is told");
    assert_eq!(request["severity"], "warning");
    assert_eq!(request["hint"], "did you mean `requests`?");
    assert!(request["line"].is_u64() && request["column"].is_u64());
}

#[test]
fn kube_batch() {
    let plan = own("kube-batch.yaml");
    let mut expected = vec![("member", 1, "launch+ranks")];
    expected.extend([("member", 1, "ranks"); 5]);
    let found = hosts(&plan);
    assert_eq!(
        found.iter().map(|host| (host.1, host.2)).collect::<Vec<_>>(),
        expected.iter().map(|host| (host.1, host.2)).collect::<Vec<_>>()
    );
    assert_eq!(plan["ranks"], 6);
}
