//! One node: its addresses and names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use allosaur_netdev::netlink_batch::InterfaceAddress;

use crate::namespace::NetworkNamespace;

/// The prefix of an address that is alone: others of its network are reached by the gateway.
const ALONE_V4: u8 = 32;
/// The prefix of an IPv6 network.
const NETWORK_V6: u8 = 64;

/// Which namespace a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePlacement<'n> {
    /// One of its own.
    Own,
    /// One of its own, which stays when all nodes are removed: the port's own addresses are in it.
    Port,
    /// A shared one, by its name.
    Shared(&'n str),
    /// The one with BIRD.
    Bird,
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxNode {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The namespace that it is in.
    pub namespace: String,
    /// Whether that was made for it alone.
    pub is_alone: bool,
    /// Whether it is the one with BIRD.
    pub is_bird: bool,
    /// Whether it is the port itself, as a host of its network.
    pub is_port: bool,
    /// Its interface.
    pub inner_name: String,
    /// The number of its interface in its namespace.
    pub inner_index: u32,
    /// The other end of it, in the outer namespace.
    pub outer_name: String,
    /// The number of that in the outer namespace.
    pub outer_index: u32,
    /// Its address for IPv4.
    pub ipv4: Option<NodeIpv4>,
    /// Its addresses for IPv6; none when it is off.
    pub ipv6: Option<NodeIpv6>,
}

/// An address for IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIpv4 {
    /// The address.
    pub address: Ipv4Addr,
    /// The prefix of its network, where it has one.
    pub subnet: Option<u8>,
    /// The gateway of the node, where its namespace is its own.
    pub gateway: Option<Ipv4Addr>,
}

impl LinuxNode {
    /// The namespace that it is in.
    pub fn network_namespace(&self) -> NetworkNamespace {
        NetworkNamespace::named(&self.namespace)
    }
}

impl NodeIpv4 {
    pub(crate) fn interface_address(&self) -> InterfaceAddress {
        InterfaceAddress {
            ip: IpAddr::V4(self.address),
            prefix_bits: self.subnet.unwrap_or(ALONE_V4),
        }
    }
}

/// The addresses for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIpv6 {
    /// One besides the link-local one.
    pub address: Option<Ipv6Addr>,
    /// The prefix of its network, where it was given.
    pub subnet: Option<u8>,
}

impl NodeIpv6 {
    pub(crate) fn interface_addresses(
        &self,
        mac: [u8; 6],
    ) -> impl Iterator<Item = InterfaceAddress> {
        let of = |ip, prefix_bits| InterfaceAddress {
            ip: IpAddr::V6(ip),
            prefix_bits,
        };
        let own = self.address.filter(|own| *own != link_local(mac));
        let own = own.map(|own| of(own, self.subnet.unwrap_or(NETWORK_V6)));
        [Some(of(link_local(mac), NETWORK_V6)), own]
            .into_iter()
            .flatten()
    }
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
pub fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let tail = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    let word = |i: usize| u16::from_be_bytes([tail[i], tail[i + 1]]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, word(0), word(2), word(4), word(6))
}
