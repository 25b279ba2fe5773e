//! Sockets of clients, for plugins that talk by UDP or TCP: ports, flows and listeners, without any
//! frame.
//!
//! A flow of datagrams belongs to the plugin that opened it, or that listens on its port; the plugin
//! `transport` gives what arrives to the owner ([`Datagram`]), `datagrams` sends. A flow of TCP is a
//! number here; the plugin `transport` has its connection.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustc_hash::FxHashMap;

use crate::client::{ClientId, ClientMap};

/// Source ports of flows that clients open: those that ports of a server in service mode let
/// through.
const PORTS: std::ops::RangeInclusive<u16> = 0xff00..=0xfffe;

crate::counters! {
    /// Counters of the flow table of a client.
    pub(crate) struct FlowCounters: u32, "ft" {
        new_udp: "ft_new_udp", "udp server, new flow", "event", Info;
        new_tcp: "ft_new_tcp", "tcp server, new flow", "event", Info;
        new_tcp_no_syn: "ft_new_tcp_no_syn", "no syn in server side first packet", "event", Error;
        new_no_cb: "ft_new_no_cb", "no port listen in server side first packet", "event", Error;
        new_no_client_ipv6: "ft_new_no_client_ipv6", "no valid ipv6 addr for server side packet", "event", Error;
        new_no_client_ipv4: "ft_new_no_client_ipv4", "no valid ipv4 addr for server side packet", "event", Error;
        new_no_accept: "ft_new_no_accept", "first tcp packets wasn't accepted", "event", Info;
        new_ipv4: "ft_new_ipv4", "new tcp flowv4", "event", Info;
        new_ipv6: "ft_new_ipv6", "new tcp flowv6", "event", Info;
        dial: "dial", "dial", "event", Info;
        dial_wrong_network: "dial_wrong_network", "dial wrong network", "event", Error;
        dial_wrong_addr: "dial_wrong_addr", "dial wrong addr", "event", Error;
        src_port_alloc: "src_port_alloc", "alloc source port", "event", Info;
        src_port_free: "src_port_free", "free source port", "event", Info;
        src_port_active: "src_port_active", "active source ports", "event", Info, zero;
        src_port_err_return: "src_port_err_return", "error in return port (not active)", "event", Error;
        src_port_err_get: "src_port_err_get", "no free source port", "event", Error;
        add_ipv4: "ft_addv4", "add v4 flows", "event", Info;
        remove_ipv4: "ft_removev4", "remove v4 flows", "event", Info;
        active_ipv4: "ft_activev4", "active v4 flows", "flows", Info, zero;
        lookup_ipv4: "ft_lookupv4", "lookup v4 flows", "event", Info;
        found_ipv4: "ft_lookup_foundv4", "lookup v4 flows and found", "event", Info;
        exists_ipv4: "err_already_exitsv4", "err add v4 flows - already exists", "flows", Error;
        missing_ipv4: "err_remove_not_exitsv4", "err remove v4 flows - does not exists", "flows", Error;
        add_ipv6: "ft_addv6", "add v6 flows", "event", Info;
        remove_ipv6: "ft_removev6", "remove v6 flows", "event", Info;
        active_ipv6: "ft_activev6", "active v6 flows", "flows", Info, zero;
        lookup_ipv6: "ft_lookupv6", "lookup v6 flows", "event", Info;
        found_ipv6: "ft_lookup_foundv6", "lookup v6 flows and found", "event", Info;
        exists_ipv6: "err_already_exitsv6", "err add v6 flows - already exists", "flows", Error;
        missing_ipv6: "err_remove_not_exitsv6", "err remove v6 flows - does not exists", "flows", Error;
    }
}

crate::counters! {
    /// Counters of UDP of a client.
    pub(crate) struct UdpCounters: u32, "udp" {
        tx_packets: "udp_sndpack", "udp_sndpack", "event", Info;
        tx_bytes: "udp_sndbyte", "udp_sndbyte", "event", Info;
        rx_bytes: "udp_rcvbyte", "udp_rcvbyte", "event", Info;
        unresolved: "udp_drop_unresolved", "udp_drop_unresolved", "event", Error;
        too_long: "udp_drop_msg_bigger_mtu", "udp_drop_msg_bigger_mtu", "event", Error;
    }
}

/// Whose a flow or listener is: a plugin, by its number.
pub(crate) type Owner = u8;

/// Flows of a client that others began: more are not accepted.
const ACCEPTED_MAX: usize = 16_384;

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    /// Datagrams.
    Udp,
    /// Streams of bytes.
    Tcp,
}

/// Who takes what arrives on a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taker {
    /// A plugin, datagram by datagram.
    Plugin(Owner),
    /// A connection of the plugin `transport`.
    Connection(u32),
}

/// Who takes flows that others begin at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    port: u16,
    protocol: Protocol,
    pub(crate) owner: Owner,
    /// What it means is the owner's.
    pub(crate) tag: u32,
}

/// The sockets of one client.
#[derive(Debug, Default)]
pub(crate) struct ClientSockets {
    pub(crate) flows: FlowCounters,
    pub(crate) udp: UdpCounters,
    /// The offset of the source port to try next.
    next_port: u16,
    listeners: Vec<Listener>,
    /// By local port and the other end.
    table: BTreeMap<(u16, Protocol, SocketAddr), Taker>,
}

impl ClientSockets {
    /// Opens a flow of datagrams from a new source port, unless there is none.
    pub(crate) fn open(&mut self, remote: SocketAddr, owner: Owner) -> Option<u16> {
        let port = self.take_port()?;
        self.insert((port, Protocol::Udp, remote), Taker::Plugin(owner));
        Some(port)
    }

    /// Opens a flow of a connection from a new source port, unless there is none.
    pub(crate) fn connect(&mut self, remote: SocketAddr, connection: u32) -> Option<u16> {
        let port = self.take_port()?;
        let taker = Taker::Connection(connection);
        self.insert((port, Protocol::Tcp, remote), taker);
        Some(port)
    }

    fn take_port(&mut self) -> Option<u16> {
        let ports = PORTS.len() as u16;
        let free = (0..ports).find_map(|offset| {
            let at = (self.next_port + offset) % ports;
            let port = PORTS.start() + at;
            // Ports are counted by client: a port has one flow.
            let used = self.table.range((port, Protocol::Udp, lowest())..).next();
            let is_free = used.is_none_or(|((other, ..), _)| *other != port);
            is_free.then_some((at, port))
        });
        self.flows.dial += 1;
        let Some((at, port)) = free else {
            self.flows.src_port_err_get += 1;
            return None;
        };
        self.next_port = (at + 1) % ports;
        self.flows.src_port_alloc += 1;
        self.flows.src_port_active += 1;
        Some(port)
    }

    /// Closes a flow of datagrams.
    pub(crate) fn close(&mut self, port: u16, remote: SocketAddr) {
        self.remove((port, Protocol::Udp, remote));
    }

    /// Closes a flow of a connection.
    pub(crate) fn disconnect(&mut self, port: u16, remote: SocketAddr) {
        self.remove((port, Protocol::Tcp, remote));
    }

    fn remove(&mut self, key: (u16, Protocol, SocketAddr)) {
        let (port, _, remote) = key;
        if self.table.remove(&key).is_none() {
            *self.missing(remote) += 1;
            return;
        }
        if PORTS.contains(&port) {
            self.flows.src_port_free += 1;
            self.flows.src_port_active = self.flows.src_port_active.saturating_sub(1);
        }
        if remote.is_ipv4() {
            self.flows.remove_ipv4 += 1;
            self.flows.active_ipv4 = self.flows.active_ipv4.saturating_sub(1);
        } else {
            self.flows.remove_ipv6 += 1;
            self.flows.active_ipv6 = self.flows.active_ipv6.saturating_sub(1);
        }
    }

    /// Takes the datagrams that arrive at a port for a plugin; returns false when another one has it.
    pub(crate) fn listen(&mut self, port: u16, owner: Owner) -> bool {
        self.listen_for(Protocol::Udp, port, owner, 0)
    }

    /// Takes the flows that others begin at a port for a plugin, with a tag of the plugin's; returns
    /// false when another one has it.
    pub(crate) fn listen_for(
        &mut self,
        protocol: Protocol,
        port: u16,
        owner: Owner,
        tag: u32,
    ) -> bool {
        let is_free = self.listener(protocol, port).is_none();
        if is_free {
            self.listeners.push(Listener {
                port,
                protocol,
                owner,
                tag,
            });
        }
        is_free
    }

    /// Who takes flows of a port.
    pub(crate) fn listener(&self, protocol: Protocol, port: u16) -> Option<Listener> {
        let mut listeners = self.listeners.iter();
        listeners
            .find(|other| (other.protocol, other.port) == (protocol, port))
            .copied()
    }

    /// The owner of a flow of datagrams, which begins if somebody listens on its port.
    pub(crate) fn accept(&mut self, port: u16, remote: SocketAddr) -> Option<Owner> {
        let key = (port, Protocol::Udp, remote);
        if let Some(Taker::Plugin(owner)) = self.look_up(key) {
            return Some(owner);
        }
        // Who asked a group is answered by whoever is in it.
        let group = self.group_of(port);
        let taker = group.and_then(|group| self.table.get(&(port, Protocol::Udp, group)));
        if let Some(&Taker::Plugin(owner)) = taker {
            return Some(owner);
        }
        let Some(listener) = self.listener(Protocol::Udp, port) else {
            self.flows.new_no_cb += 1;
            return None;
        };
        self.flows.new_udp += 1;
        let taker = Taker::Plugin(listener.owner);
        self.begin(key, taker).then_some(listener.owner)
    }

    /// The group that a flow of datagrams from a port goes to, if it does.
    pub(crate) fn group_of(&self, port: u16) -> Option<SocketAddr> {
        let mut flows = self.table.range((port, Protocol::Udp, lowest())..);
        let (&(other, protocol, remote), _) = flows.next()?;
        let is_it = (other, protocol) == (port, Protocol::Udp) && remote.ip().is_multicast();
        is_it.then_some(remote)
    }

    /// The connection of a flow.
    pub(crate) fn connection(&mut self, port: u16, remote: SocketAddr) -> Option<u32> {
        match self.look_up((port, Protocol::Tcp, remote)) {
            Some(Taker::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    /// Whether another flow may begin here; counts it.
    pub(crate) fn begin_connection(
        &mut self,
        port: u16,
        remote: SocketAddr,
        connection: u32,
    ) -> bool {
        self.flows.new_tcp += 1;
        let taker = Taker::Connection(connection);
        self.begin((port, Protocol::Tcp, remote), taker)
    }

    /// The connections of all flows.
    pub(crate) fn connections(&self) -> impl Iterator<Item = u32> {
        self.table.values().filter_map(|taker| match taker {
            Taker::Connection(connection) => Some(*connection),
            Taker::Plugin(_) => None,
        })
    }

    fn look_up(&mut self, key: (u16, Protocol, SocketAddr)) -> Option<Taker> {
        let counters = &mut self.flows;
        let found = self.table.get(&key).copied();
        let count = u32::from(found.is_some());
        if key.2.is_ipv4() {
            counters.lookup_ipv4 += 1;
            counters.found_ipv4 += count;
        } else {
            counters.lookup_ipv6 += 1;
            counters.found_ipv6 += count;
        }
        found
    }

    fn begin(&mut self, key: (u16, Protocol, SocketAddr), taker: Taker) -> bool {
        if self.table.len() >= ACCEPTED_MAX {
            self.flows.new_no_accept += 1;
            return false;
        }
        match key.2.is_ipv4() {
            true => self.flows.new_ipv4 += 1,
            false => self.flows.new_ipv6 += 1,
        }
        self.insert(key, taker);
        true
    }

    fn insert(&mut self, key: (u16, Protocol, SocketAddr), taker: Taker) {
        self.table.insert(key, taker);
        if key.2.is_ipv4() {
            self.flows.add_ipv4 += 1;
            self.flows.active_ipv4 += 1;
        } else {
            self.flows.add_ipv6 += 1;
            self.flows.active_ipv6 += 1;
        }
    }

    fn missing(&mut self, remote: SocketAddr) -> &mut u32 {
        match remote.is_ipv4() {
            true => &mut self.flows.missing_ipv4,
            false => &mut self.flows.missing_ipv6,
        }
    }
}

/// The smallest address, for ranges.
fn lowest() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)
}

/// The sockets of all clients of a namespace that have some.
#[derive(Debug, Default)]
pub struct Sockets {
    clients: ClientMap<Box<ClientSockets>>,
    /// Clients that take datagrams to a group, by the group and its port.
    groups: FxHashMap<SocketAddr, Vec<ClientId>>,
}

impl Sockets {
    /// The sockets of a client, if it ever had one.
    pub(crate) fn get_mut(&mut self, client: ClientId) -> Option<&mut ClientSockets> {
        self.clients.get_mut(client).map(|sockets| &mut **sockets)
    }

    /// Takes datagrams to a group for a client.
    pub(crate) fn join(&mut self, client: ClientId, group: SocketAddr) {
        let members = self.groups.entry(group).or_default();
        if !members.contains(&client) {
            members.push(client);
        }
    }

    /// Who takes datagrams to a group.
    pub(crate) fn members(&self, group: SocketAddr) -> &[ClientId] {
        self.groups.get(&group).map_or(&[], |members| members)
    }

    /// The sockets of a client.
    pub(crate) fn of(&mut self, client: ClientId) -> &mut ClientSockets {
        if self.clients.get(client).is_none() {
            self.clients.insert(client, Box::default());
        }
        let sockets = self.clients.get_mut(client);
        sockets.expect("it was just inserted")
    }

    /// Forgets the sockets of a client that goes.
    pub(crate) fn remove(&mut self, client: ClientId) {
        self.clients.remove(client);
        self.groups.retain(|_, members| {
            members.retain(|member| *member != client);
            !members.is_empty()
        });
    }
}

/// What arrived on a flow, as the message that its owner gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'d> {
    pub(crate) port: u16,
    pub(crate) remote: SocketAddr,
    pub(crate) payload: &'d [u8],
}

/// Bytes in front of the payload of an encoded datagram.
const PREFIX: usize = 21;

impl<'d> Datagram<'d> {
    /// The data of a message to the owner.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(PREFIX + self.payload.len());
        data.extend_from_slice(&self.port.to_be_bytes());
        data.extend_from_slice(&self.remote.port().to_be_bytes());
        let address = match self.remote.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        data.push(u8::from(self.remote.is_ipv4()));
        data.extend_from_slice(&address.octets());
        data.extend_from_slice(self.payload);
        data
    }

    /// Reads such data.
    pub(crate) fn decode(data: &'d [u8]) -> Option<Datagram<'d>> {
        let (prefix, payload) = data.split_at_checked(PREFIX)?;
        let number = |at: usize| u16::from_be_bytes([prefix[at], prefix[at + 1]]);
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(&prefix[5..]).ok()?);
        let address = match prefix[4] {
            0 => IpAddr::V6(address),
            _ => IpAddr::V4(address.to_ipv4_mapped()?),
        };
        Some(Datagram {
            port: number(0),
            remote: SocketAddr::new(address, number(2)),
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ports_go_round_and_end() {
        let mut sockets = ClientSockets::default();
        let server = remote("10.0.0.1:53");
        let first = sockets.open(server, 1);
        assert_eq!(
            (first, sockets.open(server, 1)),
            (Some(0xff00), Some(0xff01))
        );
        sockets.close(0xff00, server);
        assert_eq!(
            sockets.open(server, 1),
            Some(0xff02),
            "not the one that was just closed"
        );
        while sockets.open(server, 1).is_some() {}
        assert_eq!(sockets.flows.src_port_active, 255);
        assert_eq!(sockets.flows.src_port_err_get, 1);
        sockets.close(0xff00, server);
        assert_eq!(sockets.open(remote("[2001:db8::1]:53"), 1), Some(0xff00));
        assert_eq!(sockets.flows.active_ipv6, 1);
        sockets.close(0x1234, server);
        assert_eq!(sockets.flows.missing_ipv4, 1);
    }

    #[test]
    fn only_listeners_and_flows_take_datagrams() {
        let mut sockets = ClientSockets::default();
        assert!(sockets.listen(53, 7));
        assert!(!sockets.listen(53, 8));
        let asks = remote("10.0.0.9:4000");
        assert_eq!(sockets.accept(53, asks), Some(7));
        assert_eq!(sockets.accept(53, asks), Some(7));
        assert_eq!(sockets.accept(54, asks), None);
        let flows = &sockets.flows;
        assert_eq!(
            (
                flows.new_udp,
                flows.lookup_ipv4,
                flows.found_ipv4,
                flows.new_no_cb
            ),
            (1, 3, 1, 1)
        );
        sockets.close(53, asks);
        assert_eq!(
            (sockets.flows.active_ipv4, sockets.flows.src_port_free),
            (0, 0)
        );
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        for text in ["10.0.0.9:4000", "[2001:db8::1]:53"] {
            let datagram = Datagram {
                port: 53,
                remote: remote(text),
                payload: b"payload",
            };
            assert_eq!(Datagram::decode(&datagram.encode()), Some(datagram));
        }
        assert_eq!(Datagram::decode(&[0; 20]), None);
    }
}
