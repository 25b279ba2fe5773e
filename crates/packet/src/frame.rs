//! The one-pass parser of a whole frame: which headers there are, and where.
//!
//! Called once for each received frame, so there is no allocation and the answer is a small `Copy`
//! struct.

use std::fmt;

use crate::link::ethernet::{self, EtherType};
use crate::link::vlan;
use crate::network::ip_protocol::IpProtocol;
use crate::network::ipv6_extension::{self, WalkEnd};
use crate::network::{ipv4, ipv6};

pub use crate::network::ipv6_extension::Fragment;

/// Tags that are looked into; a frame with more has the tag's type as its `ether_type`.
pub const VLAN_TAGS_MAX: usize = 2;

const VLAN_BYTES: usize = vlan::HEADER_BYTES;
const ARP_BYTES: usize = 28;
const IPV4_BYTES_MIN: usize = ipv4::HEADER_BYTES_MIN;
const IPV6_BYTES: usize = ipv6::HEADER_BYTES;
const TCP_BYTES_MIN: usize = 20;
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;

/// The kind of the outermost header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// There are not even 14 bytes.
    #[default]
    None,
    /// Ethernet II.
    Ethernet,
    /// IEEE 802.3 with a length in place of the type.
    Ieee8023,
}

/// The kind of the network header. Only said when the header is there as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// None was found: another type, or the frame ends too early.
    #[default]
    None,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The kind of the transport header. Only said when the header is there as a whole, options
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// None was found: another protocol, a later fragment, or the frame ends too early.
    #[default]
    None,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP for IPv4.
    Icmpv4,
    /// ICMP for IPv6.
    Icmpv6,
}

/// Whether the headers could be followed to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Everything is there.
    #[default]
    Whole,
    /// The frame ends before a header, or the IP packet in it, does.
    Truncated,
    /// A length field contradicts itself.
    Malformed,
}

/// What a frame consists of.
///
/// The offsets never point past the frame and never go down from one to the next. A header that
/// is not there has the offset where parsing stopped; its kind is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The outermost header.
    pub link: Link,
    /// The network header.
    pub network: Network,
    /// The transport header.
    pub transport: Transport,
    /// Whether this is a part of a larger IP datagram.
    pub fragment: Fragment,
    /// Whether the headers could be followed to their end.
    pub health: Health,
    /// How many of `vlan_tags` there are.
    pub vlan_count: u8,
    /// The tag control information of the tags, outer first.
    pub vlan_tags: [u16; VLAN_TAGS_MAX],
    /// What lies at `network_offset`, after the tags.
    pub ether_type: EtherType,
    /// What lies at `transport_offset` of an IP packet, after the extension headers.
    pub protocol: IpProtocol,
    /// Where the network header starts.
    pub network_offset: u16,
    /// Where the transport header starts.
    pub transport_offset: u16,
    /// Where the payload starts.
    pub payload_offset: u16,
    /// Where the network packet ends as its length field says; padding follows. The end of the
    /// frame when that comes first, or when there is no length field.
    pub end_offset: u16,
}

impl Layout {
    /// The tag control information of the tags, outer first.
    #[must_use]
    pub fn vlans(&self) -> &[u16] {
        &self.vlan_tags[..usize::from(self.vlan_count)]
    }

    /// The payload in the frame that this layout was made of.
    #[must_use]
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[usize::from(self.payload_offset)..usize::from(self.end_offset)]
    }

    /// The transport header and its payload in the frame that this layout was made of.
    #[must_use]
    pub fn segment<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[usize::from(self.transport_offset)..usize::from(self.end_offset)]
    }
}

/// Finds the headers of a frame. A frame above 65,535 bytes is looked at up to there.
#[must_use]
pub fn parse(frame: &[u8]) -> Layout {
    match parse_plain(frame) {
        Some(layout) => layout,
        None => parse_any(frame),
    }
}

/// The fast path for what most frames are: TCP in a whole IPv4 packet without options or tags.
#[inline]
fn parse_plain(frame: &[u8]) -> Option<Layout> {
    const NETWORK: usize = ethernet::HEADER_BYTES;
    const TRANSPORT: usize = NETWORK + IPV4_BYTES_MIN;
    let headers: &[u8; TRANSPORT + TCP_BYTES_MIN] = frame.first_chunk()?;
    let is_plain = headers[12..15] == [0x08, 0x00, 0x45]
        && headers[NETWORK + 6] & 0x3f == 0
        && headers[NETWORK + 7] == 0
        && headers[NETWORK + 9] == IpProtocol::TCP.0;
    let total_bytes = u16::from_be_bytes([headers[NETWORK + 2], headers[NETWORK + 3]]);
    let end = NETWORK + usize::from(total_bytes);
    let header_bytes = 4 * usize::from(headers[TRANSPORT + 12] >> 4);
    let payload = TRANSPORT + header_bytes;
    let fits = header_bytes >= TCP_BYTES_MIN && payload <= end && end <= frame.len();
    (is_plain && fits && frame.len() <= usize::from(u16::MAX)).then(|| Layout {
        link: Link::Ethernet,
        network: Network::Ipv4,
        transport: Transport::Tcp,
        ether_type: EtherType::IPV4,
        protocol: IpProtocol::TCP,
        network_offset: offset(NETWORK),
        transport_offset: offset(TRANSPORT),
        payload_offset: offset(payload),
        end_offset: offset(end),
        ..Layout::default()
    })
}

fn parse_any(frame: &[u8]) -> Layout {
    let frame = &frame[..frame.len().min(usize::from(u16::MAX))];
    let mut layout = Layout {
        end_offset: offset(frame.len()),
        ..Layout::default()
    };
    let Some(at) = parse_link(frame, &mut layout) else {
        layout.health = Health::Truncated;
        return layout;
    };
    parse_network(frame, at, &mut layout);
    layout
}

/// Finds the headers of the packet at `at` of a frame, where that is behind a tunnel's prefix. The
/// link is not looked at. A frame that ends before is truncated.
#[must_use]
pub fn parse_packet(frame: &[u8], at: usize, ether_type: EtherType) -> Layout {
    let frame = &frame[..frame.len().min(usize::from(u16::MAX))];
    let mut layout = Layout {
        ether_type,
        end_offset: offset(frame.len()),
        ..Layout::default()
    };
    parse_network(frame, at.min(frame.len()), &mut layout);
    layout
}

/// The network header at `at`, and what follows it.
fn parse_network(frame: &[u8], at: usize, layout: &mut Layout) {
    layout.stop_at(at);
    match layout.ether_type {
        EtherType::IPV4 => parse_ipv4(frame, at, layout),
        EtherType::IPV6 => parse_ipv6(frame, at, layout),
        EtherType::ARP => parse_arp(frame, at, layout),
        _ => {}
    }
}

/// Ethernet and its tags; the offset of what follows.
fn parse_link(frame: &[u8], layout: &mut Layout) -> Option<usize> {
    let mut at = ethernet::HEADER_BYTES;
    let mut ether_type = EtherType(u16_at(frame, at - 2)?);
    layout.link = if ether_type.is_length() {
        Link::Ieee8023
    } else {
        Link::Ethernet
    };
    layout.ether_type = ether_type;
    while ether_type.is_vlan() && usize::from(layout.vlan_count) < VLAN_TAGS_MAX {
        layout.stop_at(at);
        ether_type = EtherType(u16_at(frame, at + 2)?);
        layout.vlan_tags[usize::from(layout.vlan_count)] = u16_at(frame, at)?;
        layout.vlan_count += 1;
        layout.ether_type = ether_type;
        at += VLAN_BYTES;
    }
    Some(at)
}

fn parse_arp(frame: &[u8], at: usize, layout: &mut Layout) {
    let Some(bytes) = frame.get(at..at + ARP_BYTES) else {
        layout.health = Health::Truncated;
        return;
    };
    // Hardware Ethernet, protocol IPv4, addresses of 6 and 4 bytes; others have other lengths.
    if bytes[..6] == [0, 1, 8, 0, 6, 4] {
        layout.network = Network::Arp;
        layout.transport_offset = offset(at + ARP_BYTES);
        layout.payload_offset = layout.transport_offset;
    }
}

fn parse_ipv4(frame: &[u8], at: usize, layout: &mut Layout) {
    let Some(header) = frame.get(at..at + IPV4_BYTES_MIN) else {
        layout.health = Health::Truncated;
        return;
    };
    let header_bytes = 4 * usize::from(header[0] & 0xf);
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || header_bytes < IPV4_BYTES_MIN || total_bytes < header_bytes {
        layout.health = Health::Malformed;
        return;
    }
    let end = layout.end_network(frame, at + total_bytes);
    if at + header_bytes > end {
        return;
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    layout.network = Network::Ipv4;
    layout.fragment = Fragment::from_parts(fragment & 0x1fff, fragment & 0x2000 != 0);
    layout.protocol = IpProtocol(header[9]);
    parse_transport(frame, at + header_bytes, end, layout);
}

fn parse_ipv6(frame: &[u8], at: usize, layout: &mut Layout) {
    let Some(header) = frame.get(at..at + IPV6_BYTES) else {
        layout.health = Health::Truncated;
        return;
    };
    if header[0] >> 4 != 6 {
        layout.health = Health::Malformed;
        return;
    }
    let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let at = at + IPV6_BYTES;
    let end = layout.end_network(frame, at + payload_bytes);
    let walk = ipv6_extension::walk(IpProtocol(header[6]), &frame[at..end]);
    layout.network = Network::Ipv6;
    layout.fragment = walk.fragment;
    layout.protocol = walk.protocol;
    let at = at + walk.offset_bytes;
    match walk.end {
        WalkEnd::Upper => parse_transport(frame, at, end, layout),
        WalkEnd::Short => layout.stop_short(at),
        WalkEnd::TooMany => {
            layout.stop_transport(at);
            layout.health = Health::Malformed;
        }
    }
}

/// The transport header between `at` and `end`.
fn parse_transport(frame: &[u8], at: usize, end: usize, layout: &mut Layout) {
    layout.stop_transport(at);
    if layout.fragment == Fragment::Later {
        return;
    }
    let bytes = &frame[at..end];
    let (kind, header_bytes) = match (layout.protocol, layout.network) {
        (IpProtocol::TCP, _) => (Transport::Tcp, tcp_header_bytes(bytes)),
        (IpProtocol::UDP, _) => (Transport::Udp, UDP_BYTES),
        (IpProtocol::ICMPV4, Network::Ipv4) => (Transport::Icmpv4, ICMP_BYTES),
        (IpProtocol::ICMPV6, Network::Ipv6) => (Transport::Icmpv6, ICMP_BYTES),
        _ => return,
    };
    if header_bytes > bytes.len() {
        layout.stop_short(at);
    } else if kind == Transport::Tcp && header_bytes < TCP_BYTES_MIN {
        layout.health = Health::Malformed;
    } else {
        layout.transport = kind;
        layout.payload_offset = offset(at + header_bytes);
    }
}

/// What the data offset says, or the least when it is not there.
fn tcp_header_bytes(bytes: &[u8]) -> usize {
    bytes
        .get(12)
        .map_or(TCP_BYTES_MIN, |&byte| 4 * usize::from(byte >> 4))
}

impl Layout {
    /// Nothing is known from `at` on.
    fn stop_at(&mut self, at: usize) {
        self.network_offset = offset(at);
        self.stop_transport(at);
    }

    /// Nothing is known behind the network header, which ends at `at`.
    fn stop_transport(&mut self, at: usize) {
        self.transport_offset = offset(at);
        self.payload_offset = offset(at);
    }

    /// A header at `at` is longer than the packet: cut off with it, or contradicting its length.
    fn stop_short(&mut self, at: usize) {
        self.stop_transport(at);
        if self.health == Health::Whole {
            self.health = Health::Malformed;
        }
    }

    /// Notes where the packet says it ends; the end of what is there of it.
    fn end_network(&mut self, frame: &[u8], end: usize) -> usize {
        if end > frame.len() {
            self.health = Health::Truncated;
        }
        let end = end.min(frame.len());
        self.end_offset = offset(end);
        end
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.link)?;
        for tag in self.vlans() {
            write!(f, " / vlan {}", tag & 0x0fff)?;
        }
        match self.network {
            Network::None => write!(f, " / {}", self.ether_type)?,
            network => write!(f, " / {network:?} @{}", self.network_offset)?,
        }
        match (self.transport, self.network) {
            (Transport::None, Network::Ipv4 | Network::Ipv6) => write!(f, " / {}", self.protocol)?,
            (Transport::None, _) => {}
            (transport, _) => write!(f, " / {transport:?} @{}", self.transport_offset)?,
        }
        write!(f, " / payload {}..{}", self.payload_offset, self.end_offset)?;
        if self.fragment != Fragment::No {
            write!(f, ", {:?} fragment", self.fragment)?;
        }
        match self.health {
            Health::Whole => Ok(()),
            health => write!(f, ", {health:?}"),
        }
    }
}

/// The two bytes at an offset, when they are there.
fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame
        .get(at..at + 2)
        .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// An offset into a frame, which `parse` has cut to 65,535 bytes.
fn offset(at: usize) -> u16 {
    u16::try_from(at).expect("a frame is cut to 65,535 bytes before it is parsed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of Ethernet addresses and what is given.
    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }

    fn ipv4(total_bytes: u16, fragment: u16, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
        bytes.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[2..4].copy_from_slice(&total_bytes.to_be_bytes());
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes
    }

    fn ipv6(payload_bytes: u16, next: u8) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&payload_bytes.to_be_bytes());
        bytes[6] = next;
        bytes
    }

    #[test]
    fn udp_over_ipv4_with_padding() {
        let bytes = frame(&[&[8, 0], &ipv4(32, 0, 17), &[0; 12], &[0xee; 14]]);
        let layout = parse(&bytes);
        assert_eq!(layout.network, Network::Ipv4);
        assert_eq!(layout.transport, Transport::Udp);
        assert_eq!((layout.network_offset, layout.transport_offset), (14, 34));
        assert_eq!((layout.payload_offset, layout.end_offset), (42, 46));
        assert_eq!(
            (layout.payload(&bytes).len(), layout.segment(&bytes).len()),
            (4, 12)
        );
        assert_eq!(layout.health, Health::Whole);
        assert_eq!(
            layout.to_string(),
            "Ethernet / Ipv4 @14 / Udp @34 / payload 42..46"
        );
    }

    #[test]
    fn two_tags_then_tcp_with_options_over_ipv6() {
        let mut tcp = [0u8; 27];
        tcp[12] = 6 << 4;
        let tags = [0x88, 0xa8, 0x60, 100, 0x81, 0, 0, 200, 0x86, 0xdd];
        let bytes = frame(&[&tags, &ipv6(27, 6), &tcp]);
        let layout = parse(&bytes);
        assert_eq!(layout.vlans(), [0x6064, 200]);
        assert_eq!(layout.transport, Transport::Tcp);
        assert_eq!((layout.network_offset, layout.transport_offset), (22, 62));
        assert_eq!((layout.payload_offset, layout.end_offset), (86, 89));
    }

    #[test]
    fn a_third_tag_is_not_looked_into() {
        let tag: &[u8] = &[0x81, 0, 0, 1];
        let layout = parse(&frame(&[tag, tag, tag, &[8, 0], &ipv4(20, 0, 17)]));
        assert_eq!((layout.vlan_count, layout.ether_type), (2, EtherType::VLAN));
        assert_eq!((layout.network, layout.network_offset), (Network::None, 22));
    }

    #[test]
    fn extension_headers_are_passed() {
        let hop: &[u8] = &[43, 0, 1, 4, 0, 0, 0, 0];
        let routing: &[u8] = &[44, 0, 4, 0, 0, 0, 0, 0];
        let fragment: &[u8] = &[60, 0, 0, 1, 0, 0, 0, 7];
        let options: &[u8] = &[58, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let parts: &[&[u8]] = &[
            &[0x86, 0xdd],
            &ipv6(48, 0),
            hop,
            routing,
            fragment,
            options,
            &[128; 8],
        ];
        let layout = parse(&frame(parts));
        assert_eq!(layout.transport, Transport::Icmpv6);
        assert_eq!((layout.transport_offset, layout.payload_offset), (94, 102));
        assert_eq!(layout.fragment, Fragment::First);
    }

    #[test]
    fn a_later_fragment_has_no_transport() {
        let layout = parse(&frame(&[&[8, 0], &ipv4(60, 185, 17), &[0; 40]]));
        assert_eq!(
            (layout.fragment, layout.transport),
            (Fragment::Later, Transport::None)
        );
        assert_eq!(layout.protocol, IpProtocol::UDP);
        assert_eq!((layout.transport_offset, layout.payload_offset), (34, 34));

        let fragment: &[u8] = &[0, 0, 0, 8, 0, 0, 0, 7];
        let layout = parse(&frame(&[&[0x86, 0xdd], &ipv6(16, 44), fragment, &[0; 8]]));
        assert_eq!(
            (layout.fragment, layout.payload_offset),
            (Fragment::Later, 62)
        );
        assert_eq!(layout.health, Health::Whole);
    }

    #[test]
    fn too_many_extensions_are_given_up() {
        let headers = [60, 0, 0, 0, 0, 0, 0, 0].repeat(17);
        let layout = parse(&frame(&[&[0x86, 0xdd], &ipv6(136, 60), &headers]));
        assert_eq!(
            (layout.health, layout.transport_offset),
            (Health::Malformed, 54 + 128)
        );
    }

    #[test]
    fn every_cut_says_how_far_it_got() {
        let mut tcp = [0u8; 24];
        tcp[12] = 6 << 4;
        let bytes = frame(&[&[0x81, 0, 0, 5, 8, 0], &ipv4(48, 0, 6), &tcp, &[1; 4]]);
        for cut in 0..=bytes.len() {
            let layout = parse(&bytes[..cut]);
            assert_eq!(layout.link != Link::None, cut >= 14, "at {cut}");
            assert_eq!(layout.vlan_count == 1, cut >= 18, "at {cut}");
            assert_eq!(layout.network == Network::Ipv4, cut >= 38, "at {cut}");
            assert_eq!(layout.transport == Transport::Tcp, cut >= 62, "at {cut}");
            assert_eq!(
                layout.health == Health::Truncated,
                cut < bytes.len(),
                "at {cut}"
            );
        }
    }

    #[test]
    fn contradictions_are_malformed() {
        let check = |ip: &[u8], rest: &[u8], network| {
            let ether_type = if ip[0] >> 4 == 6 {
                [0x86, 0xdd]
            } else {
                [8, 0]
            };
            let layout = parse(&frame(&[&ether_type, ip, rest]));
            assert_eq!(
                (layout.health, layout.network),
                (Health::Malformed, network)
            );
            assert_eq!(layout.transport, Transport::None);
        };
        check(&ipv4(19, 0, 17), &[0; 30], Network::None);
        check(&ipv4(27, 0, 17), &[0; 30], Network::Ipv4);
        check(&ipv4(40, 0, 6), &[0; 30], Network::Ipv4);
        check(&ipv6(7, 17), &[0; 30], Network::Ipv6);
        check(&ipv6(7, 60), &[0; 30], Network::Ipv6);
        check(&[0x55; 20], &[0; 30], Network::None);
    }

    #[test]
    fn what_is_not_ip() {
        let layout = parse(&frame(&[&[8, 6], &[0, 1, 8, 0, 6, 4], &[0; 22], &[9; 18]]));
        assert_eq!((layout.network, layout.payload_offset), (Network::Arp, 42));
        assert_eq!(
            parse(&frame(&[&[8, 6], &[0, 6], &[0; 26]])).network,
            Network::None
        );
        let layout = parse(&frame(&[&[0, 46], &[0x42; 46]]));
        assert_eq!(
            (layout.link, layout.network),
            (Link::Ieee8023, Network::None)
        );
        assert_eq!((layout.payload_offset, layout.end_offset), (14, 60));
    }

    #[test]
    fn a_huge_frame_is_cut_to_what_offsets_can_say() {
        let layout = parse(&frame(&[&[8, 0], &ipv4(65_535, 0, 17), &[0; 70_000]]));
        assert_eq!(
            (layout.transport, layout.end_offset),
            (Transport::Udp, 65_535)
        );
        assert_eq!(layout.health, Health::Truncated);
    }

    /// Bytes that get far: random, but with types and versions that lead somewhere.
    fn likely_frame() -> impl Strategy<Value = Vec<u8>> {
        let chunk = prop_oneof![
            Just(vec![8, 0, 0x45]),
            Just(vec![0x86, 0xdd, 0x60]),
            Just(vec![0x81, 0, 0, 1]),
            Just(vec![0x88, 0xa8, 0, 1]),
            Just(ipv4(60, 0, 6)),
            Just(ipv6(60, 0)),
            Just(ipv6(60, 44)),
            Just(vec![43, 0, 0, 0, 0, 0, 0, 0]),
            prop::collection::vec(any::<u8>(), 0..24),
        ];
        prop::collection::vec(chunk, 0..8)
            .prop_map(|chunks| [vec![2; 12], chunks.concat()].concat())
    }

    proptest! {
        #[test]
        fn offsets_stay_in_the_frame_and_in_order(
            bytes in prop_oneof![likely_frame(), prop::collection::vec(any::<u8>(), 0..120)],
        ) {
            let layout = parse(&bytes);
            let offsets = [
                0,
                layout.network_offset,
                layout.transport_offset,
                layout.payload_offset,
                layout.end_offset,
            ];
            prop_assert!(offsets.is_sorted(), "{layout:?}");
            prop_assert!(usize::from(layout.end_offset) <= bytes.len());
            prop_assert!(layout.segment(&bytes).ends_with(layout.payload(&bytes)));
            let _ = layout.to_string();
        }
    }
}
