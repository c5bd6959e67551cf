//! An address for every host: loopback addresses that nobody else on the machine uses, or addresses on the job's own network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use unisono_plan::Plan;
use unisono_plan::bind::Addresses;

/// Hosts' addresses begin above 127.0.x.x, which people and name services use.
const FIRST_BLOCK: u32 = 1 << 16;

/// Addresses that are left of 127.0.0.0/8 then.
const BLOCKS_END: u32 = (1 << 24) - 1;

/// How many places are tried before giving up; with 16 million addresses the first is nearly always free.
const TRIES: u64 = 64;

/// Gives every host of a plan an address on which the port is free. The seed spreads runs that begin at the same time.
///
/// # Errors
///
/// When no free stretch of addresses is found.
pub fn give_addresses(plan: &Plan, port: u16, seed: u64) -> io::Result<Addresses> {
    let count = u32::try_from(plan.hosts.len()).unwrap_or(u32::MAX);
    let room = BLOCKS_END.saturating_sub(FIRST_BLOCK).saturating_sub(count).max(1);
    for attempt in 0..TRIES {
        let mixed = seed.wrapping_add(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start = FIRST_BLOCK + u32::try_from((mixed >> 32) % u64::from(room)).unwrap_or(0);
        let addresses: Addresses = plan
            .hosts
            .iter()
            .zip(start..)
            .map(|(host, number)| (host.member, loopback(number)))
            .collect();
        if addresses.values().all(|address| is_free(*address, port)) {
            return Ok(addresses);
        }
    }
    Err(io::Error::other("no free stretch of loopback addresses was found"))
}

/// The private network of every job: nobody else can see it, so all can have the same.
const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 0);

/// How much of an address on it is the network's.
pub(crate) const PRIVATE_PREFIX: u8 = 16;

/// As many ports as the kernel's bridges have.
const PORTS: usize = 1023;

/// Gives every host of a plan an address on the job's private network.
///
/// # Errors
///
/// When there are more hosts than a bridge has ports.
pub fn private_addresses(plan: &Plan) -> io::Result<Addresses> {
    if plan.hosts.len() > PORTS {
        let message = format!("a private network has room for {PORTS} hosts");
        return Err(io::Error::other(message));
    }
    let addresses = (PRIVATE.to_bits() + 1..).map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    Ok(plan.hosts.iter().map(|host| host.member).zip(addresses).collect())
}

fn loopback(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits((127 << 24) | number))
}

fn is_free(address: IpAddr, port: u16) -> bool {
    TcpListener::bind((address, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use unisono_job::{Command, Dialect, Group, Job, JobName, Runs, Slots};
    use unisono_plan::{Facts, lay_out};

    use super::*;

    #[test]
    fn a_stretch_with_an_address_that_somebody_has_is_passed_over() {
        let runs = Runs::LaunchOnFirst(Command::Words(vec!["true".to_owned()]));
        let group = Group::new("host", 5, Slots::stated(1), runs);
        let job = Job::new(JobName::new("ring").unwrap(), Dialect::Unisono, vec![group]);
        let plan = lay_out(&job, &Facts::default(), 1);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let addresses = give_addresses(&plan, port, 7).unwrap();
        for taken in addresses.values() {
            let _held = TcpListener::bind((*taken, port)).unwrap();
            let others = give_addresses(&plan, port, 7).unwrap();
            assert!(!others.values().any(|it| it == taken), "{taken} is somebody's");
        }
    }
}
