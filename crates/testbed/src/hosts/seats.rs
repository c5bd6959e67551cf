//! Names and addresses of hosts that are not made yet: a process 1 may have to know all of them before any host runs.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::{HostError, Network};

/// The place of one host: its name and address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The host's name.
    pub name: String,
    /// The host's address.
    pub address: Ipv4Addr,
}

/// The places of all hosts of a set. The addresses belong to it as long as it lives.
#[derive(Debug)]
pub struct Seats {
    seats: Vec<Seat>,
    network: Network,
    _reservations: Vec<UnixListener>,
}

/// As many hosts fit into one block of addresses.
const BLOCK: usize = 250;

impl Seats {
    /// Reserves an address for each name.
    ///
    /// # Errors
    /// When other tests hold every block of loopback addresses.
    pub fn reserve(
        names: impl IntoIterator<Item = String>,
        network: Network,
    ) -> Result<Self, HostError> {
        let names: Vec<String> = names.into_iter().collect();
        let mut blocks = vec![];
        let mut reservations = vec![];
        for number in 0..names.len().div_ceil(BLOCK) {
            match network {
                Network::Shared => {
                    let (block, reservation) = reserve_block()?;
                    blocks.push(block);
                    reservations.push(reservation);
                }
                Network::Private => {
                    blocks.push(Ipv4Addr::from_bits(0x0a4d_0000 + (number << 8) as u32))
                }
            }
        }
        let addresses = blocks.iter().flat_map(|block| {
            (1..=BLOCK as u32).map(|last| Ipv4Addr::from_bits(block.to_bits() + last))
        });
        let seats = names
            .into_iter()
            .zip(addresses)
            .map(|(name, address)| Seat { name, address })
            .collect();
        Ok(Self { seats, network, _reservations: reservations })
    }

    /// The places in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Seat> {
        self.seats.iter()
    }

    pub(super) const fn network(&self) -> Network {
        self.network
    }

    /// `/etc/hosts` as `reader` sees it.
    pub(super) fn hosts_file(&self, reader: &Seat, unknown_to_others: &[String]) -> String {
        let mut text = String::from("127.0.0.1 localhost\n");
        for seat in &self.seats {
            if seat == reader || !unknown_to_others.contains(&seat.name) {
                // Writing to a String cannot fail.
                let _infallible = writeln!(text, "{} {}", seat.address, seat.name);
            }
        }
        text
    }
}

impl<'a> IntoIterator for &'a Seats {
    type Item = &'a Seat;
    type IntoIter = std::slice::Iter<'a, Seat>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Takes a /24 of the loopback network that no other test holds. The reservation is an abstract socket, so it ends with
/// its holder, however that ends.
fn reserve_block() -> Result<(Ipv4Addr, UnixListener), HostError> {
    for number in 0_u32..64 * 256 {
        let block = Ipv4Addr::from_bits(0x7f40_0000 + (number << 8));
        let reserved = SocketAddr::from_abstract_name(format!("unisono-testbed-{block}"))
            .and_then(|name| UnixListener::bind_addr(&name));
        if let Ok(reservation) = reserved {
            return Ok((block, reservation));
        }
    }
    Err(HostError::NoAddresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> impl Iterator<Item = String> {
        (0..count).map(|it| format!("n{it}"))
    }

    #[test]
    fn two_sets_never_share_an_address() {
        let one = Seats::reserve(names(300), Network::Shared).unwrap();
        let other = Seats::reserve(names(300), Network::Shared).unwrap();
        let mut all: Vec<_> = one.iter().chain(&other).map(|it| it.address).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 600);
        assert!(all.iter().all(Ipv4Addr::is_loopback));
    }

    #[test]
    fn a_name_can_be_hidden_from_the_others() {
        let seats = Seats::reserve(names(2), Network::Private).unwrap();
        let hidden = ["n0".to_owned()];
        let [n0, n1] = [&seats.seats[0], &seats.seats[1]];
        assert_eq!(
            seats.hosts_file(n0, &hidden),
            "127.0.0.1 localhost\n10.77.0.1 n0\n10.77.0.2 n1\n"
        );
        assert_eq!(seats.hosts_file(n1, &hidden), "127.0.0.1 localhost\n10.77.0.2 n1\n");
    }
}
