//! ICMP messages about a packet of a flow (RFC 792, RFC 4443): which packet, and what became of it.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::frame::{Fragment, Layout, Transport};
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::transport::tcp::HEADER_BYTES_MIN;

use super::Addresses;
use crate::flow::Protocol;
use crate::tcp::Seq;

const ICMP_BYTES: usize = 8;
const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;
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

/// The message in a frame, if it is such an error, and intact.
pub fn read_icmp_error(frame: &[u8], layout: &Layout) -> Option<IcmpError> {
    if layout.fragment != Fragment::No {
        return None;
    }
    let message = layout.segment(frame);
    match layout.transport {
        Transport::Icmpv4 => read_v4(message),
        Transport::Icmpv6 => {
            let network = frame.get(usize::from(layout.network_offset)..)?;
            let view = Ipv6View::new_checked(network).ok()?;
            let bytes = message.len() as u32;
            let pseudo =
                pseudo_header_v6(view.source(), view.destination(), IpProtocol::ICMPV6, bytes);
            Icmpv6View::new_checked(message)
                .ok()?
                .has_right_checksum(pseudo)
                .then_some(())?;
            read_v6(message)
        }
        _ => None,
    }
}

fn read_v4(message: &[u8]) -> Option<IcmpError> {
    let Ok(Icmpv4Header::DestinationUnreachable {
        code,
        next_hop_mtu_bytes,
    }) = Icmpv4Header::parse(message)
    else {
        return None;
    };
    Icmpv4View::new_checked(message)
        .ok()?
        .has_right_checksum()
        .then_some(())?;
    let quoted = message.get(ICMP_BYTES..)?;
    let header = quoted.get(..IPV4_BYTES_MIN)?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    if header[0] >> 4 != 4 || header_bytes < IPV4_BYTES_MIN || !is_first {
        return None;
    }
    let total_bytes = u16::from_be_bytes([header[2], header[3]]);
    let fate = match (code, next_hop_mtu_bytes) {
        (TOO_BIG, 0) => {
            let mtu_bytes = PLATEAUS.into_iter().find(|bytes| *bytes < total_bytes)?;
            too_big(mtu_bytes, header_bytes)
        }
        (TOO_BIG, mtu_bytes) => too_big(mtu_bytes, header_bytes),
        _ => PacketFate::Unreachable,
    };
    let address = |at: usize| Some(Ipv4Addr::from(*header[at..].first_chunk::<4>()?));
    about(
        Addresses::V4(address(12)?, address(16)?),
        IpProtocol(header[9]),
        quoted.get(header_bytes..)?,
        fate,
    )
}

/// A packet with extension headers is none of a flow.
fn read_v6(message: &[u8]) -> Option<IcmpError> {
    let fate = match Icmpv6Header::parse(message).ok()? {
        Icmpv6Header::PacketTooBig { mtu_bytes } if mtu_bytes >= IPV6_MTU_BYTES_MIN => {
            too_big(mtu_bytes.min(u32::from(u16::MAX)) as u16, IPV6_BYTES)
        }
        Icmpv6Header::DestinationUnreachable { .. } => PacketFate::Unreachable,
        _ => return None,
    };
    let quoted = message.get(ICMP_BYTES..)?;
    let header = quoted.get(..IPV6_BYTES)?;
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    about(
        Addresses::V6(address(8)?, address(24)?),
        IpProtocol(header[6]),
        &quoted[IPV6_BYTES..],
        fate,
    )
}

fn too_big(mtu_bytes: u16, header_bytes: usize) -> PacketFate {
    let headers = header_bytes as u16 + HEADER_BYTES_MIN as u16;
    PacketFate::TooBig {
        segment_bytes_max: mtu_bytes.saturating_sub(headers),
    }
}

/// Of the packet that is quoted: the first eight bytes behind its IP header are there.
fn about(
    addresses: Addresses,
    protocol: IpProtocol,
    transport: &[u8],
    fate: PacketFate,
) -> Option<IcmpError> {
    let first: &[u8; 8] = transport.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([first[at], first[at + 1]]);
    let (protocol, seq) = match protocol {
        IpProtocol::TCP => (Protocol::Tcp, u32::from(half(4)) << 16 | u32::from(half(6))),
        IpProtocol::UDP => (Protocol::Udp, 0),
        _ => return None,
    };
    Some(IcmpError {
        addresses,
        ports: (half(0), half(2)),
        protocol,
        seq: Seq(seq),
        fate,
    })
}
