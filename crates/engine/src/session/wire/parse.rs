//! Reading a frame of TCP or UDP, or one whose data is apart and has a known sum.

use std::net::Ipv4Addr;

use allosaur_packet::frame::{self, Fragment, Health, Layout, Network, Transport};
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{self, Ipv4View};
use allosaur_packet::network::ipv6::{self, Ipv6View};
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::{self as tcp_header, TcpFlags, TcpView};
use allosaur_packet::transport::tcp_options::TcpOption;
use allosaur_packet::transport::udp::UdpView;

use super::{Addresses, CE, TIMESTAMPS_ONLY, TIMESTAMPS_ONLY_BYTES, pseudo_header};
use crate::tcp::{Segment, Seq};

const IPV4_BYTES_MIN: usize = ipv4::HEADER_BYTES_MIN;
const IPV6_BYTES: usize = ipv6::HEADER_BYTES;

/// What a frame brought.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram with so many bytes.
    Udp(u16),
}

/// A frame that may belong to a flow.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Source, destination.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// What it brought.
    pub arrival: Arrival,
}

impl Received {
    /// The data of its packet, which begins at `start` of the head of its frame where it is not apart.
    #[inline(always)]
    pub fn data<'f>(&self, frame: &SplitFrame<'f>, start: usize) -> &'f [u8] {
        if frame.is_split() {
            return frame.payload;
        }
        let bytes = match &self.arrival {
            Arrival::Tcp(segment) => segment.len as usize,
            Arrival::Udp(bytes) => usize::from(*bytes),
        };
        &frame.head[start..start + bytes]
    }
}

/// Why a frame belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither TCP nor UDP.
    Other,
    /// A part of an IPv4 packet.
    Fragment,
    /// Its lengths contradict each other, or it ends too early.
    Length,
    /// The checksum of its IPv4 header is wrong.
    NetworkChecksum,
    /// The checksum of TCP or UDP is wrong.
    TransportChecksum,
}

/// Reads a frame; `layout` is what the parser found in it.
///
/// # Errors
///
/// Why it belongs to no flow.
pub fn read(frame: &[u8], layout: &Layout) -> Result<Received, Refusal> {
    let network = usize::from(layout.network_offset);
    let is_plain = layout.transport_offset - layout.network_offset == IPV4_BYTES_MIN as u16
        && (layout.network, layout.transport) == (Network::Ipv4, Transport::Tcp)
        && (layout.fragment, layout.health) == (Fragment::No, Health::Whole);
    match frame.get(network..).and_then(<[u8]>::first_chunk) {
        Some(headers) if is_plain => read_plain(headers, frame, layout),
        _ => read_any(frame, layout),
    }
}

/// The short way for TCP in IPv4 without IP options: all is where it mostly is.
#[inline]
fn read_plain(
    headers: &[u8; IPV4_BYTES_MIN + tcp_header::HEADER_BYTES_MIN],
    frame: &[u8],
    layout: &Layout,
) -> Result<Received, Refusal> {
    let word = |at: usize| {
        let bytes = [
            headers[at],
            headers[at + 1],
            headers[at + 2],
            headers[at + 3],
        ];
        u32::from_be_bytes(bytes)
    };
    let ip = |n: usize| word(4 * n);
    let sum = (0..5).fold(Sum::default(), |sum, n| sum.and_u32(ip(n)));
    if sum.checksum() != 0 {
        return Err(Refusal::NetworkChecksum);
    }
    let segment = layout.segment(frame);
    let (from, to) = (Ipv4Addr::from(ip(3)), Ipv4Addr::from(ip(4)));
    let addresses = Addresses::V4(from, to);
    let sum = pseudo_header(addresses, IpProtocol::TCP, segment.len());
    if sum.and(segment).checksum() != 0 {
        return Err(Refusal::TransportChecksum);
    }
    let tcp = |n: usize| word(IPV4_BYTES_MIN + 4 * n);
    let header_bytes = layout.payload_offset - layout.transport_offset;
    let mut read = Segment {
        seq: Seq(tcp(1)),
        ack: Seq(tcp(2)),
        flags: TcpFlags((tcp(3) >> 16) as u8),
        window: tcp(3) as u16,
        len: (segment.len() - usize::from(header_bytes)) as u32,
        ecn: (ip(0) >> 16) as u8 & CE == CE,
        ..Segment::default()
    };
    if usize::from(header_bytes) > tcp_header::HEADER_BYTES_MIN {
        read_options(&TcpView::new_unchecked(segment), &mut read);
    }
    Ok(Received {
        addresses,
        ports: ((tcp(0) >> 16) as u16, tcp(0) as u16),
        arrival: Arrival::Tcp(read),
    })
}

fn read_any(frame: &[u8], layout: &Layout) -> Result<Received, Refusal> {
    if layout.fragment != Fragment::No {
        return Err(Refusal::Fragment);
    }
    if !matches!(layout.protocol, IpProtocol::TCP | IpProtocol::UDP) {
        return Err(Refusal::Other);
    }
    if layout.health != Health::Whole {
        return Err(Refusal::Length);
    }
    let (addresses, marked) = read_network(frame, layout)?;
    let segment = layout.segment(frame);
    let pseudo_header = pseudo_header(addresses, layout.protocol, segment.len());
    match layout.transport {
        Transport::Tcp => {
            let view = TcpView::new_unchecked(segment);
            if !view.has_right_checksum(pseudo_header) {
                return Err(Refusal::TransportChecksum);
            }
            Ok(Received {
                addresses,
                ports: (view.source_port(), view.destination_port()),
                arrival: Arrival::Tcp(read_segment(&view, segment.len(), marked)),
            })
        }
        Transport::Udp => {
            let view = UdpView::new_unchecked(segment);
            if !view.has_right_checksum(pseudo_header) {
                return Err(Refusal::TransportChecksum);
            }
            Ok(Received {
                addresses,
                ports: (view.source_port(), view.destination_port()),
                arrival: Arrival::Udp(view.payload().len() as u16),
            })
        }
        _ => Err(Refusal::Length),
    }
}

/// Reads a TCP segment whose data is apart; `None` for all else, which [`read`] reads when it is in
/// one piece.
pub fn read_split(frame: &SplitFrame<'_>) -> Option<(Layout, Received)> {
    let head = frame.head;
    let layout = frame::parse(head);
    let is_segment = layout.transport == Transport::Tcp
        && layout.fragment == Fragment::No
        && usize::from(layout.payload_offset) == head.len();
    if !is_segment || packet_end(head, &layout)? != frame.frame_bytes() {
        return None;
    }
    let (addresses, marked) = read_network(head, &layout).ok()?;
    let header = &head[usize::from(layout.transport_offset)..];
    let segment_bytes = header.len() + frame.payload.len();
    let sum = pseudo_header(addresses, IpProtocol::TCP, segment_bytes);
    if sum.and_sum(frame.sum()).and(header).checksum() != 0 {
        return None;
    }
    let view = TcpView::new_unchecked(header);
    let received = Received {
        addresses,
        ports: (view.source_port(), view.destination_port()),
        arrival: Arrival::Tcp(read_segment(&view, segment_bytes, marked)),
    };
    Some((layout, received))
}

/// Where the IP packet of a frame ends, as its header says.
fn packet_end(head: &[u8], layout: &Layout) -> Option<usize> {
    let network = usize::from(layout.network_offset);
    let (at, before) = match layout.network {
        Network::Ipv4 => (network + 2, network),
        Network::Ipv6 => (network + 4, network + IPV6_BYTES),
        Network::Arp | Network::None => return None,
    };
    let bytes = u16::from_be_bytes(*head.get(at..)?.first_chunk()?);
    Some(before + usize::from(bytes))
}

/// What is wrong with a TCP segment whose packet is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is shorter than a header.
    Short,
    /// Its header is shorter than one, or longer than the segment.
    Offset,
    /// Its checksum is wrong.
    Checksum,
}

/// The damage of a segment that [`read`] refused, and from which address and port to which it
/// says that it is; `None` where not that much is there.
pub fn read_damaged(frame: &[u8], layout: &Layout) -> Option<(Damage, Addresses, (u16, u16))> {
    if layout.fragment != Fragment::No || layout.protocol != IpProtocol::TCP {
        return None;
    }
    let (addresses, _) = read_network(frame, layout).ok()?;
    let segment = layout.segment(frame);
    let port = |at: usize| Some(u16::from_be_bytes(*segment.get(at..)?.first_chunk()?));
    let shortest = tcp_header::HEADER_BYTES_MIN;
    let damage = match segment.get(12) {
        Some(offset) if segment.len() >= shortest => {
            let header_bytes = usize::from(offset >> 4) * 4;
            if !(shortest..=segment.len()).contains(&header_bytes) {
                Damage::Offset
            } else if layout.health == Health::Whole {
                Damage::Checksum
            } else {
                return None;
            }
        }
        _ => Damage::Short,
    };
    Some((damage, addresses, (port(0)?, port(2)?)))
}

/// The addresses, and whether a router marked the packet.
fn read_network(frame: &[u8], layout: &Layout) -> Result<(Addresses, bool), Refusal> {
    let network = &frame[usize::from(layout.network_offset)..];
    match layout.network {
        Network::Ipv4 => {
            let view = Ipv4View::new_unchecked(network);
            if !view.has_right_checksum() {
                return Err(Refusal::NetworkChecksum);
            }
            let addresses = Addresses::V4(view.source(), view.destination());
            Ok((addresses, view.type_of_service() & CE == CE))
        }
        Network::Ipv6 => {
            let view = Ipv6View::new_unchecked(network);
            let addresses = Addresses::V6(view.source(), view.destination());
            Ok((addresses, view.traffic_class() & CE == CE))
        }
        Network::Arp | Network::None => Err(Refusal::Other),
    }
}

#[inline]
fn read_segment(view: &TcpView<&[u8]>, segment_bytes: usize, marked: bool) -> Segment {
    let mut segment = Segment {
        seq: Seq(view.sequence()),
        ack: Seq(view.acknowledgment()),
        flags: view.flags(),
        window: view.window(),
        len: (segment_bytes - view.header_bytes()) as u32,
        ecn: marked,
        ..Segment::default()
    };
    read_options(view, &mut segment);
    segment
}

#[inline]
fn read_options(view: &TcpView<&[u8]>, segment: &mut Segment) {
    if let Some(timestamps) = read_timestamps_only(view) {
        segment.timestamps = Some(timestamps);
        return;
    }
    for option in view.options() {
        match option {
            TcpOption::MaximumSegmentSize(bytes) => segment.mss = Some(bytes),
            TcpOption::WindowScale(shift) => segment.window_scale = Some(shift),
            TcpOption::SackPermitted => segment.sack_permitted = true,
            TcpOption::Timestamps { value, echo } => segment.timestamps = Some((value, echo)),
            TcpOption::Sack(blocks) => segment.sack = blocks,
            _ => {}
        }
    }
}

/// The timestamps of a segment that has them and nothing else, in the form that RFC 7323, appendix
/// A, recommends and all systems use.
#[inline]
fn read_timestamps_only(view: &TcpView<&[u8]>) -> Option<(u32, u32)> {
    let options: &[u8; TIMESTAMPS_ONLY_BYTES] = view.option_bytes().try_into().ok()?;
    let [k0, k1, k2, k3, v0, v1, v2, v3, e0, e1, e2, e3] = *options;
    let is_fast = u32::from_be_bytes([k0, k1, k2, k3]) == TIMESTAMPS_ONLY;
    let (value, echo) = ([v0, v1, v2, v3], [e0, e1, e2, e3]);
    is_fast.then(|| (u32::from_be_bytes(value), u32::from_be_bytes(echo)))
}
