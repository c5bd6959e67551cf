//! Ports promised to members: those the file fixes, and for the rest numbers that no two members share.

use unisono_job::{Job, PortRequest};

use crate::{Host, Plan};

/// Below the range from which systems hand out ports by themselves.
const FIRST: u64 = 20_000;
/// How many there are before that range begins.
const COUNT: u64 = 12_000;

/// Ports of one label on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports<'plan> {
    /// The name under which the member finds them.
    pub label: &'plan str,
    /// The ports.
    pub ports: Vec<u16>,
}

/// Every port promised to a host, by label.
///
/// A number depends only on the job's groups and the member's index, so it stays when a group grows. Numbers repeat once
/// all are given out; hosts that far apart do not share a machine.
pub fn of_host<'plan>(plan: &'plan Plan, host: &Host) -> Vec<Ports<'plan>> {
    let group = host.member.group as usize;
    let before_group: u64 = plan.job.groups[..group].iter().map(free_ports).sum();
    let of_all_groups: u64 = plan.job.groups.iter().map(free_ports).sum();
    let mut next = u64::from(host.member.index) * of_all_groups + before_group;
    requests(&plan.job, group)
        .map(|request| Ports { label: &request.label, ports: take(request, &mut next) })
        .collect()
}

fn requests(job: &Job, group: usize) -> impl Iterator<Item = &PortRequest> {
    job.groups[group].ports.iter()
}

fn free_ports(group: &unisono_job::Group) -> u64 {
    let free = group.ports.iter().filter(|port| port.begin_at.is_none());
    free.map(|port| u64::from(port.count)).sum()
}

fn take(request: &PortRequest, next: &mut u64) -> Vec<u16> {
    (0..request.count)
        .map(|nth| match request.begin_at {
            Some(first) => first.saturating_add(nth),
            None => {
                let port = FIRST + *next % COUNT;
                *next += 1;
                u16::try_from(port).unwrap_or(u16::MAX)
            }
        })
        .collect()
}
