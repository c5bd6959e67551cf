//! v1alpha1: one template for launcher and workers, and workers counted in GPUs or other units.

use serde_json::{Value, json};
use unisono_job::{
    CleanUp, Command, EndRule, Flavour, Gang, LauncherStart, Note, Policies, Quantity,
    RestartPolicy, Retry, Runs, Slots, SlotsFrom,
};

use super::codes as own;
use super::policies::DEFAULT_BACKOFF;
use crate::kubernetes::{Body, Lowering, Role, quantities};
use crate::tree::Node;
use crate::{Options, ProcessingUnit, clipped, codes, document_from_object};

const GPU: &str = "nvidia.com/gpu";

/// Labels and taints of nodes that run the control plane: the old name and today's.
const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"];

/// The groups and rules of a spec; none when a fault stands in the way.
pub(super) fn body(lowering: &mut Lowering<'_>, spec: &Node, options: &Options) -> Option<Body> {
    let workers = workers(lowering, spec, options)?;
    let template = spec.at(&["template"])?;
    let role = |name, replicas, slots, end, restart| Role {
        name,
        replicas,
        slots,
        end,
        restart,
        container: 0,
        ssh_auth_path: None,
    };
    let never = template.at(&["spec", "restartPolicy"]).and_then(Node::text) == Some("Never");
    let restart = if never { RestartPolicy::Never } else { RestartPolicy::OnFailure };
    let on_control_plane = spec.at(&["launcherOnMaster"]).and_then(Node::boolean) == Some(true);
    let launcher = lowering.group(
        role("launcher", 1, Slots::NONE, EndRule::FIRST, restart),
        &launcher_template(template, on_control_plane),
        |command| Runs::Launch(command.unwrap_or(Command::ImageEntry(Vec::new()))),
    );
    let worker = lowering.group(
        role("worker", workers.count, workers.slots, EndRule::NEVER, RestartPolicy::Always),
        &worker_template(template, &workers),
        Runs::Ranks,
    );
    lowering.remember_command("launcher", template, 0);
    lowering.remember("policies.retry", spec.at(&["backoffLimit"]));
    lowering.remember("policies.deadline", spec.at(&["activeDeadlineSeconds"]));
    let mpi = lowering.mpi(None, launcher.runs.launch_line()?, Flavour::OpenMpi);
    let limit = spec.at(&["backoffLimit"]).and_then(Node::integer).unwrap_or(DEFAULT_BACKOFF);
    let policies = Policies {
        retry: Retry::Backoff { limit },
        gang_restarts: Policies::DEFAULT_GANG_RESTARTS,
        deadline_seconds: spec.at(&["activeDeadlineSeconds"]).and_then(Node::integer),
        // Its controller scales the workers to none when the launcher has ended.
        clean_up: CleanUp::All,
        ttl_seconds: None,
        suspend: false,
        managed_by: None,
        launcher_start: LauncherStart::AtOnce,
        gang: Gang::default(),
    };
    Some(Body { mpi, groups: vec![launcher, worker], policies })
}

/// How many workers, and what each gets.
struct Workers {
    count: u32,
    slots: Slots,
    resource: &'static str,
    /// Units on each worker; 0 when nothing says it.
    units: u64,
}

fn workers(lowering: &mut Lowering<'_>, spec: &Node, options: &Options) -> Option<Workers> {
    let ways = ["gpus", "processingUnits", "replicas"];
    let given: Vec<_> = ways.iter().filter_map(|key| Some((*key, spec.at(&[key])?))).collect();
    let (key, node) = match given.as_slice() {
        [one] => *one,
        [] => {
            let fault = Note::new(
                &codes::MISSING,
                "one of gpus, processingUnits and replicas is needed",
            )
            .hint("add `replicas` with the number of workers, or `gpus` with their GPUs in all");
            lowering.tell(fault, spec);
            return None;
        }
        [(first, _), others @ ..] => {
            for (other, node) in others {
                let message = format!("`{other}` and `{first}` exclude each other");
                let hint = "keep one of gpus, processingUnits and replicas";
                lowering.tell(Note::new(&codes::INVALID, message).hint(hint), node);
            }
            return None;
        }
    };
    let resource = resource(lowering, spec, key, options);
    let per_node = per_node(lowering, spec, key, options);
    let number: u32 = node.integer()?;
    let (count, units) = match per_node {
        Some(per_node) => shared_out(lowering, node, number, per_node)?,
        None => (number, limit_in_template(spec, resource)),
    };
    let slots = match spec.at(&["slotsPerWorker"]).and_then(Node::integer) {
        Some(slots) => Slots::stated(slots),
        None if units > 0 => {
            Slots { count: u32::try_from(units).unwrap_or(u32::MAX), from: SlotsFrom::Gpus }
        }
        None => Slots { count: 1, from: SlotsFrom::Default },
    };
    lowering.remember("worker.replicas", Some(node));
    lowering.remember("worker.slots", spec.at(&["slotsPerWorker"]).or(Some(node)));
    Some(Workers { count, slots, resource, units })
}

/// What a unit is. Anything but `cpu` is a GPU.
fn resource(
    lowering: &mut Lowering<'_>,
    spec: &Node,
    key: &str,
    options: &Options,
) -> &'static str {
    let Some(node) = spec.at(&["processingResourceType"]) else {
        return match options.processing_unit {
            ProcessingUnit::Cpu if key != "gpus" => "cpu",
            ProcessingUnit::Cpu | ProcessingUnit::Gpu => GPU,
        };
    };
    let named = node.text().unwrap_or_default();
    match (key, named) {
        (_, GPU) => GPU,
        ("gpus", _) => {
            let message = "`gpus` counts GPUs, whatever the resource type says";
            lowering.tell(
                Note::new(&own::OVERRIDDEN, message).hint("write `processingUnits` for CPUs"),
                node,
            );
            GPU
        }
        (_, "cpu") => "cpu",
        (_, other) => {
            let message = format!("the resource type `{}` acts as {GPU}", clipped(other));
            lowering.tell(
                Note::new(&own::APPROXIMATED, message).hint(format!("write `{GPU}` or `cpu`")),
                node,
            );
            GPU
        }
    }
}

/// Units of one node, when workers are counted in units.
fn per_node(lowering: &mut Lowering<'_>, spec: &Node, key: &str, options: &Options) -> Option<u32> {
    let keys = [("gpus", "gpusPerNode"), ("processingUnits", "processingUnitsPerNode")];
    for (total, size) in keys {
        if let Some(node) = spec.at(&[size]).filter(|_| total != key) {
            let message = format!("`{size}` has no effect without `{total}`");
            lowering.tell(Note::new(&codes::IGNORED, message).hint("remove it"), node);
        }
    }
    let (_, size) = keys.into_iter().find(|(total, _)| *total == key)?;
    let stated = spec.at(&[size]).and_then(Node::integer);
    Some(stated.unwrap_or(options.gpus_per_node).max(1))
}

/// Workers and units of each: whole nodes, or a part of one.
fn shared_out(
    lowering: &mut Lowering<'_>,
    node: &Node,
    total: u32,
    per_node: u32,
) -> Option<(u32, u64)> {
    if !matches!(total, 1 | 2 | 4) && !total.is_multiple_of(8) {
        let message = format!("{total} units cannot be asked for");
        let next = [1, 2, 4].into_iter().find(|it| *it > total);
        let hint = format!(
            "write 1, 2, 4 or a multiple of 8, such as {}",
            next.unwrap_or_else(|| total.div_ceil(8).saturating_mul(8))
        );
        lowering.tell(Note::new(&codes::BAD_FORM, message).hint(hint), node);
        return None;
    }
    if total < per_node {
        return Some((1, u64::from(total)));
    }
    if total.is_multiple_of(per_node) {
        return Some((total / per_node, u64::from(per_node)));
    }
    let message = format!("{total} units cannot be shared out over nodes of {per_node}");
    let hint = format!(
        "write a multiple of {per_node}, or state the units of one node (`gpusPerNode`, `processingUnitsPerNode`, `--gpus-per-node`)"
    );
    lowering.tell(Note::new(&codes::INVALID, message).hint(hint), node);
    None
}

fn limit_in_template(spec: &Node, resource: &str) -> u64 {
    let containers = spec.at(&["template", "spec", "containers"]).map(Node::items);
    let first = containers.and_then(<[Node]>::first);
    let limits = quantities(first.and_then(|it| it.at(&["resources", "limits"])));
    limits.get(resource).map_or(0, Quantity::whole)
}

/// The launcher's copy of the template: no resources of its own, and on the control plane when asked for.
fn launcher_template(template: &Node, on_control_plane: bool) -> Node {
    let mut copy = template.to_json();
    if let Some(container) = first_container(&mut copy) {
        container.shift_remove("resources");
    }
    if let (true, Some(spec)) =
        (on_control_plane, copy.get_mut("spec").and_then(Value::as_object_mut))
    {
        let tolerations: Vec<Value> = CONTROL_PLANE
            .iter()
            .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}))
            .collect();
        let terms: Vec<Value> = CONTROL_PLANE
            .iter()
            .map(|key| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}))
            .collect();
        let required = json!({"nodeSelectorTerms": terms});
        spec.insert("tolerations".to_owned(), tolerations.into());
        spec.insert(
            "affinity".to_owned(),
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}),
        );
    }
    document_from_object(&copy).root
}

/// The workers' copy of the template: no command, and the units it gets as a limit.
fn worker_template(template: &Node, workers: &Workers) -> Node {
    let mut copy = template.to_json();
    if let Some(container) = first_container(&mut copy) {
        container.shift_remove("command");
        container.shift_remove("args");
        if workers.units > 0 {
            let resources = object_in(container, "resources");
            let limits = resources.map(|it| object_in(it, "limits"));
            if let Some(limits) = limits.flatten() {
                limits.insert(workers.resource.to_owned(), workers.units.into());
            }
        }
    }
    document_from_object(&copy).root
}

type Object = serde_json::Map<String, Value>;

fn first_container(template: &mut Value) -> Option<&mut Object> {
    template.get_mut("spec")?.get_mut("containers")?.get_mut(0)?.as_object_mut()
}

/// The object under a key, made when it is absent.
fn object_in<'object>(object: &'object mut Object, key: &str) -> Option<&'object mut Object> {
    object.entry(key).or_insert_with(|| json!({})).as_object_mut()
}
