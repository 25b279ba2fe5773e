//! ICMP messages about a packet of a flow (RFC 792, RFC 4443): which packet, and what became of it.

use std::net::IpAddr;

use allosaur_packet::frame::{Layout, Transport};
use allosaur_packet::icmp_quote::QuotedPacket;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::{self, Ipv6View};
use allosaur_packet::transport::tcp::HEADER_BYTES_MIN;

use super::Addresses;
use crate::flow::Protocol;
use crate::tcp::Seq;

const IPV6_BYTES: usize = ipv6::HEADER_BYTES;
/// No link of IPv6 has less (RFC 8200, section 5): who says so is not believed.
const IPV6_MTU_BYTES_MIN: u32 = 1280;
/// "Fragmentation needed and DF set" (RFC 792).
const TOO_BIG: u8 = 4;
/// What a router meant that did not say what fits: the next of these below the length of the packet
/// (RFC 1191, section 7.1, without those that nobody has any more).
const PLATEAUS: [u16; 6] = [8166, 4352, 2002, 1492, 1006, 508];

/// What a router or host says of a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Source, destination of the packet: who sent it is told.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// What it carried.
    pub protocol: Protocol,
    /// The first number of a TCP segment.
    pub seq: Seq,
    /// What became of it.
    pub fate: PacketFate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It was too long for a link on its way.
    TooBig {
        /// Bytes behind the headers of IP and TCP, without options, that fit.
        segment_bytes_max: u16,
    },
    /// Nobody takes it there: no such port, host or network, or a firewall forbids it.
    Unreachable,
}

/// The message in a frame, if it is such an error about a packet of TCP or UDP, and intact. A packet
/// with extension headers is none of a flow.
pub fn read_icmp_error(frame: &[u8], layout: &Layout) -> Option<IcmpError> {
    let quoted = QuotedPacket::read(frame, layout)?;
    let message = layout.segment(frame);
    let fate = match layout.transport {
        Transport::Icmpv4 => {
            let fate = fate_v4(message, &quoted)?;
            let view = Icmpv4View::new_checked(message).ok()?;
            view.has_right_checksum().then_some(fate)?
        }
        _ => {
            let fate = fate_v6(message)?;
            let network = frame.get(usize::from(layout.network_offset)..)?;
            let ip = Ipv6View::new_checked(network).ok()?;
            let bytes = message.len() as u32;
            let pseudo = pseudo_header_v6(ip.source(), ip.destination(), IpProtocol::ICMPV6, bytes);
            let view = Icmpv6View::new_checked(message).ok()?;
            view.has_right_checksum(pseudo).then_some(fate)?
        }
    };
    let addresses = match (quoted.source, quoted.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4(source, destination),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Addresses::V6(source, destination),
        _ => return None,
    };
    // Routers quote the first eight bytes behind the IP header at least.
    let &[_, _, _, _, seq @ ..] = quoted.segment.first_chunk::<8>()?;
    let (protocol, seq) = match quoted.protocol {
        IpProtocol::TCP => (Protocol::Tcp, u32::from_be_bytes(seq)),
        _ => (Protocol::Udp, 0),
    };
    Some(IcmpError {
        addresses,
        ports: quoted.ports()?,
        protocol,
        seq: Seq(seq),
        fate,
    })
}

fn fate_v4(message: &[u8], quoted: &QuotedPacket<'_>) -> Option<PacketFate> {
    let Ok(Icmpv4Header::DestinationUnreachable {
        code,
        next_hop_mtu_bytes,
    }) = Icmpv4Header::parse(message)
    else {
        return None;
    };
    Some(match (code, next_hop_mtu_bytes) {
        (TOO_BIG, 0) => {
            let is_less = |bytes: &u16| usize::from(*bytes) < quoted.total_bytes;
            too_big(PLATEAUS.into_iter().find(is_less)?, quoted.header_bytes)
        }
        (TOO_BIG, mtu_bytes) => too_big(mtu_bytes, quoted.header_bytes),
        _ => PacketFate::Unreachable,
    })
}

fn fate_v6(message: &[u8]) -> Option<PacketFate> {
    match Icmpv6Header::parse(message).ok()? {
        Icmpv6Header::PacketTooBig { mtu_bytes } if mtu_bytes >= IPV6_MTU_BYTES_MIN => {
            let mtu_bytes = mtu_bytes.min(u32::from(u16::MAX)) as u16;
            Some(too_big(mtu_bytes, IPV6_BYTES))
        }
        Icmpv6Header::DestinationUnreachable { .. } => Some(PacketFate::Unreachable),
        _ => None,
    }
}

fn too_big(mtu_bytes: u16, header_bytes: usize) -> PacketFate {
    let headers = (header_bytes + HEADER_BYTES_MIN) as u16;
    PacketFate::TooBig {
        segment_bytes_max: mtu_bytes.saturating_sub(headers),
    }
}
