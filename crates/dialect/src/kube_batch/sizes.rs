//! The three sizes of a kube-batch job, which must be one number: too many ways to hang hide in their difference.

use unisono_job::Note;

use super::Parts;
use super::codes::{SIZES_DIFFER, SIZES_HANG};
use crate::codes;
use crate::kubernetes::Lowering;
use crate::tree::Node;

/// The number of hosts and the gang's size.
pub(super) struct Sizes {
    pub(super) hosts: u32,
    /// Absent: the whole job.
    pub(super) gang: Option<u32>,
}

/// Reads and compares the sizes; none when the job would hang.
pub(super) fn sizes(lowering: &mut Lowering<'_>, parts: &Parts<'_>) -> Option<Sizes> {
    let parallelism = parts.spec.at(&["parallelism"]);
    if parts.job.is_none() && parallelism.is_none() {
        let fault = Note::new(
            &codes::MISSING,
            "the job needs `parallelism`: the gang's size is taken from it",
        )
        .hint("add `parallelism` with the number of hosts");
        lowering.tell(fault, parts.spec);
        return None;
    }
    let completions = parts.spec.at(&["completions"]);
    let at_a_time: u32 = parallelism.map_or(Some(1), Node::integer)?;
    let in_all: u32 = completions.map_or(Some(at_a_time), Node::integer)?;
    if at_a_time < in_all {
        let message = format!(
            "only {at_a_time} of {in_all} pods run at a time; the others never reach the host file"
        );
        let hint = format!("write `parallelism: {in_all}`");
        let node = parallelism.or(completions).unwrap_or(parts.spec);
        lowering.tell(Note::new(&SIZES_HANG, message).hint(hint), node);
    } else if let Some(node) = completions.filter(|_| in_all < at_a_time) {
        let message =
            format!("with {in_all} completions only {in_all} of {at_a_time} pods are made");
        let hint = format!("write `completions: {at_a_time}` or `parallelism: {in_all}`");
        lowering.tell(Note::new(&SIZES_DIFFER, message).hint(hint), node);
    }
    let gang = match parts.pod_group {
        Some(pod_group) => gang(lowering, pod_group, in_all),
        None => None,
    };
    Some(Sizes { hosts: in_all, gang })
}

fn gang(lowering: &mut Lowering<'_>, pod_group: &Node, hosts: u32) -> Option<u32> {
    let node = pod_group.at(&["spec", "minMember"]);
    let least: u32 = node.and_then(Node::integer).unwrap_or(0);
    let hint = format!("write `minMember: {hosts}`");
    let note = if least > hosts {
        let message = format!("a gang of {least} never fits: the job has {hosts} pods");
        Note::new(&SIZES_HANG, message)
    } else if least == 0 {
        let message = "no `minMember` is stated; all pods are placed at once, as MPI needs it";
        Note::new(&SIZES_DIFFER, message)
    } else if least < hosts {
        let message = format!(
            "a gang of {least} may be placed without the other {}, which MPI then waits for",
            hosts - least
        );
        Note::new(&SIZES_DIFFER, message)
    } else {
        return Some(least);
    };
    lowering.tell(note.hint(hint), node.unwrap_or(pod_group));
    (least > 0).then_some(least)
}
