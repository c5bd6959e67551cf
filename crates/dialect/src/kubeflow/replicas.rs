//! v1alpha2, v1 and v2beta1: a launcher and workers, each with a template of its own.

use unisono_job::{
    Command, Dialect, EndRule, Flavour, Group, Note, RestartPolicy, Runs, Slots, SlotsFrom,
};

use super::codes as own;
use super::policies::policies;
use crate::kubernetes::{Body, Lowering, Role, container_named, is_dns_1035_label};
use crate::tree::{Entry, Node};
use crate::{clipped, codes};

/// The groups and rules of a spec; none when it has no launcher.
pub(super) fn body(dialect: Dialect, lowering: &mut Lowering<'_>, spec: &Node) -> Option<Body> {
    let replicas = spec.at(&["mpiReplicaSpecs"])?;
    replicas.entries().iter().for_each(|entry| tell_wrong_key(lowering, entry));
    let reader = Reader { dialect, spec };
    let worker = replicas.at(&["Worker"]).and_then(|it| reader.worker(lowering, it));
    let launcher = reader.launcher(lowering, replicas.at(&["Launcher"])?)?;
    let workers = worker.as_ref().map_or(0, |it| it.replicas);
    if dialect == Dialect::KubeflowV2beta1 {
        check_name(lowering, workers.max(1));
    }
    let command = launcher.runs.launch_line()?.clone();
    tell_unknown_mpi(lowering, spec);
    let mpi = lowering.mpi(stated_mpi(spec), &command, Flavour::OpenMpi);
    let policies = policies(dialect, lowering, spec, &launcher, worker.as_ref());
    let groups = std::iter::once(launcher).chain(worker).collect();
    Some(Body { mpi, groups, policies })
}

struct Reader<'tree> {
    dialect: Dialect,
    spec: &'tree Node,
}

impl Reader<'_> {
    fn launcher(&self, lowering: &mut Lowering<'_>, node: &Node) -> Option<Group> {
        let template = node.at(&["template"])?;
        let container = self.main_container(template).unwrap_or(0);
        let role = Role {
            name: "launcher",
            replicas: 1,
            slots: if self.launcher_hosts_ranks(template) { self.slots() } else { Slots::NONE },
            end: EndRule::FIRST,
            restart: self.launcher_restart(lowering, node),
            container,
            ssh_auth_path: self.ssh_auth_path(),
        };
        tell_template_restart(lowering, template, "Launcher");
        lowering.remember_command("launcher", template, container);
        lowering.remember("launcher.slots", self.spec.at(&["runLauncherAsWorker"]));
        let run = |command: Option<Command>| {
            Runs::Launch(command.unwrap_or(Command::ImageEntry(Vec::new())))
        };
        Some(lowering.group(role, template, run))
    }

    /// The workers; none when there are none.
    fn worker(&self, lowering: &mut Lowering<'_>, node: &Node) -> Option<Group> {
        let template = node.at(&["template"])?;
        let replicas = node.at(&["replicas"]).and_then(Node::integer).unwrap_or(0);
        if replicas == 0 {
            // Only v1 takes none; the field tables of the others have told it already.
            if self.dialect != Dialect::KubeflowV1 {
                return None;
            }
            let note = Note::new(&codes::IGNORED, "the job has no workers: `replicas` is 0")
                .hint("state `replicas` of Worker");
            lowering.tell(note, node.at(&["replicas"]).unwrap_or(node));
            return None;
        }
        let container = self.worker_container(lowering, template);
        let role = Role {
            name: "worker",
            replicas,
            slots: self.slots(),
            end: EndRule::NEVER,
            restart: self.worker_restart(lowering, node),
            container,
            ssh_auth_path: self.ssh_auth_path(),
        };
        tell_template_restart(lowering, template, "Worker");
        lowering.remember_command("worker", template, container);
        lowering.remember("worker.replicas", node.at(&["replicas"]));
        lowering.remember("worker.slots", self.spec.at(&["slotsPerWorker"]));
        let group = lowering.group(role, template, Runs::Ranks);
        Some(self.without_replaced_arguments(lowering, template, group))
    }

    fn slots(&self) -> Slots {
        match self.spec.at(&["slotsPerWorker"]).and_then(Node::integer) {
            Some(count) => Slots::stated(count),
            None => Slots { count: 1, from: SlotsFrom::Default },
        }
    }

    /// v2beta1 says so; v1 takes a launcher with a GPU for a rank host.
    fn launcher_hosts_ranks(&self, template: &Node) -> bool {
        match self.dialect {
            Dialect::KubeflowV2beta1 => {
                self.spec.at(&["runLauncherAsWorker"]).and_then(Node::boolean) == Some(true)
            }
            Dialect::KubeflowV1 => has_gpu_limit(template),
            _ => false,
        }
    }

    fn launcher_restart(&self, lowering: &mut Lowering<'_>, node: &Node) -> RestartPolicy {
        let stated = restart(node);
        match self.dialect {
            Dialect::KubeflowV1 => stated.unwrap_or(RestartPolicy::Never),
            Dialect::KubeflowV1alpha2 => {
                if let Some(node) = written_restart(node, &["Never", "OnFailure"]) {
                    let note =
                        Note::new(&own::APPROXIMATED, "the launcher's policy acts as OnFailure")
                            .hint("write `restartPolicy: OnFailure`");
                    lowering.tell(note, node);
                }
                stated.filter(|it| *it == RestartPolicy::Never).unwrap_or(RestartPolicy::OnFailure)
            }
            _ => stated.unwrap_or(RestartPolicy::OnFailure),
        }
    }

    fn worker_restart(&self, lowering: &mut Lowering<'_>, node: &Node) -> RestartPolicy {
        if self.dialect != Dialect::KubeflowV1alpha2 {
            return restart(node).unwrap_or(RestartPolicy::Never);
        }
        if let Some(node) = written_restart(node, &["Always"]) {
            let note = Note::new(
                &own::OVERRIDDEN,
                "v1alpha2 always restarts workers, whatever their policy says",
            )
            .hint("remove it");
            lowering.tell(note, node);
        }
        RestartPolicy::Always
    }

    /// Before v2beta1 a worker without a command sleeps, and its arguments are replaced too.
    fn without_replaced_arguments(
        &self,
        lowering: &mut Lowering<'_>,
        template: &Node,
        mut group: Group,
    ) -> Group {
        if self.dialect != Dialect::KubeflowV2beta1
            && let Runs::Ranks(Some(Command::ImageEntry(_))) = group.runs
        {
            let message = "a worker without `command` only waits for ranks; its `args` are dropped";
            let args = template.at(&["spec", "containers"]).map(Node::items).unwrap_or_default();
            let args = args.iter().find_map(|it| it.get("args")).unwrap_or(template);
            lowering.tell(
                Note::new(&own::OVERRIDDEN, message).hint("give `command` too, or remove `args`"),
                args,
            );
            group.runs = Runs::Ranks(None);
        }
        group
    }

    fn main_container(&self, template: &Node) -> Option<usize> {
        container_named(template, self.spec.at(&["mainContainer"])?.text()?)
    }

    /// Ranks are started in the main container, so a worker without it can start none.
    fn worker_container(&self, lowering: &mut Lowering<'_>, template: &Node) -> usize {
        let index = self.main_container(template);
        let named = self.spec.at(&["mainContainer"]).filter(|it| it.text() != Some(""));
        if let (Some(node), None, true) = (named, index, self.dialect != Dialect::KubeflowV2beta1) {
            let name = clipped(node.text().unwrap_or_default());
            let message = format!("the workers have no container `{name}` to start ranks in");
            let hint = "name a container of Worker's template, or remove `mainContainer`";
            lowering.tell(Note::new(&codes::INVALID, message).hint(hint), node);
        }
        index.unwrap_or(0)
    }

    fn ssh_auth_path(&self) -> Option<String> {
        let path = self.spec.at(&["sshAuthMountPath"]).and_then(Node::text);
        path.filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

fn stated_mpi(spec: &Node) -> Option<(&Node, Flavour)> {
    let node = spec.at(&["mpiImplementation"]).or_else(|| spec.at(&["mpiDistribution"]))?;
    let flavour = match node.text()? {
        "OpenMPI" => Flavour::OpenMpi,
        "Intel" | "IntelMPI" => Flavour::Intel,
        "MPICH" => Flavour::Mpich,
        _ => return None,
    };
    Some((node, flavour))
}

/// v1alpha2 takes any word, but has host files for these only. The field table of v2beta1 has told it already.
fn tell_unknown_mpi(lowering: &mut Lowering<'_>, spec: &Node) {
    let known = ["OpenMPI", "IntelMPI", "MPICH"];
    let Some(node) = spec.at(&["mpiDistribution"]) else { return };
    let Some(text) = node.text().filter(|it| !it.is_empty() && !known.contains(it)) else { return };
    let message = format!("`{}` is none of {}", clipped(text), known.join(", "));
    let near = crate::nearest(text, known.into_iter()).unwrap_or("OpenMPI");
    lowering
        .tell(Note::new(&codes::NOT_ONE_OF, message).hint(format!("did you mean `{near}`?")), node);
}

/// The restart policy as written, where it is a word and none of these.
fn written_restart<'tree>(role: &'tree Node, but: &[&str]) -> Option<&'tree Node> {
    let node = role.at(&["restartPolicy"])?;
    node.text().filter(|it| !it.is_empty() && !but.contains(it)).map(|_| node)
}

fn restart(node: &Node) -> Option<RestartPolicy> {
    match node.at(&["restartPolicy"])?.text()? {
        "Never" => Some(RestartPolicy::Never),
        "OnFailure" => Some(RestartPolicy::OnFailure),
        "Always" => Some(RestartPolicy::Always),
        "ExitCode" => Some(RestartPolicy::ExitCode),
        _ => None,
    }
}

fn has_gpu_limit(template: &Node) -> bool {
    let containers = template.at(&["spec", "containers"]).map(Node::items).unwrap_or_default();
    containers
        .iter()
        .filter_map(|it| it.at(&["resources", "limits"]))
        .flat_map(Node::entries)
        .any(|limit| limit.key.contains("gpu"))
}

fn tell_wrong_key(lowering: &mut Lowering<'_>, entry: &Entry) {
    if matches!(entry.key.as_str(), "Launcher" | "Worker") {
        return;
    }
    let message = format!("`{}` is neither `Launcher` nor `Worker`", clipped(&entry.key));
    let fault = Note::new(&own::WRONG_REPLICA_KEY, message);
    let fault = match crate::nearest(&entry.key, ["Launcher", "Worker"].into_iter()) {
        Some(near) => fault.hint(format!("write `{near}`, exactly so")),
        None => fault.hint("an MPIJob has these two only; remove it"),
    };
    lowering.tell(fault, &entry.node);
}

fn tell_template_restart(lowering: &mut Lowering<'_>, template: &Node, replica: &str) {
    if let Some(node) = template.at(&["spec", "restartPolicy"]) {
        let note =
            Note::new(&own::OVERRIDDEN, "the restart policy of a pod template is overwritten")
                .hint(format!("write it as `mpiReplicaSpecs.{replica}.restartPolicy`"));
        lowering.tell(note, node);
    }
}

/// The last worker's host name must be a DNS label, and begin with a letter.
fn check_name(lowering: &mut Lowering<'_>, workers: u32) {
    let Some(name) = lowering.name() else { return };
    let host = format!("{name}-worker-{}", workers - 1);
    if is_dns_1035_label(&host) {
        return;
    }
    let longest = unisono_job::MAX_LABEL - (host.len() - name.len());
    let message = format!("the job's last worker cannot be called `{}`", clipped(&host));
    let hint = format!(
        "a name of at most {longest} characters that begins with a letter, of lower-case letters, digits and dashes"
    );
    let document = lowering.document;
    if let Some(node) = document.root.at(&["metadata", "name"]) {
        lowering.tell(Note::new(&codes::BAD_FORM, message).hint(hint), node);
    }
}
