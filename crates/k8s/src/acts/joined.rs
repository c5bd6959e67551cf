//! Many deletions as one request: the pods to be deleted enter, what selects exactly those leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::marks;
use crate::slim::Pod;
use crate::writes::Selected;

/// The role of pods that only host ranks.
const WORKER: &str = "worker";

/// Pods that have not ended.
const ALIVE: &str = "status.phase!=Failed,status.phase!=Succeeded";

/// Whether a pod can be selected: one that we made, and that only hosts ranks.
pub(super) fn is_worker(pod: &Pod) -> bool {
    !pod.is_adopted() && pod.label(marks::ROLE) == Some(WORKER)
}

/// What selects these workers and no other pod of the job that is not being deleted; none where nothing does, or one request
/// would save none.
pub(super) fn selection(workers: &[Arc<Pod>], all: &[Arc<Pod>]) -> Option<Selected> {
    let labels = |name: &str| -> BTreeSet<&str> {
        workers.iter().filter_map(|pod| pod.label(name)).collect()
    };
    let (owners, epochs) = (labels(marks::JOB_UID), labels(marks::EPOCH));
    let (Some(owner), 1, true) = (owners.first(), owners.len(), workers.len() > 1) else {
        return None;
    };
    let is_selected = |pod: &&Arc<Pod>| {
        let is_of_epoch = pod.label(marks::EPOCH).is_some_and(|epoch| epochs.contains(epoch));
        let is_own = pod.label(marks::JOB_UID) == Some(owner);
        !pod.is_going() && is_worker(pod) && is_own && is_of_epoch
    };
    let is_alive = |pod: &&Arc<Pod>| !matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
    let wanted = uids(workers.iter());
    let fields = if uids(all.iter().filter(is_selected).filter(is_alive)) == wanted {
        // One that ends meanwhile is left to the next look: it may be one to keep.
        Some(ALIVE)
    } else if uids(all.iter().filter(is_selected)) == wanted {
        None
    } else {
        return None;
    };
    let epochs: Vec<&str> = epochs.into_iter().collect();
    let (job, role, epoch) = (marks::JOB_UID, marks::ROLE, marks::EPOCH);
    let labels = format!("{job}={owner},{role}={WORKER},{epoch} in ({})", epochs.join(","));
    Some(Selected { labels, fields })
}

fn uids<'pod>(pods: impl Iterator<Item = &'pod Arc<Pod>>) -> BTreeSet<Option<&'pod str>> {
    pods.map(|pod| pod.metadata.uid.as_deref()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worker(index: u32, epoch: &str, phase: &str) -> Arc<Pod> {
        let labels = json!({
            "unisono.dev/job-uid": "1", "unisono.dev/member": format!("1.{index}"), "unisono.dev/epoch": epoch,
            marks::ROLE: WORKER,
        });
        let metadata =
            json!({"name": index.to_string(), "uid": index.to_string(), "labels": labels});
        let pod = json!({"metadata": metadata, "status": {"phase": phase}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn what_is_selected_is_what_was_meant() {
        let all = [worker(0, "0", "Running"), worker(1, "2", "Running"), worker(2, "0", "Failed")];
        let running = selection(&all[..2], &all).unwrap();
        assert_eq!(
            running.labels,
            "unisono.dev/job-uid=1,mpi-job-role=worker,unisono.dev/epoch in (0,2)"
        );
        assert_eq!(running.fields, Some(ALIVE));
        assert_eq!(selection(&all, &all).unwrap().fields, None, "ended ones go, too");
    }

    #[test]
    fn what_no_selector_means_is_deleted_one_by_one() {
        let all = [worker(0, "0", "Running"), worker(1, "0", "Running"), worker(2, "0", "Running")];
        assert_eq!(selection(&all[..2], &all), None, "the third stays");
        assert_eq!(selection(&all[..1], &all[..1]), None, "one is one");
    }
}
