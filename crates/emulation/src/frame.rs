//! Received frames: which protocol they are for, counted as the reference's parser counts.

use allosaur_packet::MacAddress;
use allosaur_packet::frame::{self as packet_frame, Fragment, Health, Layout, Network, Transport};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4View;

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
    /// It is for all clients of the namespace, and those of another [shard](crate::shards) get it too: there
    /// it is counted, whether it is for one of them or not.
    pub is_copy: bool,
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

/// The same without the other headers; and what is behind the tags: its type, and where it begins. `None`
/// when the frame ends before that.
#[inline]
pub(crate) fn tags_of(port: u16, bytes: &[u8]) -> Option<(NamespaceKey, EtherType, usize)> {
    let u16_at = |at: usize| {
        let number = bytes.get(at..)?.first_chunk().copied();
        number.map(u16::from_be_bytes)
    };
    let mut key = NamespaceKey {
        port,
        ..NamespaceKey::default()
    };
    let (mut at, mut ether_type) = (14, EtherType(u16_at(12)?));
    for tag in &mut key.tags {
        if !ether_type.is_vlan() {
            break;
        }
        *tag = Tag {
            tpid: ether_type.0,
            vlan: u16_at(at)? & 0x0fff,
        };
        ether_type = EtherType(u16_at(at + 2)?);
        at += 4;
    }
    Some((key, ether_type, at))
}

/// Finds the headers of a frame.
pub(crate) fn parse(bytes: &[u8]) -> Layout {
    packet_frame::parse(bytes)
}

crate::counters! {
    /// What the parser saw.
    pub(crate) struct ParserCounters: u64, "parser" {
        eapol_too_short: "errEAPolTooShort", "eap packets are too short", "pkts", Error;
        eapol_packets: "eapolPkts", "eapol packets", "pkts", Info;
        eapol_octets: "eapolBytes", "eapol bytes", "bytes", Info;
        internal: "errInternalHandler", "internal handler", "pkts", Error;
        error: "errParser", "parser error", "pkts", Error;
        arp_too_short: "errArpTooShort", "arp too short", "pkts", Error;
        icmpv4_too_short: "errIcmpv4TooShort", "icmpv4 too short", "pkts", Error;
        igmp_too_short: "errIgmpv4TooShort", "igmpv4 too short", "pkts", Error;
        tcp_too_short: "errTcpTooShort", "udp too short", "pkts", Error;
        udp_too_short: "errUdpTooShort", "udp too short", "pkts", Error;
        vlan_too_short: "errDot1qTooShort", "dot1q too short", "pkts", Error;
        too_many_vlans: "errToManyDot1q", "dot1q too long", "pkts", Error;
        ipv4_too_short: "errIPv4TooShort", "ipv4 too short", "pkts", Error;
        ipv4_header_too_short: "errIPv4HeaderTooShort", "ipv4 header too short", "pkts", Error;
        ipv4_checksum: "errIPv4cs", "ipv4 checksum error", "pkts", Error;
        tcp_checksum: "errTCP", "tcp packets", "pkts", Error;
        udp_checksum: "errUDP", "udp packets", "pkts", Error;
        arp_packets: "arpPkts", "arp packets", "pkts", Info;
        arp_octets: "arpBytes", "arp bytes", "bytes", Info;
        icmpv4_packets: "icmpPkts", "icmp packets", "pkts", Info;
        icmpv4_octets: "icmpBytes", "icmp bytes", "bytes", Info;
        igmp_packets: "igmpPkts", "igmp packets", "pkts", Info;
        igmp_octets: "igmpBytes", "igmp bytes", "bytes", Info;
        dhcp_packets: "dhcpPkts", "dhcp packets", "pkts", Info;
        dhcp_octets: "dhcpBytes", "dhcp bytes", "bytes", Info;
        dhcp_server_packets: "dhcpSrvPkts", "Dhcp server packets", "pkts", Info;
        dhcp_server_octets: "dhcpSrvBytes", "Dhcp server bytes", "bytes", Info;
        mdns_packets: "mDnsPkts", "mDns packets", "pkts", Info;
        mdns_octets: "mDnsBytes", "mDns bytes", "bytes", Info;
        tcp_packets: "tcpPkts", "tcp packets", "pkts", Info;
        tcp_octets: "tcpBytes", "tcp bytes", "bytes", Info;
        udp_packets: "udpPkts", "udp packets", "pkts", Info;
        udp_octets: "udpBytes", "udp bytes", "bytes", Info;
        ipv6_too_short: "errIPv6TooShort", "ipv6 too short", "pkts", Error;
        ipv6_hop_limit: "errIPv6HopLimitDrop", "ipv6 hop limit", "pkts", Error;
        ipv6_empty: "errIPv6Empty", "ipv6 no payload", "pkts", Error;
        icmpv6_too_short: "errIcmpv6TooShort", "icmpv6 too short", "pkts", Error;
        icmpv4_checksum: "errIcmpv4Cse", "Icmpv4 checksum error", "pkts", Error;
        icmpv6_checksum: "errIcmpv6Cse", "Icmpv6 checksum error", "pkts", Error;
        icmpv6_unsupported: "errIcmpv6Unsupported", "Icmpv6 unsupported type/code", "pkts", Error;
        icmpv6_packets: "Icmpv6Pkt", "Icmpv6 pkts", "pkts", Info;
        icmpv6_octets: "Icmpv6Bytes", "Icmpv6 bytes", "bytes", Info;
        ipv6_jumbo: "errIPv6OptJumbo", "Icmpv6 jumbo option is not supported ", "pkt", Error;
        ipv6_fragment: "errIPv6Fragment", "ipv6 fragment is not supported", "pkt", Error;
        ipv4_fragment: "errIPv4Fragment", "ipv4 fragment is not supported", "pkt", Error;
        unsupported: "errL3ProtoUnsupported", "L3 proto is not supported", "pkt", Error;
        too_short: "errPacketIsTooShort", "packet is too short for parsing", "pkt", Error;
    }
}

const EAPOL: EtherType = EtherType(0x888e);
const PPPOE_DISCOVERY: EtherType = EtherType(0x8863);
const PPPOE_SESSION: EtherType = EtherType(0x8864);
const IGMP: IpProtocol = IpProtocol(2);
/// Bytes of the header of EAP over LANs, and of IGMP's shortest message.
const EAPOL_BYTES: usize = 4;
const IGMP_BYTES: usize = 8;

/// What a frame is for, if it is whole and its checksums are right; else it is counted why not.
#[inline]
pub(crate) fn kind(
    bytes: &[u8],
    layout: &Layout,
    counters: &mut ParserCounters,
) -> Option<FrameKind> {
    let kind = count_kind(bytes, layout, counters);
    counters.error += u64::from(kind.is_none());
    kind
}

#[inline]
fn count_kind(bytes: &[u8], layout: &Layout, counters: &mut ParserCounters) -> Option<FrameKind> {
    let octets = bytes.len() as u64;
    match layout.ether_type {
        EtherType::ARP if layout.network == Network::Arp => {
            counters.arp_packets += 1;
            counters.arp_octets += octets;
            Some(FrameKind::Arp)
        }
        EtherType::IPV4 => ipv4(bytes, layout, counters),
        EtherType::IPV6 => ipv6(bytes, layout, counters),
        PPPOE_DISCOVERY | PPPOE_SESSION => Some(FrameKind::Pppoe),
        EAPOL if bytes.len() >= usize::from(layout.network_offset) + EAPOL_BYTES => {
            counters.eapol_packets += 1;
            counters.eapol_octets += octets;
            Some(FrameKind::Eapol)
        }
        _ => {
            *unsupported(bytes, layout, counters) += 1;
            None
        }
    }
}

/// The counter of a frame whose network header is nothing for us.
fn unsupported<'c>(bytes: &[u8], layout: &Layout, counters: &'c mut ParserCounters) -> &'c mut u64 {
    match layout.ether_type {
        _ if bytes.len() < 14 => &mut counters.too_short,
        EtherType::ARP => &mut counters.arp_too_short,
        EAPOL => &mut counters.eapol_too_short,
        other if other.is_vlan() && layout.vlan_count == 2 => &mut counters.too_many_vlans,
        other if other.is_vlan() => &mut counters.vlan_too_short,
        _ => &mut counters.unsupported,
    }
}

fn ipv4(bytes: &[u8], layout: &Layout, counters: &mut ParserCounters) -> Option<FrameKind> {
    let packet = &bytes[usize::from(layout.network_offset)..];
    let error = match layout.network {
        Network::Ipv4 if has_wrong_header(packet) => &mut counters.ipv4_checksum,
        Network::Ipv4 if layout.fragment != Fragment::No => &mut counters.ipv4_fragment,
        Network::Ipv4 if is_cut(layout) => &mut counters.ipv4_too_short,
        Network::Ipv4 => return transport(bytes, layout, counters),
        _ if layout.health == Health::Malformed => &mut counters.ipv4_header_too_short,
        _ => &mut counters.ipv4_too_short,
    };
    *error += 1;
    None
}

/// Whether the IP packet ends before its length field says.
fn is_cut(layout: &Layout) -> bool {
    layout.health == Health::Truncated && layout.transport != Transport::None
}

fn has_wrong_header(packet: &[u8]) -> bool {
    Ipv4View::new_checked(packet).is_ok_and(|view| !view.has_right_checksum())
}

fn ipv6(bytes: &[u8], layout: &Layout, counters: &mut ParserCounters) -> Option<FrameKind> {
    let packet = &bytes[usize::from(layout.network_offset)..];
    let error = match layout.network {
        Network::Ipv6 if layout.fragment != Fragment::No => &mut counters.ipv6_fragment,
        Network::Ipv6 if is_cut(layout) => &mut counters.ipv6_too_short,
        Network::Ipv6 if packet[4..6] == [0, 0] => &mut counters.ipv6_empty,
        Network::Ipv6 if packet[7] == 0 => &mut counters.ipv6_hop_limit,
        Network::Ipv6 => return transport(bytes, layout, counters),
        _ => &mut counters.ipv6_too_short,
    };
    *error += 1;
    None
}

/// What a packet is for, by what is behind its network header.
fn transport(bytes: &[u8], layout: &Layout, counters: &mut ParserCounters) -> Option<FrameKind> {
    let segment = layout.segment(bytes);
    let octets = bytes.len() as u64;
    let is_ipv4 = layout.network == Network::Ipv4;
    let (packets, all_octets, kind) = match layout.transport {
        Transport::Icmpv4 if Sum::of(segment).checksum() != 0 => {
            counters.icmpv4_checksum += 1;
            return None;
        }
        Transport::Icmpv4 => (
            &mut counters.icmpv4_packets,
            &mut counters.icmpv4_octets,
            FrameKind::Icmpv4,
        ),
        Transport::Icmpv6 => return icmpv6(bytes, layout, counters),
        Transport::Udp if is_udp_wrong(bytes, layout, segment) => {
            counters.udp_checksum += 1;
            return None;
        }
        Transport::Udp => udp(is_ipv4, segment, octets, counters),
        Transport::Tcp if sum(bytes, layout, segment).checksum() != 0 => {
            counters.tcp_checksum += 1;
            return None;
        }
        Transport::Tcp => (
            &mut counters.tcp_packets,
            &mut counters.tcp_octets,
            FrameKind::Transport,
        ),
        Transport::None if is_ipv4 && layout.protocol == IGMP && segment.len() >= IGMP_BYTES => (
            &mut counters.igmp_packets,
            &mut counters.igmp_octets,
            FrameKind::Igmp,
        ),
        Transport::None => {
            *short(is_ipv4, layout, counters) += 1;
            return None;
        }
    };
    *packets += 1;
    *all_octets += octets;
    Some(kind)
}

/// The counter of a packet whose transport header is not whole, or nothing for us.
fn short<'c>(is_ipv4: bool, layout: &Layout, counters: &'c mut ParserCounters) -> &'c mut u64 {
    match layout.protocol {
        IpProtocol::ICMPV4 if is_ipv4 => &mut counters.icmpv4_too_short,
        IGMP if is_ipv4 => &mut counters.igmp_too_short,
        IpProtocol::ICMPV6 if !is_ipv4 => &mut counters.icmpv6_too_short,
        IpProtocol::TCP => &mut counters.tcp_too_short,
        IpProtocol::UDP => &mut counters.udp_too_short,
        _ => &mut counters.unsupported,
    }
}

fn icmpv6(bytes: &[u8], layout: &Layout, counters: &mut ParserCounters) -> Option<FrameKind> {
    let segment = layout.segment(bytes);
    if sum(bytes, layout, segment).checksum() != 0 {
        counters.icmpv6_checksum += 1;
        return None;
    }
    if !matches!(segment[0], 1..=4 | 128..=136) {
        counters.icmpv6_unsupported += 1;
        return None;
    }
    counters.icmpv6_packets += 1;
    counters.icmpv6_octets += bytes.len() as u64;
    Some(FrameKind::Icmpv6)
}

/// The sum of a segment and its pseudo header.
fn sum(bytes: &[u8], layout: &Layout, segment: &[u8]) -> Sum {
    let packet = &bytes[usize::from(layout.network_offset)..];
    let addresses = match layout.network {
        Network::Ipv4 => &packet[12..20],
        _ => &packet[8..40],
    };
    let length = segment.len() as u32;
    Sum::of(addresses)
        .and_u32(length)
        .and_u16(u16::from(layout.protocol.0))
        .and(segment)
}

/// Whether the length or the checksum of a UDP datagram is wrong. Over IPv4, none is right.
fn is_udp_wrong(bytes: &[u8], layout: &Layout, segment: &[u8]) -> bool {
    let length = usize::from(u16::from_be_bytes([segment[4], segment[5]]));
    let has_none = segment[6..8] == [0, 0];
    !(8..=segment.len()).contains(&length)
        || !has_none && sum(bytes, layout, &segment[..length]).checksum() != 0
}

/// What a datagram is for. All of them count as UDP, some besides as what they are.
fn udp<'c>(
    is_ipv4: bool,
    segment: &[u8],
    octets: u64,
    counters: &'c mut ParserCounters,
) -> (&'c mut u64, &'c mut u64, FrameKind) {
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let kind = match (port(0), port(2)) {
        (_, 5353) => FrameKind::Mdns,
        (67, 68) if is_ipv4 => FrameKind::Dhcp,
        (67 | 68, 67) if is_ipv4 => FrameKind::DhcpServer,
        (547, 546) if !is_ipv4 => FrameKind::Dhcpv6,
        _ => FrameKind::Transport,
    };
    if kind != FrameKind::Transport {
        counters.udp_packets += 1;
        counters.udp_octets += octets;
    }
    let (packets, all_octets) = match kind {
        FrameKind::Mdns => (&mut counters.mdns_packets, &mut counters.mdns_octets),
        FrameKind::DhcpServer => (
            &mut counters.dhcp_server_packets,
            &mut counters.dhcp_server_octets,
        ),
        FrameKind::Dhcp | FrameKind::Dhcpv6 => {
            (&mut counters.dhcp_packets, &mut counters.dhcp_octets)
        }
        _ => (&mut counters.udp_packets, &mut counters.udp_octets),
    };
    (packets, all_octets, kind)
}
