//! Any job as `MPIJob` v2beta1 or v1: its own templates where it has them, made-up ones where it has not. Whatever the
//! version cannot say is told.

mod name;
mod policies;
mod roles;
mod words;

use serde_json::{Map, Value, json};
use unisono_job::{
    Dialect, Flavour, Group, Image, Job, LaunchRights, MpiChoice, MpiFrom, Note, RestartPolicy,
    SlotsFrom,
};

use super::codes::CONVERTED;
use super::{api_version, written_mpi};
use crate::kubernetes::{NO_IMAGE, compose, container_name, put_first};
use crate::write::Written;
use crate::{codes, to_yaml};
use roles::{Member, Roles, arrange};

/// The job as text of v2beta1 or v1.
pub(super) fn write(job: &Job, dialect: Dialect) -> Written {
    let mut writer = Writer { job, dialect, notes: Vec::new() };
    let object = json!({
        "apiVersion": api_version(dialect),
        "kind": "MPIJob",
        "metadata": writer.metadata(),
        "spec": writer.spec(),
    });
    Written { text: to_yaml(&object), notes: writer.notes }
}

/// A job being written, and what is told about it.
struct Writer<'job> {
    job: &'job Job,
    /// The version it is written in.
    dialect: Dialect,
    notes: Vec<Note>,
}

impl Writer<'_> {
    const fn is_v2(&self) -> bool {
        matches!(self.dialect, Dialect::KubeflowV2beta1)
    }

    /// Tells that something is lost or means something else.
    fn lost(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.tell(Note::new(&codes::LOST, message).hint(hint));
    }

    /// Tells that the same is said in another way.
    fn converted(&mut self, message: impl Into<String>) {
        self.tell(Note::new(&CONVERTED, message));
    }

    /// One group can become both launcher and workers; what is true of it is told once.
    fn tell(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn metadata(&mut self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), self.name().into());
        if let Some(namespace) = &self.job.namespace {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        for (key, held) in [("labels", &self.job.labels), ("annotations", &self.job.annotations)] {
            if !held.is_empty() {
                metadata.insert(key.to_owned(), json!(held));
            }
        }
        metadata.into()
    }

    fn spec(&mut self) -> Value {
        let Job {
            name: _,
            namespace: _,
            dialect: source,
            experiment,
            labels: _,
            annotations: _,
            mpi,
            groups: _,
            launch_rights,
            policies,
            secrets: _,
            origins: _,
        } = self.job;
        if let Some(experiment) = experiment {
            self.lost(
                format!("an MPIJob has no experiment; `{experiment}` is left out"),
                "add a label of your own",
            );
        }
        if *launch_rights == LaunchRights::Everybody {
            self.lost(
                "in an MPIJob only the launcher may start processes on other hosts",
                "check that no other member does",
            );
        }
        let mut spec = Map::new();
        let Some(roles) = arrange(self) else { return spec.into() };
        self.slots(&mut spec, &roles);
        self.mpi(&mut spec, mpi);
        self.ssh_keys(&mut spec, &roles);
        self.policies(&mut spec, policies, &roles);
        self.replicas(&mut spec, &roles);
        self.tell_transport(*source, &roles);
        spec.into()
    }

    fn slots(&mut self, spec: &mut Map<String, Value>, roles: &Roles<'_>) {
        let launcher = roles.launcher.slots;
        let counted = match &roles.worker {
            Some(worker) => worker,
            None if launcher > 0 => &roles.launcher,
            None => return,
        };
        let slots = counted.slots;
        if slots != 1 || counted.group.slots.from != SlotsFrom::Default {
            spec.insert("slotsPerWorker".to_owned(), slots.into());
        }
        if launcher > 0 && launcher != slots {
            self.lost(
                format!("the launcher has {launcher} slots and each worker {slots}; an MPIJob has one number for all"),
                "set `slotsPerWorker` to what you need",
            );
        }
        let has_gpu = has_gpu_limit(roles.launcher.group);
        match (self.is_v2(), launcher > 0) {
            (true, true) => {
                spec.insert("runLauncherAsWorker".to_owned(), true.into());
            }
            (true, false) => {}
            (false, hosts_ranks) if hosts_ranks == has_gpu => {}
            (false, true) => self.lost(
                "a v1 launcher without a GPU limit hosts no ranks",
                "write v2beta1, which has `runLauncherAsWorker`",
            ),
            (false, false) => self.lost(
                "a v1 launcher with a GPU limit hosts ranks, which this one does not",
                "write v2beta1, or remove the launcher's GPU limit",
            ),
        }
    }

    fn mpi(&mut self, spec: &mut Map<String, Value>, mpi: &MpiChoice) {
        let MpiChoice { flavour, from } = *mpi;
        let Some(flavour) = flavour else { return };
        let needs_stating = flavour != Flavour::OpenMpi || from == MpiFrom::Stated;
        if self.is_v2() && needs_stating {
            spec.insert("mpiImplementation".to_owned(), written_mpi(flavour).into());
        } else if !self.is_v2() && flavour != Flavour::OpenMpi {
            let launch = self.job.launching_group().and_then(|it| it.runs.launch_line());
            let told = launch.and_then(|it| it.launch_line()).and_then(|line| line.flavour);
            if told != Some(flavour) {
                self.lost(
                    format!(
                        "v1 has no field for the MPI; that it is {} is left out",
                        flavour.name()
                    ),
                    "write v2beta1, which has `mpiImplementation`",
                );
            }
        }
    }

    fn ssh_keys(&mut self, spec: &mut Map<String, Value>, roles: &Roles<'_>) {
        let path = roles.launcher.group.extras.as_ref().and_then(|it| it.ssh_auth_path.clone());
        match path {
            Some(path) if self.is_v2() => {
                spec.insert("sshAuthMountPath".to_owned(), path.into());
            }
            Some(path) => self.lost(
                format!("v1 mounts no ssh keys; `sshAuthMountPath: {path}` is left out"),
                "a v1 launcher reaches its workers without ssh",
            ),
            None => {}
        }
    }

    fn replicas(&mut self, spec: &mut Map<String, Value>, roles: &Roles<'_>) {
        let mut replicas = Map::new();
        let members = [("Launcher", Some(&roles.launcher)), ("Worker", roles.worker.as_ref())];
        let mut main = None;
        for (key, member) in members.into_iter().filter_map(|(key, it)| Some((key, it?))) {
            self.tell_unwritable(member.group);
            let mut template = compose(member.group, member.command.as_ref());
            let index = member.group.extras.as_ref().map_or(0, |it| it.container);
            if index > 0 && self.is_v2() {
                put_first(&mut template, index);
                self.converted(format!(
                    "v2beta1 takes the first container: that of {key} which counts is put first"
                ));
            } else if index > 0 {
                main = container_name(&template, index).map(str::to_owned).or(main);
            }
            let overwritten = template.get_mut("spec").and_then(Value::as_object_mut);
            overwritten.and_then(|it| it.shift_remove("restartPolicy"));
            let restart = self.restart(member.group.restart, key);
            replicas.insert(
                key.to_owned(),
                json!({"replicas": member.replicas, "restartPolicy": restart, "template": template}),
            );
        }
        if let Some(main) = main {
            spec.insert("mainContainer".to_owned(), main.into());
        }
        spec.insert("mpiReplicaSpecs".to_owned(), replicas.into());
    }

    /// The restart policy; v2beta1 has two.
    fn restart(&mut self, policy: RestartPolicy, key: &str) -> &'static str {
        match policy {
            RestartPolicy::Never => "Never",
            RestartPolicy::OnFailure => "OnFailure",
            RestartPolicy::Always if !self.is_v2() => "Always",
            RestartPolicy::ExitCode if !self.is_v2() => "ExitCode",
            RestartPolicy::Always => {
                if key == "Launcher" {
                    self.lost(
                        "v2beta1 restarts a launcher only on failure; Always is written as OnFailure",
                        "a launcher that ends well is not started again",
                    );
                } else {
                    self.converted("workers that are always restarted are written with OnFailure");
                }
                "OnFailure"
            }
            RestartPolicy::ExitCode => {
                self.lost(
                    format!("v2beta1 has no restart by exit code; {key} is written with Never"),
                    "a retryable exit code then fails the member",
                );
                "Never"
            }
        }
    }

    /// What of a group no MPIJob can hold.
    fn tell_unwritable(&mut self, group: &Group) {
        let Group {
            name,
            replicas: _,
            slots: _,
            runs: _,
            image,
            resources: _,
            env,
            working_dir: _,
            code,
            ports,
            shm_mib: _,
            rdma,
            end: _,
            restart: _,
            extras,
        } = group;
        match image {
            Some(Image::Container(_)) => {}
            Some(Image::AzureEnvironment(environment)) => self.lost(
                format!("the Azure environment `{environment}` of {name} is no image; `{NO_IMAGE}` stands in its place"),
                "name the image that holds the same software",
            ),
            None => self.lost(
                format!("no image is known for {name}; `{NO_IMAGE}` stands in its place"),
                "name an image with your program and its MPI",
            ),
        }
        if let Some(folder) = code {
            self.lost(
                format!("the folder `{}` does not travel with an MPIJob", folder.path),
                "put it into the image, or mount a volume",
            );
        }
        if *rdma {
            self.lost(
                format!("an MPIJob does not say in general that {name} asks for RDMA"),
                "add your cluster's devices to the container's limits",
            );
        }
        for port in ports {
            self.lost(
                format!("an MPIJob promises no ports; `{}` of {name} is left out", port.label),
                "choose a port in the program",
            );
        }
        if extras.is_none() {
            for variable in env.iter().filter(|it| it.value.is_none()) {
                self.lost(
                    format!("nothing tells the value of {} of {name}", variable.name),
                    "set it in the container's `env`",
                );
            }
        }
    }

    /// Versions reach workers by different means, which images must bring along.
    fn tell_transport(&mut self, source: Dialect, roles: &Roles<'_>) {
        let by_exec = matches!(
            source,
            Dialect::KubeflowV1alpha1
                | Dialect::KubeflowV1alpha2
                | Dialect::KubeflowV1
                | Dialect::KubeBatch
        );
        if self.is_v2() && by_exec {
            self.converted(
                "the MPI operator reaches v2beta1 workers by ssh, so images need sshd; Unisono's needs none",
            );
        } else if !self.is_v2() && source == Dialect::KubeflowV2beta1 {
            self.converted("v1 reaches workers without ssh, and calls hosts by their pods' names");
        }
        let Member { command, .. } = &roles.launcher;
        let elastic = command.as_ref().is_some_and(|it| it.display().contains("discover_hosts.sh"));
        if elastic && self.is_v2() != (source == Dialect::KubeflowV2beta1) {
            self.lost(
                "discover_hosts.sh prints `host:slots` in v1 and the host alone in v2beta1",
                "check what reads it",
            );
        }
    }
}

/// Whether any container of the group's pods has a limit that v1 takes for a GPU.
fn has_gpu_limit(group: &Group) -> bool {
    let template = compose(group, None);
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    containers
        .into_iter()
        .flatten()
        .filter_map(|it| it.pointer("/resources/limits")?.as_object())
        .any(|limits| limits.keys().any(|it| it.contains("gpu")))
}
