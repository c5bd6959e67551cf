//! OpenPAI's variables: the current set, and the older one that version 1 jobs still read.

use unisono_job::{Group, Job};

use super::{Late, Start};
use crate::bind::Addresses;
use crate::folders::VARIABLES;
use crate::ports;
use crate::{Facts, Host, Plan, Variable};

const MIB: u64 = 1024 * 1024;

/// What every task of a role gets, whatever its index.
pub(super) fn shared(job: &Job, facts: &Facts, role: &Group) -> Vec<Variable> {
    let mut variables = about_the_job(job, facts);
    variables.extend(folders(job, facts, role));
    for group in &job.groups {
        variables.extend(about_a_role(group));
    }
    variables.extend(about_the_own_role(role));
    variables
}

fn about_the_job(job: &Job, facts: &Facts) -> Vec<Variable> {
    let roles: Vec<&str> = job.groups.iter().map(|group| group.name.as_str()).collect();
    let (name, list) = (job.name.as_str(), roles.join(","));
    let count = roles.len().to_string();
    let tasks = job.host_count().to_string();
    let cluster = facts.virtual_cluster.as_deref().or(job.policies.gang.queue.as_deref());
    let cluster = cluster.unwrap_or("default");
    let framework = format!("{}~{name}", facts.user);
    [
        ("PAI_JOB_NAME", name),
        ("PAI_USER_NAME", &facts.user),
        ("PAI_USERNAME", &facts.user),
        ("HADOOP_USER_NAME", &facts.user),
        ("PAI_DEFAULT_FS_URI", ""),
        ("PAI_FRAMEWORK_NAME", &framework),
        ("FRAMEWORK_NAME", &framework),
        ("FC_FRAMEWORK_NAME", &framework),
        // The number of the application on YARN; scripts call folders by it.
        ("APP_ID", &framework),
        ("PAI_VIRTUAL_CLUSTER", cluster),
        ("PAI_JOB_VC_NAME", cluster),
        ("PAI_TASK_ROLE_COUNT", &count),
        ("PAI_TASK_ROLE_LIST", &list),
        ("PAI_JOB_TASK_ROLE_COUNT", &count),
        ("PAI_JOB_TASK_ROLE_LIST", &list),
        ("PAI_TASK_ROLES_NUM", &count),
        ("PAI_JOB_TASK_COUNT", &tasks),
        ("PAI_TASKS_NUM", &tasks),
    ]
    .map(|(name, value)| Variable::new(name, value))
    .into()
}

/// Folders that the file does not name. The server made one for results; no job of ours has an HDFS, so it is a path.
fn folders(job: &Job, facts: &Facts, role: &Group) -> Vec<Variable> {
    let missing = VARIABLES.into_iter().filter(|name| !role.env.iter().any(|it| it.name == *name));
    missing
        .map(|name| match name {
            "PAI_OUTPUT_DIR" => Variable::new(name, format!("/Output/{}/{}", facts.user, job.name)),
            _ => Variable::new(name, ""),
        })
        .collect()
}

fn about_a_role(group: &Group) -> Vec<Variable> {
    let role = &group.name;
    let needs = Needs::of(group);
    let mut variables = vec![
        Variable::new(format!("PAI_TASK_ROLE_TASK_COUNT_{role}"), group.replicas.to_string()),
        Variable::new(
            format!("PAI_RESOURCE_{role}"),
            format!("{},{},{},{}", needs.gpus, needs.cpus, needs.memory_mib, needs.shm_mib),
        ),
    ];
    let rules = [("MIN_FAILED", group.end.min_failed), ("MIN_SUCCEEDED", group.end.min_succeeded)];
    variables.extend(rules.into_iter().filter_map(|(name, count)| {
        let name = format!("PAI_{name}_TASK_COUNT_{role}");
        count.map(|count| Variable::new(name, count.to_string()))
    }));
    variables
}

fn about_the_own_role(group: &Group) -> Vec<Variable> {
    let needs = Needs::of(group);
    let mut variables = vec![
        Variable::new("PAI_CURRENT_TASK_ROLE_NAME", &group.name),
        Variable::new("PAI_TASK_ROLE_NAME", &group.name),
        Variable::new("TASKROLE_NAME", &group.name),
        Variable::new("FC_TASKROLE_NAME", &group.name),
        Variable::new(
            "PAI_RESOURCE",
            format!("{},{},{},{}", needs.gpus, needs.cpus, needs.memory_mib, needs.shm_mib),
        ),
    ];
    let numbers = [
        ("PAI_CURRENT_TASK_ROLE_TASK_COUNT", u64::from(group.replicas)),
        ("PAI_TASK_ROLE_NUM", u64::from(group.replicas)),
        ("PAI_CURRENT_TASK_ROLE_CPU_COUNT", needs.cpus),
        ("PAI_TASK_CPU_NUM", needs.cpus),
        ("PAI_CURRENT_TASK_ROLE_MEM_MB", needs.memory_mib),
        ("PAI_TASK_MEM_MB", needs.memory_mib),
        ("PAI_CURRENT_TASK_ROLE_SHM_MB", needs.shm_mib),
        ("PAI_CURRENT_TASK_ROLE_GPU_COUNT", needs.gpus),
        ("PAI_TASK_GPU_NUM", needs.gpus),
    ];
    variables.extend(numbers.map(|(name, number)| Variable::new(name, number.to_string())));
    let rules = [("FAILED", group.end.min_failed), ("SUCCEEDED", group.end.min_succeeded)];
    variables.extend(rules.into_iter().filter_map(|(name, count)| {
        let name = format!("PAI_CURRENT_TASK_ROLE_MIN_{name}_TASK_COUNT");
        count.map(|count| Variable::new(name, count.to_string()))
    }));
    variables
}

/// What one task of the role needs, in the units of that platform.
struct Needs {
    gpus: u64,
    cpus: u64,
    memory_mib: u64,
    shm_mib: u64,
}

impl Needs {
    fn of(group: &Group) -> Self {
        let limit = |name: &str| {
            let limits = &group.resources.limits;
            limits.get(name).map_or(0, unisono_job::Quantity::whole)
        };
        Self {
            gpus: group.resources.gpus(),
            cpus: limit("cpu"),
            memory_mib: limit("memory") / MIB,
            shm_mib: group.shm_mib.unwrap_or(0),
        }
    }
}

/// What depends on the task's index.
pub(super) fn of_host(plan: &Plan, host: &Host) -> Vec<Variable> {
    let index = host.member.index.to_string();
    let mut variables: Vec<Variable> = [
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
        "PAI_TASK_INDEX",
        "PAI_TASK_ROLE_INDEX",
        "TASK_INDEX",
        "FC_TASK_INDEX",
    ]
    .map(|name| Variable::new(name, index.as_str()))
    .into();
    // Containers had numbers that YARN made up; what scripts need is that no two are the same.
    let container = format!("{}-{}-{index}", plan.job.name, plan.group_of(host).name);
    variables.extend(
        ["PAI_CONTAINER_ID", "CONTAINER_ID"].map(|name| Variable::new(name, container.as_str())),
    );
    let mut listed = Vec::new();
    for ports in ports::of_host(plan, host) {
        let numbers = join(&ports.ports);
        listed.push(format!("{}:{numbers};", ports.label));
        let name = format!("PAI_CONTAINER_HOST_{}_PORT_LIST", ports.label);
        variables.push(Variable::new(name, numbers));
        let first = ports.ports.first().map(ToString::to_string);
        let single = match ports.label {
            "http" => Some("PAI_CONTAINER_HOST_PORT"),
            "ssh" => Some("PAI_CONTAINER_SSH_PORT"),
            _ => None,
        };
        if let (Some(name), Some(first)) = (single, first) {
            if ports.label == "http" {
                variables.push(Variable::new("PAI_CURRENT_CONTAINER_PORT", first.as_str()));
            }
            variables.push(Variable::new(name, first));
        }
    }
    let listed = listed.concat();
    variables.extend(
        ["PAI_CONTAINER_HOST_PORT_LIST", "CONTAINER_PORTS"]
            .map(|name| Variable::new(name, listed.as_str())),
    );
    variables
}

/// Where this attempt stands and starts. Tasks are never tried again by themselves, so theirs is always the first.
pub(super) fn at_start(start: &Start<'_>) -> Vec<Variable> {
    let mut variables = vec![
        Variable::new("FC_FRAMEWORK_ATTEMPT_ID", start.attempt.to_string()),
        Variable::new("FC_TASK_ATTEMPT_ID", "0"),
    ];
    variables.extend(start.folder.map(|folder| Variable::new("PAI_WORK_DIR", folder)));
    variables
}

/// Addresses and ports of every task.
pub(super) fn late(plan: &Plan, addresses: &Addresses) -> Late {
    Late {
        shared: of_all_tasks(plan, addresses),
        own_address: &["PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP", "CONTAINER_IP"],
        own_folder: &["PAI_WORK_DIR"],
    }
}

fn of_all_tasks(plan: &Plan, addresses: &Addresses) -> Vec<Variable> {
    let mut variables = Vec::new();
    let mut instances = Vec::new();
    for (at, group) in (0_u32..).zip(&plan.job.groups) {
        let role = &group.name;
        let mut listed = Vec::new();
        for task in plan.hosts_of_group(at) {
            let index = task.member.index;
            instances.push(format!("{role}:{index}"));
            let address = addresses.get(&task.member).map(ToString::to_string);
            let address = address.unwrap_or_default();
            let name = format!("PAI_HOST_IP_{role}_{index}");
            variables.push(Variable::new(name, address.as_str()));
            for ports in ports::of_host(plan, task) {
                let (label, numbers) = (ports.label, join(&ports.ports));
                if label == "http" {
                    let first = ports.ports.first().copied().unwrap_or_default();
                    listed.push(format!("{address}:{first}"));
                }
                for name in [
                    format!("PAI_PORT_LIST_{role}_{index}_{label}"),
                    format!("PAI_{role}_{index}_{label}_PORT"),
                ] {
                    variables.push(Variable::new(name, numbers.as_str()));
                }
            }
        }
        let name = format!("PAI_TASK_ROLE_{role}_HOST_LIST");
        variables.push(Variable::new(name, listed.join(",")));
    }
    variables.push(Variable::new("PAI_TASK_ROLE_INSTANCES", instances.join(",")));
    variables
}

fn join(ports: &[u16]) -> String {
    let words: Vec<String> = ports.iter().map(ToString::to_string).collect();
    words.join(",")
}
