//! An address for every host: loopback addresses that nobody else on the machine uses.

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
        let ends = [addresses.values().next(), addresses.values().next_back()];
        if ends.into_iter().flatten().all(|address| is_free(*address, port)) {
            return Ok(addresses);
        }
    }
    Err(io::Error::other("no free stretch of loopback addresses was found"))
}

fn loopback(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits((127 << 24) | number))
}

fn is_free(address: IpAddr, port: u16) -> bool {
    TcpListener::bind((address, port)).is_ok()
}
