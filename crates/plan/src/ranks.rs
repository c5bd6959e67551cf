//! How many ranks a job starts: what the launch line says, else what the slots give, else unknown.

use unisono_job::{Command, Job, LaunchLine};

/// Paths and words that mean the host file Unisono writes: a line that names one still runs on the planned hosts.
const OUR_HOSTFILES: [&str; 3] = ["/etc/mpi/hostfile", "/mpi/hostfile", "AZUREML_MPI_HOSTFILE"];

/// The command that starts the ranks, and what it says about them.
pub(crate) struct LaunchCommand<'job> {
    /// Which group has it.
    pub(crate) group: usize,
    /// The command.
    pub(crate) command: &'job Command,
    /// What it says; absent when no known launcher is visible in it.
    pub(crate) line: Option<LaunchLine>,
}

/// Finds the command that starts the ranks: the launch line, or the first task of OpenPAI's that calls a launcher.
pub(crate) fn launch_command(job: &Job) -> Option<LaunchCommand<'_>> {
    let found = |(group, command): (usize, _)| LaunchCommand {
        group,
        command,
        line: Command::launch_line(command),
    };
    let populated = || {
        let groups = job.groups.iter().enumerate();
        groups.filter(|(_, group)| group.replicas > 0)
    };
    let stated = populated().find_map(|(at, group)| Some((at, group.runs.launch_line()?)));
    if let Some(stated) = stated {
        return Some(found(stated));
    }
    populated()
        .filter_map(|(at, group)| Some((at, group.runs.command()?)))
        .map(found)
        .find(|command| command.line.is_some())
}

/// The number of ranks, when something tells it.
pub(crate) fn count(job: &Job, launch: Option<&LaunchCommand<'_>>) -> Option<u32> {
    let launch = launch?;
    let line = launch.line.as_ref()?;
    if line.ranks.is_some() {
        return line.ranks;
    }
    let own_hosts = line.names_hosts && !names_our_hostfile(launch.command);
    if line.ranks_unreadable {
        return None;
    }
    if own_hosts {
        return line.named_slots.filter(|_| line.per_host.is_none());
    }
    let ranks = match line.per_host {
        Some(per_host) => u64::from(per_host) * rank_host_count(job),
        None => job.slot_count(),
    };
    u32::try_from(ranks).ok()
}

fn rank_host_count(job: &Job) -> u64 {
    job.groups
        .iter()
        .filter(|group| group.slots.count > 0)
        .map(|group| u64::from(group.replicas))
        .sum()
}

pub(crate) fn names_our_hostfile(command: &Command) -> bool {
    let text = command.display();
    OUR_HOSTFILES.iter().any(|path| text.contains(path))
}
