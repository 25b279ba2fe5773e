//! Received frames: which protocol they are for, counted as the reference's parser counts.

use allosaur_packet::MacAddress;
use allosaur_packet::frame::{self as packet_frame, Layout, Network, Transport};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::ip_protocol::IpProtocol;

use crate::namespace::{NamespaceKey, Tag};

/// What a frame is for. A plugin says in its [`Spec`](crate::plugin::Spec) which kinds it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// EAP over LANs (802.1X).
    Eapol,
    /// ARP.
    Arp,
    /// PPPoE, discovery and session.
    Pppoe,
    /// ICMP over IPv4.
    Icmpv4,
    /// IGMP.
    Igmp,
    /// ICMP over IPv6, neighbor discovery and MLD with it.
    Icmpv6,
    /// UDP over IPv4 or IPv6 to or from port 5353.
    Mdns,
    /// UDP over IPv4 from port 67 to 68.
    Dhcp,
    /// UDP over IPv4 from port 67 or 68 to 67.
    DhcpServer,
    /// UDP over IPv6 from port 547 to 546.
    Dhcpv6,
    /// Any other UDP and TCP.
    Transport,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = FrameKind::Transport as usize + 1;

/// A received frame, and where its headers are.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    /// All of it.
    pub bytes: &'f [u8],
    /// Where its headers are.
    pub layout: &'f Layout,
    /// What it is for.
    pub kind: FrameKind,
}

impl<'f> Frame<'f> {
    /// The Ethernet address that it was sent to.
    #[inline]
    pub fn destination(&self) -> MacAddress {
        mac_at(self.bytes, 0)
    }

    /// The Ethernet address that it came from.
    #[inline]
    pub fn source(&self) -> MacAddress {
        mac_at(self.bytes, 6)
    }

    /// From the network header (or what follows the EtherType) to the end of the packet.
    #[inline]
    pub fn packet(&self) -> &'f [u8] {
        let (from, to) = (self.layout.network_offset, self.layout.end_offset);
        &self.bytes[usize::from(from)..usize::from(to)]
    }

    /// From the transport header to the end of the packet.
    #[inline]
    pub fn segment(&self) -> &'f [u8] {
        self.layout.segment(self.bytes)
    }

    /// What is behind the transport header.
    #[inline]
    pub fn payload(&self) -> &'f [u8] {
        self.layout.payload(self.bytes)
    }
}

fn mac_at(bytes: &[u8], at: usize) -> MacAddress {
    let octets = bytes
        .get(at..at + 6)
        .and_then(|octets| octets.try_into().ok());
    MacAddress(octets.unwrap_or_default())
}

/// The namespace that a frame is in, by its port and tags.
pub(crate) fn key(port: u16, bytes: &[u8], layout: &Layout) -> NamespaceKey {
    let mut tags = [Tag::default(); 2];
    for (at, (tag, control)) in tags.iter_mut().zip(layout.vlans()).enumerate() {
        let from = 12 + 4 * at;
        *tag = Tag {
            tpid: u16::from_be_bytes([bytes[from], bytes[from + 1]]),
            vlan: control & 0x0fff,
        };
    }
    NamespaceKey { port, tags }
}

/// Finds the headers of a frame.
pub(crate) fn parse(bytes: &[u8]) -> Layout {
    packet_frame::parse(bytes)
}

/// What a frame is for.
pub(crate) fn kind(bytes: &[u8], layout: &Layout) -> Option<FrameKind> {
    match layout.ether_type {
        EtherType(0x888e) => return Some(FrameKind::Eapol),
        EtherType(0x8863 | 0x8864) => return Some(FrameKind::Pppoe),
        EtherType::ARP => return (layout.network == Network::Arp).then_some(FrameKind::Arp),
        _ => {}
    }
    match (layout.network, layout.transport) {
        (Network::Ipv4, Transport::Icmpv4) => Some(FrameKind::Icmpv4),
        (Network::Ipv6, Transport::Icmpv6) => Some(FrameKind::Icmpv6),
        (Network::Ipv4, Transport::None) if layout.protocol == IpProtocol(2) => {
            Some(FrameKind::Igmp)
        }
        (_, Transport::Udp) => Some(udp(layout.network, layout.segment(bytes))),
        (_, Transport::Tcp) => Some(FrameKind::Transport),
        _ => None,
    }
}

fn udp(network: Network, segment: &[u8]) -> FrameKind {
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    match (network, port(0), port(2)) {
        (_, _, 5353) => FrameKind::Mdns,
        (Network::Ipv4, 67, 68) => FrameKind::Dhcp,
        (Network::Ipv4, 67 | 68, 67) => FrameKind::DhcpServer,
        (Network::Ipv6, 547, 546) => FrameKind::Dhcpv6,
        _ => FrameKind::Transport,
    }
}
