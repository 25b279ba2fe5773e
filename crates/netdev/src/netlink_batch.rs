//! Changes by rtnetlink, many of them in one call of the kernel: veth pairs, links, addresses, routes.
//! See `rtnetlink(7)`.
//!
//! Whoever makes an interface says which number it gets, so that what is done with it can follow in the
//! same batch.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

/// Bytes of acknowledgments that are read at once.
const ANSWER_BYTES: usize = 1 << 15;

/// One end of a veth pair that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The number of the interface, which must be free in its namespace.
    pub index: u32,
    /// Its name, 15 bytes at most.
    pub name: &'a str,
    /// Its MAC address; the kernel draws one otherwise.
    pub mac: Option<[u8; 6]>,
    /// Its MTU.
    pub mtu: u32,
}

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// How many of its bits its network has.
    pub prefix_bits: u8,
}

/// A change of a batch that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refuses to {change}: {error}")]
pub struct RefusedChange {
    /// What was to be done.
    pub change: &'static str,
    /// What the kernel says.
    pub error: io::Error,
}

/// Changes in the order in which the kernel does them. One that is refused does not keep it from those
/// behind.
#[derive(Debug, Default)]
pub struct NetlinkBatch {
    bytes: Vec<u8>,
    changes: Vec<&'static str>,
}

impl NetlinkBatch {
    /// Makes a veth pair: one end in the namespace of the socket, the other in that of `outer_namespace`.
    /// Both are down.
    pub fn add_veth(
        &mut self,
        inner: &VethEnd<'_>,
        outer: &VethEnd<'_>,
        outer_namespace: BorrowedFd<'_>,
    ) {
        let mut peer = link_of(outer);
        let namespace = LinkAttribute::NetNsFd(outer_namespace.as_raw_fd());
        peer.attributes.push(namespace);
        let mut link = link_of(inner);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let message = RouteNetlinkMessage::NewLink(link);
        self.push("add a veth pair", NLM_F_CREATE | NLM_F_EXCL, message);
    }

    /// Removes an interface; of a veth pair, both ends.
    pub fn remove_link(&mut self, index: u32) {
        let message = RouteNetlinkMessage::DelLink(numbered(index));
        self.push("remove an interface", 0, message);
    }

    /// Moves an interface into another namespace, where it keeps its number and is down.
    pub fn move_link(&mut self, index: u32, namespace: BorrowedFd<'_>) {
        let mut link = numbered(index);
        link.attributes
            .push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let message = RouteNetlinkMessage::SetLink(link);
        self.push("move an interface", 0, message);
    }

    /// Switches an interface on.
    pub fn set_up(&mut self, index: u32) {
        let mut link = numbered(index);
        (link.header.flags, link.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
        let message = RouteNetlinkMessage::SetLink(link);
        self.push("switch an interface on", 0, message);
    }

    /// Changes the MTU of an interface.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) {
        let mut link = numbered(index);
        link.attributes.push(LinkAttribute::Mtu(mtu));
        let message = RouteNetlinkMessage::SetLink(link);
        self.push("set the MTU", 0, message);
    }

    /// Has the kernel give an interface no IPv6 address of its own accord: then it asks for routers no
    /// more either.
    pub fn keep_without_link_local(&mut self, index: u32) {
        let mut link = numbered(index);
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let inet6 = AfSpecUnspec::Inet6(vec![mode]);
        link.attributes
            .push(LinkAttribute::AfSpecUnspec(vec![inet6]));
        let message = RouteNetlinkMessage::SetLink(link);
        self.push("keep an interface without IPv6", 0, message);
    }

    /// Adds an address, or changes it. One of IPv6 can be used at once: nobody is asked whether another
    /// has it.
    pub fn add_address(&mut self, index: u32, address: InterfaceAddress) {
        let message = RouteNetlinkMessage::NewAddress(address_of(index, address));
        self.push("add an address", NLM_F_CREATE | NLM_F_REPLACE, message);
    }

    /// Removes an address.
    pub fn remove_address(&mut self, index: u32, address: InterfaceAddress) {
        let message = RouteNetlinkMessage::DelAddress(address_of(index, address));
        self.push("remove an address", 0, message);
    }

    /// Sends all that goes nowhere else to a gateway, which need not be in the interface's network, in
    /// the place of the gateway before.
    pub fn set_default_gateway(&mut self, index: u32, gateway: IpAddr) {
        let mut route = default_route(gateway);
        route.attributes.push(RouteAttribute::Oif(index));
        route.header.flags = RouteFlags::Onlink;
        route
            .attributes
            .push(RouteAttribute::Gateway(address_in_route(gateway)));
        let message = RouteNetlinkMessage::NewRoute(route);
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.push("set the default gateway", flags, message);
    }

    /// The same, by whichever interface has the network that the gateway is in.
    pub fn set_reachable_gateway(&mut self, gateway: IpAddr) {
        let mut route = default_route(gateway);
        route
            .attributes
            .push(RouteAttribute::Gateway(address_in_route(gateway)));
        let message = RouteNetlinkMessage::NewRoute(route);
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.push("set the default gateway", flags, message);
    }

    fn push(&mut self, change: &'static str, flags: u16, message: RouteNetlinkMessage) {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.changes.len() as u32;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let start = self.bytes.len();
        let length = message.buffer_len();
        self.bytes.resize(start + length.next_multiple_of(4), 0);
        message.serialize(&mut self.bytes[start..start + length]);
        self.changes.push(change);
    }
}

/// A socket by which batches are done in one network namespace.
#[derive(Debug)]
pub struct NetlinkSocket(Socket);

impl NetlinkSocket {
    /// Opens one in the network namespace of this thread; it stays there wherever the thread goes.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn open() -> io::Result<NetlinkSocket> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        // An error does not bring back what it is about.
        socket.set_cap_ack(true)?;
        Ok(NetlinkSocket(socket))
    }

    /// Has all changes done, and waits until they are.
    ///
    /// # Errors
    ///
    /// The first change that was refused.
    pub fn apply(&self, batch: &NetlinkBatch) -> Result<(), RefusedChange> {
        let broken = |error| RefusedChange {
            change: "do a batch of changes",
            error,
        };
        self.0.send(&batch.bytes, 0).map_err(broken)?;
        let mut first: Option<(u32, ErrorMessage)> = None;
        let mut acknowledged = 0;
        let mut answer = Vec::with_capacity(ANSWER_BYTES);
        while acknowledged < batch.changes.len() {
            answer.clear();
            self.0.recv(&mut answer, 0).map_err(broken)?;
            for (number, error) in acknowledgments(&answer).map_err(broken)? {
                acknowledged += 1;
                if error.code.is_some() && first.is_none() {
                    first = Some((number, error));
                }
            }
        }
        first.map_or(Ok(()), |(number, error)| {
            Err(RefusedChange {
                change: batch.changes[number as usize],
                error: error.to_io(),
            })
        })
    }
}

/// The changes that an answer is about, and how each ended.
fn acknowledgments(mut bytes: &[u8]) -> io::Result<Vec<(u32, ErrorMessage)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let length = NetlinkBuffer::new_checked(bytes).map_err(invalid)?.length() as usize;
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map_err(invalid)?;
        if let NetlinkPayload::Error(error) = message.payload {
            found.push((message.header.sequence_number, error));
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(found)
}

fn numbered(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link
}

fn link_of(end: &VethEnd<'_>) -> LinkMessage {
    let mut link = numbered(end.index);
    link.attributes
        .push(LinkAttribute::IfName(end.name.to_owned()));
    link.attributes.push(LinkAttribute::Mtu(end.mtu));
    let mac = end.mac.map(|mac| LinkAttribute::Address(mac.to_vec()));
    link.attributes.extend(mac);
    link
}

fn address_of(index: u32, address: InterfaceAddress) -> AddressMessage {
    let InterfaceAddress { ip, prefix_bits } = address;
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.prefix_len = prefix_bits;
    message.header.scope = AddressScope::Universe;
    message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
    match ip {
        IpAddr::V4(ip) => {
            message.header.family = AddressFamily::Inet;
            if prefix_bits < 31 {
                let host_bits = u32::MAX >> prefix_bits;
                let broadcast = Ipv4Addr::from_bits(ip.to_bits() | host_bits);
                message
                    .attributes
                    .push(AddressAttribute::Broadcast(broadcast));
            }
        }
        IpAddr::V6(_) => {
            message.header.family = AddressFamily::Inet6;
            message.header.flags = AddressHeaderFlags::Nodad;
        }
    }
    message
}

fn default_route(gateway: IpAddr) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: match gateway {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        },
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Universe,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    route
}

fn address_in_route(ip: IpAddr) -> RouteAddress {
    match ip {
        IpAddr::V4(ip) => RouteAddress::Inet(ip),
        IpAddr::V6(ip) => RouteAddress::Inet6(ip),
    }
}
