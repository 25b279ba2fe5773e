//! By which rule the frames of a port are shared out: which share one belongs to, in software.

use std::net::IpAddr;

use allosaur_packet::frame::{self, Fragment, Layout, Network, Transport};
use allosaur_packet::icmp_quote::QuotedPacket;
use allosaur_packet::transport::vxlan;

/// An odd number whose bits look random: 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// By which rule the frames of a port are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By flow, evenly.
    ByFlow,
    /// By the port that TCP and UDP came from: share `port % shares`.
    BySourcePort,
    /// By the port that TCP and UDP go to.
    ByDestinationPort,
}

impl Sharing {
    /// The share of a frame, of so many. What has no flow, or no port, belongs to share 0. By port, a frame in
    /// VXLAN belongs where the frame within it does.
    #[inline]
    pub fn share_of(self, frame: &[u8], shares: usize) -> usize {
        let place = match self {
            Sharing::ByFlow => return share_of(flow_hash(frame), shares),
            Sharing::BySourcePort => 0,
            Sharing::ByDestinationPort => 1,
        };
        let layout = frame::parse(frame);
        let (frame, layout) = match vxlan::inner_frame(frame, &layout) {
            Some(inner) => (inner, frame::parse(inner)),
            None => (frame, layout),
        };
        let port = match quoted(frame, &layout) {
            // It went the other way.
            Some((_, ports)) => ports[1 - place],
            None => ports(frame, &layout)[place],
        };
        (port >> 32) as usize % shares
    }
}

/// A number for the flow of a frame, or 0 where there is none.
///
/// All frames of a TCP or UDP connection, of both directions, have the same, and so has a router's
/// word about one of its packets (an error of ICMP), which concerns it; frames of other IP protocols,
/// and fragments, go by their addresses alone. Tags of VLANs do not matter. What is no IP
/// packet has none.
#[inline]
pub fn flow_hash(frame: &[u8]) -> u64 {
    let layout = frame::parse(frame);
    if let Some((packet, ports)) = quoted(frame, &layout) {
        let ends = [packet.source, packet.destination].map(|address| match address {
            IpAddr::V4(address) => narrow(address.octets()),
            IpAddr::V6(address) => wide(address.octets()),
        });
        return hash_of(ends, ports, packet.protocol.0);
    }
    let at = usize::from(layout.network_offset);
    let ends = match layout.network {
        Network::Ipv4 => addresses::<4>(frame, at + 12).map(|ends| ends.map(narrow)),
        Network::Ipv6 => addresses::<16>(frame, at + 8).map(|ends| ends.map(wide)),
        Network::Arp | Network::None => return 0,
    };
    let Some(ends) = ends else {
        return 0;
    };
    hash_of(ends, ports(frame, &layout), layout.protocol.0)
}

#[inline]
fn hash_of([source, destination]: [u64; 2], [from, to]: [u64; 2], protocol: u8) -> u64 {
    // Adding makes both directions the same; mixing before it keeps pairs apart that grow together,
    // such as 16.0.0.1 to 48.0.0.1 and 16.0.0.2 to 48.0.0.2.
    let sum = mix(source ^ from).wrapping_add(mix(destination ^ to));
    mix(sum ^ u64::from(protocol)) | 1
}

/// The share of a flow, of so many. What has no flow belongs to share 0.
#[inline]
pub fn share_of(flow_hash: u64, shares: usize) -> usize {
    (((flow_hash >> 32) * shares as u64) >> 32) as usize
}

/// The packet of TCP or UDP that an error of ICMP quotes, and its ports as [`ports`] has them.
#[inline]
fn quoted<'f>(frame: &'f [u8], layout: &Layout) -> Option<(QuotedPacket<'f>, [u64; 2])> {
    let quoted = QuotedPacket::read(frame, layout)?;
    let (source, destination) = quoted.ports()?;
    Some((quoted, [source, destination].map(above_address)))
}

/// The two addresses of a packet.
#[inline]
fn addresses<const N: usize>(frame: &[u8], at: usize) -> Option<[[u8; N]; 2]> {
    let source = frame.get(at..at + N)?.try_into().ok()?;
    let destination = frame.get(at + N..at + 2 * N)?.try_into().ok()?;
    Some([source, destination])
}

/// The two ports of a packet, where each of its fragments would have them, above the bits of an
/// address of IPv4.
#[inline]
fn ports(frame: &[u8], layout: &Layout) -> [u64; 2] {
    let has_ports = matches!(layout.transport, Transport::Tcp | Transport::Udp);
    let at = usize::from(layout.transport_offset);
    match frame.get(at..at + 4) {
        Some(bytes) if has_ports && layout.fragment == Fragment::No => port_pair(bytes),
        _ => [0, 0],
    }
}

/// The ports that a header of TCP or UDP begins with.
#[inline]
fn port_pair(bytes: &[u8]) -> [u64; 2] {
    let port = |high, low| above_address(u16::from_be_bytes([high, low]));
    [port(bytes[0], bytes[1]), port(bytes[2], bytes[3])]
}

#[inline]
fn above_address(port: u16) -> u64 {
    u64::from(port) << 32
}

#[inline]
fn narrow(address: [u8; 4]) -> u64 {
    u64::from(u32::from_be_bytes(address))
}

#[inline]
fn wide(address: [u8; 16]) -> u64 {
    let number = u128::from_be_bytes(address);
    mix((number >> 64) as u64) ^ number as u64
}

/// Every bit of the result depends on all bits; no two numbers have the same result.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(SPREAD);
    let number = (number ^ (number >> 29)).wrapping_mul(SPREAD);
    number ^ (number >> 32)
}
