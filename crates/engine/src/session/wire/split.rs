//! Reading a frame whose payload is apart, and whose sum is known: the payload is not looked at.

use allosaur_packet::frame::{self, Fragment, Layout, Network, Transport};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::TcpView;

use super::parse::{Arrival, Received, read_network, read_segment};
use super::pseudo_header;

const IPV6_BYTES: usize = 40;

/// Reads a TCP segment whose data is apart; `None` for all else, which [`read`](super::read) reads when
/// it is in one piece.
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
