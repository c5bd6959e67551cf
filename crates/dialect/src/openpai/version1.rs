//! Version 1: a JSON file with one image and a list of task roles.

use unisono_job::{
    CodeFolder, Command, Dialect, EndRule, EnvVar, Gang, Job, JobName, Note, Policies, PortRequest,
    Retry, RetryCount, Secrets,
};

use super::codes::{DUPLICATE_ROLE, RDMA_NOT_TRUE, RDMA_OFF};
use super::fields::MAX_ROLES;
use super::role::{Parts, Role, number, warn_about_name};
use crate::kept::Kept;
use crate::notebook::Notebook;
use crate::tree::{Entry, Node};
use crate::{Options, clipped, codes};

/// The job of a document.
pub(super) fn lower(root: &Node, options: &Options, notebook: &mut Notebook<'_>) -> Option<Job> {
    let mut kept = Kept::default();
    let name = root.at(&["jobName"]).and_then(Node::text);
    let roles = roles(root, notebook);
    let (env, code) = directories(root, name.unwrap_or_default());
    let env = env.into_iter().chain(job_envs(root, options, notebook)).collect();
    keep(root, &mut kept, notebook);
    notebook.origin("name", root.at(&["jobName"]));
    notebook.origin("policies.retry", root.at(&["retryCount"]));
    notebook.origin("policies.gang.queue", root.at(&["virtualCluster"]));
    let name = JobName::new(name?).ok()?;
    let queue = root.at(&["virtualCluster"]).and_then(Node::text).filter(|text| !text.is_empty());
    let gang = Gang { queue: Some(queue.unwrap_or("default").to_owned()), ..Gang::default() };
    let retry = Retry::ByClass(retry_count(number(root.at(&["retryCount"])).unwrap_or(0)));
    let policies = Policies { retry, gang, ..Policies::default() };
    let (dialect, secrets) = (Dialect::OpenPaiV1, Secrets::default());
    let mut job = Parts { dialect, name, roles, env, code, policies, kept, secrets }.into_job();
    let rdma = root.at(&["jobEnvs", "paiAzRDMA"]);
    for group in &mut job.groups {
        group.rdma = rdma.and_then(Node::boolean) == Some(true);
        notebook.origin(format!("{}.rdma", group.name), rdma);
    }
    Some(job)
}

fn retry_count(count: i64) -> RetryCount {
    match u32::try_from(count) {
        Ok(count) => RetryCount::Limited(count),
        Err(_) if count == -1 => RetryCount::UntilSuccess,
        Err(_) => RetryCount::Always,
    }
}

fn roles(root: &Node, notebook: &mut Notebook<'_>) -> Vec<Role> {
    let Some(list) = root.at(&["taskRoles"]) else { return Vec::new() };
    let nodes = list.items();
    if nodes.len() > MAX_ROLES {
        let message = format!("the job has {} task roles: the most is {MAX_ROLES}", nodes.len());
        notebook.tell(Note::new(&codes::OUT_OF_RANGE, message), list);
        return Vec::new();
    }
    let image = root.at(&["image"]).and_then(Node::text);
    let mut roles: Vec<Role> = Vec::new();
    for node in nodes {
        let Some(role) = role(node, image, notebook) else { continue };
        if let (true, Some(name)) =
            (roles.iter().any(|it| it.name == role.name), node.at(&["name"]))
        {
            let message = format!("a second task role is called `{}`", role.name);
            let note = Note::new(&DUPLICATE_ROLE, message).hint("give it another name");
            notebook.tell(note, name);
        }
        roles.push(role);
    }
    if !nodes.is_empty() && roles.len() == nodes.len() && roles.iter().all(|role| role.tasks == 0) {
        let note = Note::new(&codes::INVALID, "the job has no tasks: every `taskNumber` is 0")
            .hint("give at least one role a `taskNumber` of 1");
        notebook.tell(note, list);
    }
    roles
}

fn role(node: &Node, image: Option<&str>, notebook: &mut Notebook<'_>) -> Option<Role> {
    let name_node = node.at(&["name"])?;
    let name = name_node.text()?.to_owned();
    warn_about_name(&name, name_node, notebook);
    let tasks = number(node.at(&["taskNumber"])).unwrap_or(1);
    let memory_mib = number(node.at(&["memoryMB"])).unwrap_or(100);
    let shm_mib = number(node.at(&["shmMB"])).unwrap_or(64);
    if shm_mib > memory_mib {
        let message =
            format!("shared memory of {shm_mib} MiB does not fit into memory of {memory_mib} MiB");
        let place = node.at(&["shmMB"]).or_else(|| node.at(&["memoryMB"])).unwrap_or(node);
        let note = Note::new(&codes::INVALID, message).hint("raise `memoryMB` or lower `shmMB`");
        notebook.tell(note, place);
    }
    for (key, part) in [
        ("replicas", "taskNumber"),
        ("slots", "gpuNumber"),
        ("cpu", "cpuNumber"),
        ("memory", "memoryMB"),
        ("command", "command"),
    ] {
        notebook.origin(format!("{name}.{key}"), node.at(&[part]));
    }
    Some(Role {
        tasks,
        cpus: number(node.at(&["cpuNumber"])).unwrap_or(1),
        memory_mib,
        gpus: number(node.at(&["gpuNumber"])).unwrap_or(0),
        shm_mib,
        infiniband: false,
        ports: ports(node.at(&["portList"]), notebook),
        image: image.map(str::to_owned),
        command: Command::bash(node.at(&["command"])?.text()?),
        end: EndRule {
            min_failed: minimum(node, "minFailedTaskCount", Some(1), tasks, notebook),
            min_succeeded: minimum(node, "minSucceededTaskCount", None, tasks, notebook),
        },
        name,
    })
}

/// A count of tasks that ends the job: absent gives the default, null means never, more tasks than there are is a fault.
fn minimum(
    node: &Node,
    key: &str,
    default: Option<u32>,
    tasks: u32,
    notebook: &mut Notebook<'_>,
) -> Option<u32> {
    let Some(stated) = node.get(key) else { return default };
    let count = number(Some(stated))?;
    if count > tasks {
        let message = format!("{count} tasks can never be reached: the role has {tasks}");
        let note = Note::new(&codes::INVALID, message)
            .hint(format!("write at most {tasks}, or null for never"));
        notebook.tell(note, stated);
    }
    Some(count)
}

fn ports(list: Option<&Node>, notebook: &mut Notebook<'_>) -> Vec<PortRequest> {
    let mut ports: Vec<PortRequest> = Vec::new();
    for node in list.map_or(&[][..], Node::items) {
        let Some(label) = node.at(&["label"]).and_then(Node::text) else { continue };
        let begin_at: u16 = number(node.at(&["beginAt"])).unwrap_or(0);
        let count: u16 = number(node.at(&["portNumber"])).unwrap_or(1);
        if u32::from(begin_at) + u32::from(count) > 65_536 {
            let message = format!("{count} ports from {begin_at} on go beyond 65535");
            notebook.tell(Note::new(&codes::OUT_OF_RANGE, message), node);
        }
        if ports.iter().any(|port| port.label == label) {
            let message = format!("a second list of ports is labelled `{}`", clipped(label));
            notebook.tell(Note::new(&codes::INVALID, message).hint("give it another label"), node);
        }
        let begin_at = (begin_at > 0).then_some(begin_at);
        ports.push(PortRequest { label: label.to_owned(), begin_at, count });
    }
    ports
}

/// The directories a file names: variables of every task, and the folder that every task starts in.
fn directories(root: &Node, name: &str) -> (Vec<EnvVar>, Option<CodeFolder>) {
    let mut env = Vec::new();
    let mut code = None;
    for (key, variable) in
        [("dataDir", "PAI_DATA_DIR"), ("outputDir", "PAI_OUTPUT_DIR"), ("codeDir", "PAI_CODE_DIR")]
    {
        let Some(node) = root.at(&[key]) else { continue };
        let Some(text) = node.text().filter(|text| !text.trim().is_empty()) else { continue };
        let path = directory(text, name);
        if key == "codeDir" {
            code = Some(CodeFolder { path: path.clone() });
        }
        env.push(EnvVar { name: variable.to_owned(), value: Some(path) });
    }
    (env, code)
}

/// A directory as the server substituted it. There is no HDFS behind Unisono, so its address is empty and what remains
/// is a path. Who submits the job is known only when it is planned.
fn directory(text: &str, name: &str) -> String {
    text.replacen("$PAI_DEFAULT_FS_URI", "", 1).replace("$PAI_JOB_NAME", name)
}

fn job_envs(root: &Node, options: &Options, notebook: &mut Notebook<'_>) -> Vec<EnvVar> {
    let mut env = Vec::new();
    for entry in root.at(&["jobEnvs"]).map_or(&[][..], Node::entries) {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        if !entry.key.contains(is_word) || entry.key.contains('=') {
            let message = format!("`{}` cannot be the name of a variable", clipped(&entry.key));
            notebook.tell_key(Note::new(&codes::BAD_FORM, message), entry);
            continue;
        }
        match entry.key.as_str() {
            "paiAzRDMA" => check_rdma(entry, options, notebook),
            "isDebug" if entry.node.boolean() == Some(true) => {
                let message = "failed tasks are not kept alive: `isDebug` only becomes a variable";
                let note = Note::new(&codes::IGNORED, message).hint(
                    "logs and exit codes of failed tasks are kept; `unisono logs` shows them",
                );
                notebook.tell(note, &entry.node);
            }
            _ => {}
        }
        let text = entry.node.scalar_text().unwrap_or_else(|| match entry.node.is_null() {
            true => String::new(),
            false => entry.node.to_json().to_string(),
        });
        env.push(EnvVar { name: entry.key.clone(), value: Some(text) });
    }
    env
}

fn check_rdma(entry: &Entry, options: &Options, notebook: &mut Notebook<'_>) {
    match entry.node.boolean() {
        Some(true) if !options.az_rdma => {
            let message = "the job asks for Azure's RDMA, but the setting `az_rdma` is off";
            let note = Note::new(&RDMA_OFF, message)
                .hint("switch on `az_rdma` if the machines have it, or remove `paiAzRDMA`");
            notebook.tell(note, &entry.node);
        }
        Some(_) => {}
        None => {
            let message = "only the value true, without quotes, asks for RDMA";
            let note = Note::new(&RDMA_NOT_TRUE, message).hint("write \"paiAzRDMA\": true");
            notebook.tell(note, &entry.node);
        }
    }
}

/// What has no place in the neutral job: kept, and told where somebody might expect an effect.
fn keep(root: &Node, kept: &mut Kept, notebook: &mut Notebook<'_>) {
    if let Some(extras) = root.at(&["extras"]) {
        kept.set(&["extras"], extras.to_json());
    }
    let filled = |key| root.at(&[key]).filter(|node| node.text().is_some_and(|it| !it.is_empty()));
    if let Some(node) = filled("gpuType") {
        kept.set(&["extras", "gpuType"], node.to_json());
        let message = "GPUs are taken as they are: `gpuType` has no effect";
        notebook.tell(Note::new(&codes::IGNORED, message), node);
    }
    if let Some(node) = filled("authFile") {
        kept.set(&["extras", "authFile"], node.to_json());
        let note = Note::new(
            &codes::IGNORED,
            "registry credentials are not read: `authFile` has no effect",
        )
        .hint("on Kubernetes give the service account an image pull secret");
        notebook.tell(note, node);
    }
    if let Some(node) = root.at(&["killAllOnCompletedTaskNumber"]) {
        let note =
            Note::new(&codes::OBSOLETE, "`killAllOnCompletedTaskNumber` does nothing any more")
                .hint("use `minSucceededTaskCount` of the role whose end is the job's end");
        notebook.tell(note, node);
    }
}
