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

/// A TCP segment was too long for a link on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Source, destination of the packet: who sent it is told.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// The first number of its segment.
    pub seq: Seq,
    /// Bytes behind the headers of IP and TCP, without options, that fit.
    pub segment_bytes_max: u16,
}

/// The message in a frame, if it says that a packet was too big, and is intact.
pub fn read_too_big(frame: &[u8], layout: &Layout) -> Option<TooBig> {
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

fn read_v4(message: &[u8]) -> Option<TooBig> {
    let Ok(Icmpv4Header::DestinationUnreachable {
        code: TOO_BIG,
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
    let mtu_bytes = match next_hop_mtu_bytes {
        0 => PLATEAUS.into_iter().find(|bytes| *bytes < total_bytes)?,
        bytes => bytes,
    };
    let address = |at: usize| Some(Ipv4Addr::from(*header[at..].first_chunk::<4>()?));
    about(
        Addresses::V4(address(12)?, address(16)?),
        IpProtocol(header[9]),
        quoted.get(header_bytes..)?,
        mtu_bytes.saturating_sub(header_bytes as u16),
    )
}

/// A packet with extension headers is none of a flow.
fn read_v6(message: &[u8]) -> Option<TooBig> {
    let Ok(Icmpv6Header::PacketTooBig { mtu_bytes }) = Icmpv6Header::parse(message) else {
        return None;
    };
    if mtu_bytes < IPV6_MTU_BYTES_MIN {
        return None;
    }
    let quoted = message.get(ICMP_BYTES..)?;
    let header = quoted.get(..IPV6_BYTES)?;
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    let room_bytes = mtu_bytes.min(u32::from(u16::MAX)) as u16 - IPV6_BYTES as u16;
    about(
        Addresses::V6(address(8)?, address(24)?),
        IpProtocol(header[6]),
        &quoted[IPV6_BYTES..],
        room_bytes,
    )
}

/// Of the packet that is quoted: the first eight bytes behind its IP header are there.
fn about(
    addresses: Addresses,
    protocol: IpProtocol,
    transport: &[u8],
    room_bytes: u16,
) -> Option<TooBig> {
    let first: &[u8; 8] = transport.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([first[at], first[at + 1]]);
    (protocol == IpProtocol::TCP).then(|| TooBig {
        addresses,
        ports: (half(0), half(2)),
        seq: Seq(u32::from(half(4)) << 16 | u32::from(half(6))),
        segment_bytes_max: room_bytes.saturating_sub(HEADER_BYTES_MIN as u16),
    })
}
