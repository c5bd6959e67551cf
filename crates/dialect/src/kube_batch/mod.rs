//! kube-batch `MPI`, in both its shapes: equal pods as a gang, of which one also runs the launch line.

pub(crate) mod codes;
mod fields;
mod sizes;

use serde_json::Value;
use unisono_job::{
    CleanUp, Command, Dialect, EndRule, Flavour, Gang, Job, LauncherStart, Note, Policies,
    RestartPolicy, Retry, Runs, Slots, SlotsFrom,
};

use crate::kubeflow::codes::OVERRIDDEN;
use crate::kubernetes::{Body, Lowering, Role};
use crate::shape::Shape;
use crate::tree::Node;
use crate::{Document, Options, codes as shared, document_from_object};

/// How often Kubernetes starts a failed Job again when nobody says it.
const DEFAULT_BACKOFF: u32 = 6;

/// Fields of a Job that mean nothing once its pods are one MPI job.
const WITHOUT_EFFECT: [&str; 6] = [
    "completionMode",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "podFailurePolicy",
    "successPolicy",
    "podReplacementPolicy",
];

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(document: &Document<'_>, _options: &Options) -> (Option<Job>, Vec<Note>) {
    let job = document.root.at(&["spec", "job"]);
    let is_spec = job.is_some_and(|it| it.get("spec").is_none() && it.get("template").is_some());
    let shape = if is_spec { &fields::WITH_SPEC } else { shape() };
    let mut lowering = Lowering::new(document, shape, |_| None);
    let parts = if is_spec {
        job.map(|spec| Parts { job: None, spec, pod_group: None })
    } else {
        job.and_then(|job| Some((job, job.at(&["spec"])?))).map(|(job, spec)| Parts {
            job: Some(job),
            spec,
            pod_group: document.root.at(&["spec", "podGroup"]),
        })
    };
    let body = parts.and_then(|parts| body(&mut lowering, &parts));
    lowering.finish(Dialect::KubeBatch, body)
}

/// The field table, as it is shown: that of the fuller shape, whose `spec.job.spec` is `spec.job` of the other.
pub(crate) fn shape() -> &'static Shape {
    &fields::WITH_OBJECTS
}

/// The field table of objects as an API server serves them: of either shape.
pub(crate) const fn served_shape() -> &'static Shape {
    &fields::EITHER
}

/// The parts of either shape.
struct Parts<'tree> {
    /// The whole Job, in the shape that has one.
    job: Option<&'tree Node>,
    spec: &'tree Node,
    /// The whole PodGroup, in the shape that has one.
    pod_group: Option<&'tree Node>,
}

fn body(lowering: &mut Lowering<'_>, parts: &Parts<'_>) -> Option<Body> {
    let template = parts.spec.at(&["template"])?;
    let sizes = sizes::sizes(lowering, parts)?;
    tell_overridden(lowering, parts.spec, template);
    let role = Role {
        name: "pod",
        replicas: sizes.hosts,
        slots: Slots { count: 1, from: SlotsFrom::Default },
        end: EndRule::FIRST,
        restart: RestartPolicy::Never,
        container: 0,
        ssh_auth_path: None,
    };
    let labels = parts.job.and_then(|job| job.at(&["metadata", "labels"]));
    let group = lowering.group(role, &labelled(template, labels), |command| {
        Runs::LaunchOnFirst(command.unwrap_or(Command::ImageEntry(Vec::new())))
    });
    lowering.remember_command("pod", template, 0);
    lowering.remember("pod.replicas", parts.spec.at(&["parallelism"]));
    let mpi = lowering.mpi(None, group.runs.launch_line()?, Flavour::Mpich);
    let policies = policies(lowering, parts, sizes.gang);
    Some(Body { mpi, groups: vec![group], policies })
}

fn policies(lowering: &mut Lowering<'_>, parts: &Parts<'_>, gang: Option<u32>) -> Policies {
    let get = |key: &str| parts.spec.at(&[key]);
    let in_group = |key: &str| {
        let node = parts.pod_group.and_then(|it| it.at(&["spec", key]));
        node.and_then(Node::text).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    lowering.remember("policies.retry", get("backoffLimit"));
    lowering.remember("policies.deadline", get("activeDeadlineSeconds"));
    lowering.remember("policies.ttl", get("ttlSecondsAfterFinished"));
    let limit = get("backoffLimit").and_then(Node::integer).unwrap_or(DEFAULT_BACKOFF);
    Policies {
        retry: Retry::Backoff { limit },
        gang_restarts: Policies::DEFAULT_GANG_RESTARTS,
        deadline_seconds: get("activeDeadlineSeconds").and_then(Node::integer),
        // Pods end with the run and are kept; none is left running.
        clean_up: CleanUp::Running,
        ttl_seconds: get("ttlSecondsAfterFinished").and_then(Node::integer),
        suspend: get("suspend").and_then(Node::boolean).unwrap_or(false),
        managed_by: get("managedBy").and_then(Node::text).map(str::to_owned),
        launcher_start: LauncherStart::AtOnce,
        gang: Gang {
            min_members: gang,
            queue: in_group("queue"),
            priority_class: in_group("priorityClassName"),
            ..Gang::default()
        },
    }
}

/// The template with the Job's labels on its pods.
fn labelled(template: &Node, labels: Option<&Node>) -> Node {
    let mut copy = template.to_json();
    if let (Some(Value::Object(labels)), Some(template)) =
        (labels.map(Node::to_json), copy.as_object_mut())
        && !labels.is_empty()
    {
        let metadata =
            template.entry("metadata").or_insert_with(|| Value::Object(Default::default()));
        if let Some(held) = metadata.as_object_mut().and_then(|it| {
            it.entry("labels").or_insert_with(|| Value::Object(Default::default())).as_object_mut()
        }) {
            held.extend(labels);
        }
    }
    document_from_object(&copy).root
}

fn tell_overridden(lowering: &mut Lowering<'_>, spec: &Node, template: &Node) {
    for key in WITHOUT_EFFECT {
        if let Some(node) = spec.at(&[key]) {
            let message = format!("`{key}` has no effect: the pods are one MPI job");
            lowering.tell(Note::new(&shared::IGNORED, message).hint("remove it"), node);
        }
    }
    for (key, forced) in [("restartPolicy", "Never"), ("schedulerName", "kube-batch")] {
        let node = template.at(&["spec", key]).filter(|it| it.text() != Some(forced));
        if let Some(node) = node {
            let message = format!("`{key}` is set to {forced}, whatever stands here");
            lowering.tell(Note::new(&OVERRIDDEN, message).hint("remove it"), node);
        }
    }
}
