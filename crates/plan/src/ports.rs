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

/// The port of a host's agent where hosts may share an address: one that no other host of the job has, and that hosts of
/// other jobs most likely do not have either. Stays when groups grow.
pub fn of_agent(plan: &Plan, host: &Host) -> u16 {
    // Below the ports that Kubernetes gives to services.
    const COUNT: u64 = 9_000;
    let job = format!("{}/{}", plan.namespace(), plan.job.name);
    let digest = job.bytes().fold(0_u64, |digest, byte| (digest * 31 + u64::from(byte)) % COUNT);
    let groups = plan.job.groups.len() as u64;
    let place = u64::from(host.member.index) * groups + u64::from(host.member.group);
    u16::try_from(FIRST + (digest + place) % COUNT).unwrap_or(u16::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineKind;
    use crate::sample::plan;

    #[test]
    fn agents_of_one_job_have_ports_of_their_own_that_stay_when_it_grows() {
        let ports = |workers: u32| -> Vec<u16> {
            let plan = plan(EngineKind::Kubernetes, |job| job.groups[1].replicas = workers);
            plan.hosts.iter().map(|host| of_agent(&plan, host)).collect()
        };
        let (few, many) = (ports(2), ports(60));
        assert_eq!(few, many[..few.len()]);
        let unique: std::collections::BTreeSet<&u16> = many.iter().collect();
        assert_eq!(unique.len(), many.len());
        assert!(many.iter().all(|port| (20_000..30_000).contains(port)));
    }
}
