//! The crates that decide may not even be able to do: their whole dependency tree is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// Crates that only decide.
const PURE: [&str; 3] = ["unisono-job", "unisono-dialect", "unisono-plan"];

/// What would let them do: run tasks, talk over networks, roll dice, ask for the time.
const FORBIDDEN: [&str; 15] = [
    "tokio",
    "async-std",
    "smol",
    "mio",
    "rustix",
    "libc",
    "hyper",
    "reqwest",
    "kube",
    "kube-client",
    "rand",
    "getrandom",
    "fastrand",
    "chrono",
    "time",
];

pub(super) fn breaches(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        // A fresh machine has only what it built: what other systems need is fetched here.
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("read cargo metadata")?;
    let graph = graph(&metadata);
    let mut breaches = Vec::new();
    for pure in PURE {
        let reached = closure(&graph, pure);
        if reached.is_empty() {
            breaches.push(format!("{pure}: no such crate, so its purity is not checked"));
        }
        let bad = FORBIDDEN.iter().filter(|name| reached.contains(**name));
        breaches.extend(bad.map(|name| format!("{pure}: depends on {name}, but may only decide")));
    }
    Ok(breaches)
}

/// Package name → names of what it is built and run with; tests may use anything.
fn graph(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let name = |id: &Value| names.get(&text(id)).cloned().unwrap_or_default();
    list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_used = |dependency: &&Value| {
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
            };
            let dependencies = list(&node["deps"]);
            let used = dependencies.iter().filter(is_used).map(|it| name(&it["pkg"]));
            (name(&node["id"]), used.collect())
        })
        .collect()
}

fn closure(graph: &BTreeMap<String, BTreeSet<String>>, start: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> =
        graph.get_key_value(start).map(|it| it.0.as_str()).into_iter().collect();
    while let Some(name) = waiting.pop() {
        if reached.insert(name.to_owned()) {
            waiting.extend(graph.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_through_others_counts() {
        let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let graph = BTreeMap::from([
            ("plan".to_owned(), set(&["a"])),
            ("a".to_owned(), set(&["rand"])),
            ("rand".to_owned(), set(&[])),
            ("other".to_owned(), set(&["tokio"])),
        ]);
        assert_eq!(closure(&graph, "plan"), set(&["a", "plan", "rand"]));
        assert_eq!(closure(&graph, "missing"), set(&[]));
    }
}
