//! Pods: the user's template, with the agent brought in and the contract's names, variables, files and labels put on.

use serde_json::{Map, Value, json};
use unisono_job::{Dialect, is_dns_label};
use unisono_plan::{Argv, FileContent, Host, Variable, env, ports};

use super::Rendering;
use super::labels::set;
use super::start::{END_FILE, Start, pod_uid, ready};
use super::table::is_large;
use super::template::{Template, list_in, object, object_in};
use crate::marks::{self, AGENT_FILES, CONFIG_FILES, HOME, INSTALL, READY};

/// Volumes of ours.
const AGENT: &str = "unisono-agent";
const FILES: &str = "unisono-files";
pub(super) const HOSTFILES: &str = "unisono-hostfiles";
/// The volume of the contract's ConfigMap.
const CONFIG: &str = "mpi-job-config";
/// The volume of the contract's keys.
const SSH: &str = "ssh-auth";

/// Readable by everybody in the pod: any user may be the one that runs it.
const READABLE: u32 = 0o444;

impl Rendering<'_> {
    /// The pod of a host, made in that epoch. A launcher Job's uid makes the pod that Job's.
    pub fn pod(&self, host: &Host, attempt: u32, epoch: u32, job_uid: Option<&str>) -> Value {
        let mut template = self.template(host, epoch);
        for Variable { name, value } in
            env::at_start(self.plan, &env::Start { attempt, folder: None })
        {
            template.set_variable(json!({"name": name, "value": value}));
        }
        let metadata = template.metadata();
        let name = self.plan.pod_name(host, epoch);
        metadata.insert("name".to_owned(), json!(name));
        metadata.insert("namespace".to_owned(), json!(self.plan.namespace()));
        let labels = object_in(metadata, "labels");
        set(labels, marks::MEMBER, &host.member.to_string());
        set(labels, marks::EPOCH, &epoch.to_string());
        set(labels, marks::ATTEMPT, &attempt.to_string());
        let mut owners = vec![self.owner.reference(job_uid.is_none())];
        if let Some(uid) = job_uid {
            let job = self.plan.names.launcher_job();
            for (name, value) in [
                ("batch.kubernetes.io/controller-uid", uid),
                ("batch.kubernetes.io/job-name", &job),
                ("controller-uid", uid),
                ("job-name", &job),
            ] {
                set(labels, name, value);
            }
            owners.push(json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job,
                "uid": uid,
                "controller": true,
            }));
        }
        metadata.insert("ownerReferences".to_owned(), json!(owners));
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
        if let (Some(pod), Value::Object(template)) = (pod.as_object_mut(), template.into_json()) {
            pod.extend(template);
        }
        pod
    }

    /// The template of a host's pods: everything but what tells one pod from the next.
    pub(super) fn template(&self, host: &Host, epoch: u32) -> Template {
        let start = Start::of(self.plan, host);
        let mut template = Template::of(self.plan.group_of(host));
        self.literal(&mut template, host);
        self.mark(&mut template, host);
        self.network(&mut template, host, start);
        template.spec().insert("restartPolicy".to_owned(), json!("Never"));
        // Nothing of ours needs a token; who asks for an account wants its token.
        let asks = ["serviceAccountName", "serviceAccount"];
        if !asks.iter().any(|key| template.spec().contains_key(*key)) {
            template.default("automountServiceAccountToken", json!(false));
            if self.is_kube_batch() {
                template.default("serviceAccountName", json!(self.account()));
            }
        }
        let container = template.container();
        container.entry("terminationMessagePolicy").or_insert(json!("FallbackToLogsOnError"));
        self.variables(&mut template, host, start);
        self.ssh_keys(&mut template, host);
        self.config_files(&mut template, host);
        if start != Start::Kept {
            self.agent(&mut template, host, start, epoch);
        }
        start.wrap(&mut template, ready(self, host, epoch));
        self.gang(&mut template);
        template
    }

    /// Commands and variables of dialects that are no objects of Kubernetes: the plan's words, and nothing in them is the
    /// kubelet's to expand.
    fn literal(&self, template: &mut Template, host: &Host) {
        if self.plan.job.dialect.is_kubernetes_object() {
            return;
        }
        let container = template.container();
        if let Argv::Words(words) = &self.plan.program_of(host).argv {
            let words: Vec<String> = words.iter().map(|word| escaped(word)).collect();
            container.insert("command".to_owned(), json!(words));
            container.shift_remove("args");
        }
        for variable in list_in(container, "env") {
            if let Some(Value::String(value)) = variable.get_mut("value") {
                *value = escaped(value);
            }
        }
    }

    fn mark(&self, template: &mut Template, host: &Host) {
        let container = template.container_name();
        let metadata = template.metadata();
        object_in(metadata, "labels").extend(self.role_labels(host));
        let annotations = object_in(metadata, "annotations");
        annotations.entry(marks::DEFAULT_CONTAINER).or_insert(json!(container));
    }

    fn network(&self, template: &mut Template, host: &Host, start: Start) {
        self.promised_ports(template, host);
        let is_v2 = self.plan.job.dialect == Dialect::KubeflowV2beta1;
        if is_dns_label(&host.name) {
            template.spec().insert("hostname".to_owned(), json!(host.name));
        }
        if is_v2 {
            template.spec().insert("subdomain".to_owned(), json!(self.plan.names.service()));
        }
        if template.says("hostNetwork") {
            if is_v2 {
                template.spec().insert("dnsPolicy".to_owned(), json!("ClusterFirstWithHostNet"));
            }
            if start.serves() {
                self.own_port(template, host);
            }
        }
        if is_v2 && !host.runs.launches() {
            let domain = self.plan.facts.cluster_domain.as_deref().unwrap_or("cluster.local");
            let (service, namespace) = (self.plan.names.service(), self.plan.namespace());
            let search = json!(format!("{service}.{namespace}.svc.{domain}"));
            let dns = object_in(template.spec(), "dnsConfig");
            list_in(dns, "searches").push(search);
        }
    }

    /// Ports that the file promises to each member; on their node's network the scheduler keeps apart what would collide.
    fn promised_ports(&self, template: &mut Template, host: &Host) {
        let shares_node = template.says("hostNetwork");
        let declared = list_in(template.container(), "ports");
        for port in ports::of_host(self.plan, host).into_iter().flat_map(|it| it.ports) {
            if declared.iter().any(|known| known.get("containerPort") == Some(&json!(port))) {
                continue;
            }
            let mut promised = json!({"containerPort": port});
            if shares_node {
                object(&mut promised).insert("hostPort".to_owned(), json!(port));
            }
            declared.push(promised);
        }
        if declared.is_empty() {
            template.container().shift_remove("ports");
        }
    }

    /// Pods that share their node's network also share its ports: each gets its own, and the scheduler keeps apart what
    /// would collide, because it is declared.
    fn own_port(&self, template: &mut Template, host: &Host) {
        let port = ports::of_agent(self.plan, host);
        let declared = json!({"name": "unisono", "containerPort": port, "hostPort": port});
        list_in(template.container(), "ports").push(declared);
        let listen = format!("0.0.0.0:{port}");
        template.set_variable(json!({"name": "UNISONO_AGENT_LISTEN", "value": listen}));
    }

    fn variables(&self, template: &mut Template, host: &Host, start: Start) {
        let program = self.plan.program_of(host);
        let is_object = self.plan.job.dialect.is_kubernetes_object();
        for Variable { name, value } in
            program.added_env.iter().chain(&env::of_host(self.plan, host))
        {
            let value = if is_object { value.clone() } else { escaped(value) };
            template.set_variable(json!({"name": name, "value": value}));
        }
        if self.plan.may_launch(host.member) && start != Start::Kept {
            let proof = format!("{HOME}/proof");
            template.set_variable(json!({"name": "UNISONO_AGENT_PROOF", "value": proof}));
        }
        if matches!(start, Start::Ready { .. }) {
            template.set_variable(pod_uid());
        }
    }

    /// The contract's keys for ssh, where it has them.
    fn ssh_keys(&self, template: &mut Template, host: &Host) {
        if self.plan.job.dialect != Dialect::KubeflowV2beta1 {
            return;
        }
        const USUAL: &str = "/root/.ssh";
        let extras = self.plan.group_of(host).extras.as_ref();
        let path = extras.and_then(|it| it.ssh_auth_path.as_deref()).unwrap_or(USUAL);
        let mode = if path == USUAL { 0o600 } else { 0o644 };
        let item = |key: &str, path: &str| json!({"key": key, "path": path});
        template.add_volume(json!({"name": SSH, "secret": {
            "secretName": self.plan.names.ssh_secret(),
            "defaultMode": mode,
            "items": [
                item("ssh-privatekey", "id_rsa"),
                item("ssh-publickey", "id_rsa.pub"),
                item("ssh-publickey", "authorized_keys"),
            ],
        }}));
        template.mount(json!({"name": SSH, "mountPath": path}));
    }

    /// Files that the dialect promises: hostfiles are written by `ready` into a folder that anybody may write to; the rest
    /// comes from the ConfigMap. Where `ready` writes none, that has them all.
    fn config_files(&self, template: &mut Template, host: &Host) {
        if self.is_kube_batch() {
            return self.kube_batch_files(template, host);
        }
        let files = &self.plan.program_of(host).files;
        let by_ssh = self.plan.reaches_by_ssh();
        let (mut written, mut mounted) = (Vec::new(), Vec::new());
        for file in files.iter().filter(|file| !file.path.starts_with(HOME)) {
            match file.content {
                FileContent::Hostfile(_) if !by_ssh => written.push(file),
                FileContent::Hostfile(_)
                | FileContent::DiscoverHosts { .. }
                | FileContent::Text(_) => {
                    mounted.push(file);
                }
            }
        }
        for file in written {
            let (folder, _) = file.path.rsplit_once('/').unwrap_or_default();
            template.add_volume(json!({"name": HOSTFILES, "emptyDir": {}}));
            template.mount(json!({"name": HOSTFILES, "mountPath": folder}));
        }
        if mounted.is_empty() {
            return;
        }
        let items: Vec<Value> = mounted
            .iter()
            .map(|file| {
                let (_, name) = file.path.rsplit_once('/').unwrap_or_default();
                json!({"key": name, "path": name, "mode": file.mode})
            })
            .collect();
        let name = self.plan.names.config_map();
        template.add_volume(json!({"name": CONFIG, "configMap": {"name": name, "items": items}}));
        if mounted.iter().any(|file| matches!(file.content, FileContent::DiscoverHosts { .. })) {
            // What is mounted by itself never changes; what is mounted as a whole does.
            template.mount(json!({"name": CONFIG, "mountPath": CONFIG_FILES, "readOnly": true}));
        }
        for file in mounted {
            let (_, name) = file.path.rsplit_once('/').unwrap_or_default();
            template.mount(json!({
                "name": CONFIG,
                "mountPath": file.path,
                "subPath": name,
                "readOnly": true,
            }));
        }
    }

    /// Brings the agent in, with its keys, and for a launcher its host table.
    fn agent(&self, template: &mut Template, host: &Host, start: Start, epoch: u32) {
        template.add_volume(json!({"name": AGENT, "emptyDir": {}}));
        template.add_volume(json!({"name": FILES, "projected": {
            "defaultMode": READABLE,
            "sources": self.agent_files(host, start, epoch),
        }}));
        let home = json!({"name": AGENT, "mountPath": HOME});
        let files = json!({"name": FILES, "mountPath": AGENT_FILES, "readOnly": true});
        let (code_words, code_mounts) = self.code(template, host);
        let words: Vec<&str> =
            ["install", HOME].into_iter().chain(code_words.iter().map(String::as_str)).collect();
        let mounts = std::iter::once(home.clone()).chain(code_mounts).collect();
        let mut containers = vec![self.init(template, INSTALL, &words, mounts)];
        if start == Start::KeptAfterWait {
            let words = ready(self, host, epoch);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut mounts = vec![home.clone(), files.clone()];
            let written = |it: &&unisono_plan::PlannedFile| {
                matches!(it.content, FileContent::Hostfile(_)) && !it.path.starts_with(HOME)
            };
            if let Some(file) = self.plan.program_of(host).files.iter().find(written) {
                let (folder, _) = file.path.rsplit_once('/').unwrap_or_default();
                mounts.push(json!({"name": HOSTFILES, "mountPath": folder}));
            }
            let mut wait = self.init(template, READY, &words, mounts);
            object(&mut wait).insert("env".to_owned(), json!([pod_uid()]));
            containers.push(wait);
        }
        template.add_init(containers);
        template.mount(home);
        template.mount(files);
    }

    /// An init container of ours: it asks for what the main container asks for, so that neither the pod's class of
    /// service nor what a quota counts changes; never for devices. It may do as little as can be.
    fn init(
        &self,
        template: &mut Template,
        name: &str,
        words: &[&str],
        mounts: Vec<Value>,
    ) -> Value {
        let main = template.container();
        let mut resources = Map::new();
        for kind in ["requests", "limits"] {
            let asked =
                main.get("resources").and_then(|it| it.get(kind)).and_then(Value::as_object);
            let plain: Map<String, Value> = asked
                .into_iter()
                .flatten()
                .filter(|(resource, _)| matches!(resource.as_str(), "cpu" | "memory"))
                .map(|(resource, amount)| (resource.clone(), amount.clone()))
                .collect();
            if !plain.is_empty() {
                resources.insert(kind.to_owned(), plain.into());
            }
        }
        let mut security = Map::new();
        for key in ["runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile", "seLinuxOptions"] {
            if let Some(value) = main.get("securityContext").and_then(|it| it.get(key)) {
                security.insert(key.to_owned(), value.clone());
            }
        }
        security.insert("allowPrivilegeEscalation".to_owned(), json!(false));
        security.insert("capabilities".to_owned(), json!({"drop": ["ALL"]}));
        security.insert("readOnlyRootFilesystem".to_owned(), json!(true));
        let command: Vec<&str> =
            std::iter::once("/unisono-agent").chain(words.iter().copied()).collect();
        let mut container = json!({
            "name": name,
            "image": self.settings.image,
            "command": command,
            "volumeMounts": mounts,
            "securityContext": security,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        });
        if let Some(policy) = &self.settings.image_pull_policy {
            object(&mut container).insert("imagePullPolicy".to_owned(), json!(policy));
        }
        if !resources.is_empty() {
            object(&mut container).insert("resources".to_owned(), resources.into());
        }
        container
    }

    /// Exactly the keys that a host may have, and where it launches, the table.
    fn agent_files(&self, host: &Host, start: Start, epoch: u32) -> Value {
        let item = |key: &str, path: &str| json!({"key": key, "path": path});
        let mut items = Vec::new();
        if start.serves() {
            let name = super::key_name(self.plan.group_of(host));
            items.push(item(&super::secret::host_key(&name), "host.key"));
            items.push(item("launchers", "launchers"));
        }
        let mut sources = Vec::new();
        let annotation = |path: &str, name: &str| {
            let field = format!("metadata.annotations['{name}']");
            json!({"downwardAPI": {"items": [{"path": path, "fieldRef": {"fieldPath": field}}]}})
        };
        if start == Start::ServeToTheEnd {
            sources.push(annotation(END_FILE, marks::END));
        }
        if self.plan.may_launch(host.member) {
            items.push(item("launcher.key", "launcher.key"));
            items.push(item("hosts", "hosts"));
            sources.push(if is_large(self.plan) {
                let name = self.plan.names.config_map();
                let items = json!([item(&super::table::key(epoch), "table")]);
                json!({"configMap": {"name": name, "items": items, "optional": true}})
            } else {
                annotation("table", marks::TABLE)
            });
        }
        sources.insert(0, json!({"secret": {"name": self.agent_secret(), "items": items}}));
        json!(sources)
    }
}

/// A text that the kubelet leaves as it is.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}
