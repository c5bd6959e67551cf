//! The rules of a job's life, by the defaults of each version.

use unisono_job::{
    CleanUp, Dialect, Gang, Group, LauncherStart, Note, Policies, RestartPolicy, Retry,
};

use super::codes as own;
use crate::codes;
use crate::kubernetes::{Lowering, quantities};
use crate::tree::Node;

/// How often Kubernetes starts a failed Job again when nobody says it.
pub(super) const DEFAULT_BACKOFF: u32 = 6;

/// The annotation that names a Volcano queue.
pub(super) const QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";

/// Values of `managedBy` that mean the operator itself.
const OURSELVES: [&str; 2] = ["kubeflow.org/mpi-operator", "kubeflow.org/training-operator"];

/// The rules of v1alpha2, v1 and v2beta1.
pub(super) fn policies(
    dialect: Dialect,
    lowering: &mut Lowering<'_>,
    spec: &Node,
    launcher: &Group,
    worker: Option<&Group>,
) -> Policies {
    if dialect == Dialect::KubeflowV1alpha2 {
        tell_ignored(lowering, spec);
    }
    let run = spec.at(&["runPolicy"]).filter(|_| dialect != Dialect::KubeflowV1alpha2);
    let in_run = |key: &str| run.and_then(|it| it.at(&[key]));
    let launcher_start = launcher_start(lowering, spec);
    let deadline = limit(dialect, spec, "activeDeadlineSeconds");
    let managed_by = in_run("managedBy").and_then(Node::text);
    lowering.remember("policies.deadline", deadline);
    lowering.remember("policies.ttl", in_run("ttlSecondsAfterFinished"));
    lowering.remember("policies.suspend", in_run("suspend"));
    Policies {
        retry: retry(dialect, lowering, spec, launcher.restart),
        gang_restarts: Policies::DEFAULT_GANG_RESTARTS,
        deadline_seconds: deadline.and_then(Node::integer),
        clean_up: clean_up(dialect, lowering, spec),
        ttl_seconds: in_run("ttlSecondsAfterFinished").and_then(Node::integer),
        suspend: in_run("suspend").and_then(Node::boolean).unwrap_or(false),
        managed_by: managed_by.filter(|it| !OURSELVES.contains(it)).map(str::to_owned),
        launcher_start,
        gang: gang(lowering, in_run("schedulingPolicy"), launcher_start, launcher, worker),
    }
}

/// The value of a limit: `runPolicy` wins, and v1alpha2 also has it at the top.
fn limit<'tree>(dialect: Dialect, spec: &'tree Node, key: &str) -> Option<&'tree Node> {
    let at_top = || spec.at(&[key]).filter(|_| dialect == Dialect::KubeflowV1alpha2);
    spec.at(&["runPolicy", key]).or_else(at_top)
}

fn retry(
    dialect: Dialect,
    lowering: &mut Lowering<'_>,
    spec: &Node,
    launcher: RestartPolicy,
) -> Retry {
    let node = limit(dialect, spec, "backoffLimit");
    lowering.remember("policies.retry", node);
    let stated = node.and_then(Node::integer);
    // A v1 launcher is a bare pod: with Never its first failure is the job's, whatever the limit.
    if dialect == Dialect::KubeflowV1 && launcher == RestartPolicy::Never {
        if let (Some(node), Some(1..)) = (node, stated) {
            let message = "a v1 launcher with restartPolicy Never is not started again";
            let note = Note::new(&own::OVERRIDDEN, message)
                .hint("write `restartPolicy: OnFailure` for Launcher, or remove `backoffLimit`");
            lowering.tell(note, node);
        }
        return Retry::Backoff { limit: 0 };
    }
    Retry::Backoff { limit: stated.unwrap_or(DEFAULT_BACKOFF) }
}

fn clean_up(dialect: Dialect, lowering: &mut Lowering<'_>, spec: &Node) -> CleanUp {
    let top = spec.at(&["cleanPodPolicy"]);
    let run = spec.at(&["runPolicy", "cleanPodPolicy"]);
    let node = match dialect {
        Dialect::KubeflowV1alpha2 => top,
        Dialect::KubeflowV1 => {
            if let (Some(top), Some(run)) = (top, run)
                && top.text() != run.text()
            {
                let message = "`runPolicy.cleanPodPolicy` differs and wins";
                lowering.tell(Note::new(&own::OVERRIDDEN, message).hint("remove this one"), top);
            }
            run.or(top)
        }
        _ => run,
    };
    lowering.remember("policies.clean_up", node);
    match node.and_then(Node::text) {
        Some("All") => CleanUp::All,
        Some("Running") => CleanUp::Running,
        Some("None" | "") | None => CleanUp::None,
        Some(other) => {
            // The field table of v2beta1 has told it already.
            if let Some(node) = node.filter(|_| dialect != Dialect::KubeflowV2beta1) {
                let message = format!("`{}` acts as None", crate::clipped(other));
                let near = crate::nearest(other, ["None", "Running", "All"].into_iter());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let hint = hint.unwrap_or_else(|| "write `None`, `Running` or `All`".to_owned());
                lowering.tell(Note::new(&own::APPROXIMATED, message).hint(hint), node);
            }
            CleanUp::None
        }
    }
}

fn launcher_start(lowering: &mut Lowering<'_>, spec: &Node) -> LauncherStart {
    let Some(node) = spec.at(&["launcherCreationPolicy"]) else { return LauncherStart::AtOnce };
    match node.text() {
        Some("" | "AtStartup") | None => LauncherStart::AtOnce,
        Some("WaitForWorkersReady") => LauncherStart::AfterWorkers,
        Some(other) => {
            let message = format!("`{}` acts as WaitForWorkersReady", crate::clipped(other));
            let note = Note::new(&own::APPROXIMATED, message)
                .hint("write `AtStartup` or `WaitForWorkersReady`");
            lowering.tell(note, node);
            LauncherStart::AfterWorkers
        }
    }
}

fn gang(
    lowering: &mut Lowering<'_>,
    policy: Option<&Node>,
    launcher_start: LauncherStart,
    launcher: &Group,
    worker: Option<&Group>,
) -> Gang {
    let get = |key: &str| policy.and_then(|it| it.at(&[key]));
    let text = |key: &str| get(key).and_then(Node::text).filter(|it| !it.is_empty());
    let min_members = get("minAvailable").and_then(Node::integer);
    if let (Some(node), Some(least)) = (get("minAvailable"), min_members) {
        let workers = worker.map_or(0, |it| it.replicas);
        tell_gang(lowering, node, least, workers, launcher_start);
    }
    let priority = text("priorityClass").map(str::to_owned);
    let in_templates = || [Some(launcher), worker].into_iter().flatten().find_map(priority_class);
    let queue = text("queue").or_else(|| lowering.annotation(QUEUE_ANNOTATION));
    Gang {
        min_members,
        queue: queue.map(str::to_owned),
        priority_class: priority.or_else(in_templates),
        min_resources: quantities(get("minResources")),
        schedule_timeout_seconds: get("scheduleTimeoutSeconds").and_then(Node::integer),
    }
}

/// A gang that can never be whole is never placed.
fn tell_gang(
    lowering: &mut Lowering<'_>,
    node: &Node,
    least: u32,
    workers: u32,
    launcher_start: LauncherStart,
) {
    let members = match launcher_start {
        LauncherStart::AtOnce => workers.saturating_add(1),
        LauncherStart::AfterWorkers => workers,
    };
    if least <= members {
        return;
    }
    let message = match launcher_start {
        LauncherStart::AtOnce => {
            format!("the job has {members} pods, so {least} never fit at once")
        }
        LauncherStart::AfterWorkers => format!(
            "the launcher is made after its workers, so only {members} pods are there to fit at once, not {least}"
        ),
    };
    let hint = format!("write {members}, or remove it");
    lowering.tell(Note::new(&own::GANG_TOO_LARGE, message).hint(hint), node);
}

/// The priority class that a group's template names.
pub(super) fn priority_class(group: &Group) -> Option<String> {
    let template: serde_json::Value =
        serde_json::from_str(&group.extras.as_ref()?.template).ok()?;
    let class = template.get("spec")?.get("priorityClassName")?.as_str()?;
    (!class.is_empty()).then(|| class.to_owned())
}

/// v1alpha2 takes a whole run policy, but acts on two fields of it.
fn tell_ignored(lowering: &mut Lowering<'_>, spec: &Node) {
    for key in ["cleanPodPolicy", "ttlSecondsAfterFinished", "schedulingPolicy"] {
        if let Some(node) = spec.at(&["runPolicy", key]) {
            let message = format!("v1alpha2 does not act on `runPolicy.{key}`");
            let hint = match key {
                "cleanPodPolicy" => "write it as `spec.cleanPodPolicy`",
                _ => "v2beta1 acts on it: `unisono convert --to kubeflow/v2beta1`",
            };
            lowering.tell(Note::new(&codes::IGNORED, message).hint(hint), node);
        }
    }
}
