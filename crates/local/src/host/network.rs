//! The private network of a job: a bridge in a network namespace of its own, the hub, and a cable from it to every host.
//!
//! Nothing of it can be seen on the machine, and the kernel takes it away with the last process in it.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::process::{DumpableBehavior, Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use serde::{Deserialize, Serialize};

use super::{HUB, Isolation, SetUpError, io_step, namespaces, step};

/// The bridge, inside the hub.
const BRIDGE: &str = "hub";

/// The end of the cable, inside a host.
const INTERFACE: &str = "eth0";

/// What the hub says once cables can be plugged in.
const READY: &[u8] = b"ready\n";

/// A host's place on the private network of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// The process that holds the bridge.
    pub hub: u32,
    /// The host's address.
    pub address: Ipv4Addr,
    /// How much of the address is the network's.
    pub prefix: u8,
}

/// The process that holds a job's bridge. It ends when this is dropped, and when the process that made it ends.
#[derive(Debug)]
pub struct Hub {
    process: Child,
}

impl Hub {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When the machine does not allow it, with the hub's own words.
    pub fn start(program: &Path, isolation: Isolation) -> io::Result<Self> {
        let mut process = Command::new(program)
            .arg(HUB)
            .arg(isolation.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = [0; READY.len()];
        let ready = process.stdout.as_mut().is_some_and(|it| it.read_exact(&mut said).is_ok());
        let mut hub = Self { process };
        if ready && said == READY {
            return Ok(hub);
        }
        let mut words = String::new();
        if let Some(stderr) = &mut hub.process.stderr {
            stderr.read_to_string(&mut words)?;
        }
        let words = words.trim().trim_start_matches("unisono: ");
        Err(io::Error::other(words.to_owned()))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Only a hub that has ended already can be neither killed nor waited for.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Becomes the hub: makes the bridge and holds it until nobody wants it any more.
pub(super) fn be_hub(isolation: Isolation) -> Result<i32, SetUpError> {
    namespaces::leave(isolation, UnshareFlags::NEWNET)?;
    step(set_parent_process_death_signal(Some(Signal::KILL)), "tie the hub to its engine")?;
    // Keepers enter our namespaces by their files in /proc, which only a process that can be looked at has.
    let dumpable = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
    step(dumpable, "let hosts find the hub")?;
    let netlink = Netlink::open()?;
    netlink.bring_up("lo")?;
    netlink.add_bridge()?;
    let told = io::stdout().write_all(READY).and_then(|()| io::stdout().flush());
    io_step(told, "tell that the hub is ready")?;
    // Nobody ever writes: the end of this stream is the end of the engine.
    let mut nothing = Vec::new();
    io_step(io::stdin().read_to_end(&mut nothing), "wait for the end")?;
    Ok(0)
}

/// Plugs the calling process, which is in a network namespace of its own, into the hub's bridge.
pub(super) fn plug_in(cable: &Cable) -> Result<(), SetUpError> {
    let own = io_step(std::fs::File::open("/proc/self/ns/net"), "find the host's network")?;
    let inside = Netlink::open()?;
    inside.bring_up("lo")?;
    namespaces::join(cable.hub, LinkNameSpaceType::Network)?;
    Netlink::open()?.add_cable(own.as_raw_fd())?;
    let back =
        rustix::thread::move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network));
    step(back, "go back to the host's network")?;
    inside.add_address(cable)?;
    inside.bring_up(INTERFACE)
}

/// A conversation with the kernel about one network namespace: the one it was opened in.
struct Netlink {
    socket: Socket,
}

impl Netlink {
    fn open() -> Result<Self, SetUpError> {
        let opened = Socket::new(NETLINK_ROUTE).and_then(|mut socket| {
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(Self { socket })
        });
        io_step(opened, "talk to the kernel about networks")
    }

    fn bring_up(&self, name: &str) -> Result<(), SetUpError> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(link), 0, format!("bring up {name}"))
    }

    fn add_bridge(&self) -> Result<(), SetUpError> {
        let mut link = LinkMessage::default();
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes = vec![
            LinkAttribute::IfName(BRIDGE.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        self.add(RouteNetlinkMessage::NewLink(link), "make a bridge")
    }

    /// One end becomes a port of the bridge, under a name that the kernel chooses; the other appears in the host's network.
    fn add_cable(&self, host: std::os::fd::RawFd) -> Result<(), SetUpError> {
        let mut inside = LinkMessage::default();
        inside.attributes =
            vec![LinkAttribute::IfName(INTERFACE.to_owned()), LinkAttribute::NetNsFd(host)];
        let mut link = LinkMessage::default();
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes = vec![
            LinkAttribute::Controller(self.index(BRIDGE)?),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(inside))),
            ]),
        ];
        self.add(RouteNetlinkMessage::NewLink(link), "plug the host into the job's network")
    }

    fn add_address(&self, cable: &Cable) -> Result<(), SetUpError> {
        let own = IpAddr::V4(cable.address);
        let mut address = AddressMessage::default();
        address.header.family = AddressFamily::Inet;
        address.header.prefix_len = cable.prefix;
        address.header.index = self.index(INTERFACE)?;
        address.attributes = vec![AddressAttribute::Local(own), AddressAttribute::Address(own)];
        self.add(RouteNetlinkMessage::NewAddress(address), "give the host its address")
    }

    fn index(&self, name: &str) -> Result<u32, SetUpError> {
        let index = rustix::net::netdevice::name_to_index(self.socket.as_fd(), name);
        step(index, format!("find the interface {name}"))
    }

    fn add(&self, message: RouteNetlinkMessage, what: &str) -> Result<(), SetUpError> {
        self.ask(message, NLM_F_CREATE | NLM_F_EXCL, what)
    }

    fn ask(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl Into<String>,
    ) -> Result<(), SetUpError> {
        let mut packet =
            NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
        packet.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        let answered = self
            .socket
            .send(&bytes, 0)
            .and_then(|_| self.socket.recv_from_full())
            .and_then(|(answer, _)| read_answer(&answer));
        io_step(answered, what)
    }
}

/// The kernel answers what it did with an error of zero.
fn read_answer(bytes: &[u8]) -> io::Result<()> {
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes);
    match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        NetlinkPayload::Error(_) => Ok(()),
        _ => Err(io::Error::other("the kernel answered something else than was asked")),
    }
}
