//! Builders: jobs as the readers of each dialect make them, to be changed field by field.

use unisono_job::{
    CleanUp, Command, Dialect, EndRule, Flavour, Gang, Group, Job, JobName, LaunchRights,
    MpiChoice, MpiFrom, PortRequest, RestartPolicy, Retry, RetryCount, Runs, Slots,
};

/// A command from words.
pub fn words(words: &[&str]) -> Command {
    Command::Words(words.iter().map(|word| (*word).to_owned()).collect())
}

/// A group that ends the job by no rule of its own.
pub fn group(name: &str, replicas: u32, slots: u32, runs: Runs) -> Group {
    let slots = if slots == 0 { Slots::NONE } else { Slots::stated(slots) };
    Group::new(name, replicas, slots, runs)
}

/// A job of these groups.
///
/// # Panics
///
/// When the name is none.
pub fn job(name: &str, dialect: Dialect, groups: Vec<Group>) -> Job {
    let name = JobName::new(name).expect("a test's job name is one");
    let mpi = MpiChoice { flavour: Some(Flavour::OpenMpi), from: MpiFrom::Default };
    Job { mpi, ..Job::new(name, dialect, groups) }
}

/// A Kubeflow job with a launcher and workers, and that system's defaults.
pub fn kubeflow(dialect: Dialect, name: &str, workers: u32, slots: u32, launch: &[&str]) -> Job {
    let mut launcher = group("launcher", 1, 0, Runs::Launch(words(launch)));
    launcher.end = EndRule::FIRST;
    launcher.restart = RestartPolicy::OnFailure;
    let worker = group("worker", workers, slots, Runs::Ranks(None));
    let mut job = job(name, dialect, vec![launcher, worker]);
    job.policies.retry = Retry::Backoff { limit: 6 };
    job.policies.clean_up = match dialect {
        Dialect::KubeflowV1alpha1 => CleanUp::All,
        _ => CleanUp::None,
    };
    job
}

/// An Azure ML job on `AmlCompute`: one group, whose first host launches.
pub fn azure(name: &str, hosts: u32, slots: u32, line: &str) -> Job {
    let runs = Runs::LaunchOnFirst(Command::bash(line));
    let mut node = group("node", hosts, slots, runs);
    node.end = EndRule::FIRST;
    job(name, Dialect::AzureMpiJob, vec![node])
}

/// A kube-batch job: one group, whose first member is the executor.
pub fn kube_batch(name: &str, members: u32, launch: &[&str]) -> Job {
    let mut member = group("pod", members, 1, Runs::LaunchOnFirst(words(launch)));
    member.end = EndRule::FIRST;
    let mut job = job(name, Dialect::KubeBatch, vec![member]);
    job.mpi.flavour = Some(Flavour::Mpich);
    job.policies.retry = Retry::Backoff { limit: 6 };
    job.policies.gang = Gang { min_members: Some(members), ..Gang::default() };
    job
}

/// An OpenPAI task role with that system's default rule: any failure fails the job.
pub fn role(name: &str, tasks: u32, line: &str) -> Group {
    let mut role = group(name, tasks, 1, Runs::Own(Command::bash(line)));
    role.end = EndRule { min_failed: Some(1), min_succeeded: None };
    role.ports = ["http", "ssh"]
        .map(|label| PortRequest { label: label.to_owned(), begin_at: None, count: 1 })
        .into();
    role
}

/// An OpenPAI job of these roles.
pub fn openpai(name: &str, roles: Vec<Group>) -> Job {
    let mut job = job(name, Dialect::OpenPaiV1, roles);
    job.launch_rights = LaunchRights::Everybody;
    job.policies.retry = Retry::ByClass(RetryCount::Limited(0));
    job
}
