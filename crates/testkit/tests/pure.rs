//! Pure crates stay pure: what they are built from holds no runtime, no network, no cluster and no randomness.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const PURE: [&str; 3] = ["unisono-job", "unisono-dialect", "unisono-plan"];
const FORBIDDEN: [&str; 9] =
    ["tokio", "hyper", "kube", "rand", "getrandom", "mio", "reqwest", "rustix", "libc"];

#[test]
fn pure_crates_are_built_from_nothing_that_acts() {
    let metadata = metadata();
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let edges: BTreeMap<&str, Vec<&str>> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), normal_dependencies(node)))
        .collect();
    for pure in PURE {
        let start = *names.iter().find(|(_, name)| **name == pure).unwrap().0;
        let (mut todo, mut reached) = (vec![start], BTreeSet::new());
        while let Some(id) = todo.pop() {
            if reached.insert(id) {
                todo.extend(edges[id].iter().copied());
            }
        }
        let built_from: BTreeSet<&str> = reached.iter().map(|id| names[id]).collect();
        let bad: Vec<&&str> = FORBIDDEN.iter().filter(|name| built_from.contains(**name)).collect();
        assert!(bad.is_empty(), "{pure} is built from {bad:?}");
    }
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Dependencies that end up in the built crate; those of tests and build scripts do not.
fn normal_dependencies(node: &Value) -> Vec<&str> {
    let is_normal = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().unwrap().iter();
    dependencies.filter(is_normal).map(|dependency| dependency["pkg"].as_str().unwrap()).collect()
}
