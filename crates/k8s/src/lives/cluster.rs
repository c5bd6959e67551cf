//! Everybody else in the cluster: a scheduler, a kubelet and the garbage collector, each one move at a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unisono_plan::Time;

use crate::fake::Store;
use crate::marks;

pub(super) const PODS: &str = "/api/v1/namespaces/lab/pods";
pub(super) const GROUPS: &str = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/lab/podgroups";
const GROUP_LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// Lets everybody move once; whether anything did leaves.
pub(super) fn turn(store: &mut Store, now: Time) -> bool {
    let before = store.version();
    for path in pods(store) {
        kubelet(store, &path, now);
    }
    collect_garbage(store);
    store.version() != before
}

/// Paths of all pods.
pub(super) fn pods(store: &Store) -> Vec<String> {
    store.names(PODS).iter().map(|name| format!("{PODS}/{name}")).collect()
}

fn kubelet(store: &mut Store, path: &str, now: Time) {
    let Some(pod) = store.get(path) else { return };
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if is_going(pod) {
        store.delete(path, true);
    } else if pod["spec"]["nodeName"].is_null() {
        if is_placed(store, pod) {
            let address = address(pod);
            store.change(path, |pod| {
                pod["spec"]["nodeName"] = json!("node-1");
                pod["status"] = json!({"phase": "Pending", "podIP": address});
            });
        }
    } else if phase == "Pending" {
        run(store, path, "Running", &json!({"running": {"startedAt": now.to_string()}}));
    } else if phase == "Running" && pod["spec"]["activeDeadlineSeconds"] == 1 {
        end(store, path, 143, now);
    } else if phase == "Running"
        && let Some(code) = pod["metadata"]["annotations"][marks::END].as_str()
    {
        let code = code.parse().unwrap();
        end(store, path, code, now);
    }
}

/// Paths of the job's pods that run.
pub(super) fn running(store: &Store) -> Vec<String> {
    let state =
        |path: &String| &store.get(path).unwrap()["status"]["containerStatuses"][0]["state"];
    pods(store).into_iter().filter(|path| state(path)["running"].is_object()).collect()
}

/// Loses a pod's node.
pub(super) fn lose(store: &mut Store, path: &str, now: Time) {
    end(store, path, 137, now);
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "lastTransitionTime": now.to_string(),
    });
    store.change(path, |pod| pod["status"]["conditions"] = json!([target]));
}

/// Ends a pod's container.
pub(super) fn end(store: &mut Store, path: &str, code: i32, now: Time) {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let at = now.to_string();
    run(store, path, phase, &json!({"terminated": {"exitCode": code, "finishedAt": at}}));
}

fn run(store: &mut Store, path: &str, phase: &str, state: &Value) {
    store.change(path, |pod| {
        let name = pod["spec"]["containers"][0]["name"].clone();
        pod["status"]["phase"] = json!(phase);
        pod["status"]["containerStatuses"] = json!([{"name": name, "state": state}]);
    });
}

/// Whether the scheduler has a place for a pod: for one of a gang, once the gang is all there.
fn is_placed(store: &Store, pod: &Value) -> bool {
    let group = |pod: &Value| pod["metadata"]["labels"][GROUP_LABEL].as_str().map(str::to_owned);
    let Some(name) = group(pod) else { return true };
    let Some(gang) = store.get(&format!("{GROUPS}/{name}")) else { return false };
    let is_member = |path: &String| {
        let other = store.get(path).unwrap();
        group(other).as_ref() == Some(&name) && !is_going(other)
    };
    let members = pods(store).iter().filter(|path| is_member(path)).count();
    gang["spec"]["minMember"].as_u64().unwrap() <= members as u64
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// An address that follows from what the pod is, so that two lives have the same ones.
fn address(pod: &Value) -> String {
    let label = |name: &str| pod["metadata"]["labels"][name].as_str().unwrap();
    let (group, index) = label(marks::MEMBER).split_once('.').unwrap();
    format!("10.{}.{group}.{index}", label(marks::EPOCH))
}

/// Strikes out owners that are gone; what has none left goes, too.
fn collect_garbage(store: &mut Store) {
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let there: BTreeSet<String> = store.all().values().map(|it| uid(it)).collect();
    let is_there = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| there.contains(uid));
    let mut changes = Vec::new();
    for (path, object) in store.all() {
        let Some(owners) = object["metadata"]["ownerReferences"].as_array() else { continue };
        let left: Vec<Value> = owners.iter().filter(|it| is_there(it)).cloned().collect();
        if left.len() < owners.len() {
            changes.push((path.clone(), left));
        }
    }
    for (path, left) in changes {
        if left.is_empty() {
            store.delete(&path, false);
        } else {
            store.change(&path, |it| it["metadata"]["ownerReferences"] = json!(left));
        }
    }
}
