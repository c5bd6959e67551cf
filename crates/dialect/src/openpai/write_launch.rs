//! A launch line for OpenPAI, which writes no host file: the line itself has to name its hosts.

use unisono_job::{Command, Flavour, Group, Job};

use super::write::{role_name, text};
use crate::launch_text::{LaunchText, option_and_value};
use crate::lost::Lost;

/// The launch line with the tasks that host ranks named in it.
pub(super) fn hosts_named(
    job: &Job,
    group: &Group,
    command: &Command,
    lost: &mut Lost<'_>,
) -> String {
    let key = format!("{}.command", group.name);
    let Some(line) = LaunchText::of(command) else {
        let message = "OpenPAI writes no host file, and this command does more than start ranks: name the hosts in it (`-H worker-0:4,…`)";
        lost.change(&key, message);
        return text(group, command, lost);
    };
    let names_own = line
        .options
        .iter()
        .any(|option| matches!(option_and_value(option).0.as_str(), "H" | "host" | "hosts"));
    if names_own {
        lost.change(
            &key,
            "the launch line names hosts of its own: their names are others in OpenPAI",
        );
        return text(group, command, lost);
    }
    // Host files of the other systems do not exist here.
    let is_hostfile = |option: &&String| {
        matches!(option_and_value(option).0.as_str(), "hostfile" | "machinefile" | "f")
    };
    let mut options = vec![host_option(job)];
    options.extend(line.options.iter().filter(|option| !is_hostfile(option)).cloned());
    line.with_options(&options)
}

/// `-H task:slots,…`, or what Hydra calls it.
fn host_option(job: &Job) -> String {
    let mut hosts = Vec::new();
    for group in job.groups.iter().filter(|group| group.slots.count > 0) {
        let role = role_name(job, group);
        hosts.extend(
            (0..group.replicas).map(|index| format!("{role}-{index}:{}", group.slots.count)),
        );
    }
    let option = match job.mpi.flavour {
        Some(Flavour::OpenMpi) | None => "-H",
        Some(Flavour::Intel | Flavour::Mpich) => "-hosts",
    };
    format!("{option} {}", hosts.join(","))
}
