//! Between packets and what the engine's TCP says.

use std::net::{IpAddr, SocketAddr};

use allosaur_engine::tcp::{Segment, Seq};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::{pseudo_header_v4, pseudo_header_v6};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::transport::tcp::{TcpHeader, TcpView};
use allosaur_packet::transport::tcp_options::{TcpOption, TcpOptions};

use super::outbox::Outbox;
use crate::plugin::Context;

/// Identification of all IPv4 packets, as in the reference.
const IDENTIFICATION: u16 = 0x00cc;

/// A segment that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'f> {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) segment: Segment,
    pub(super) payload: &'f [u8],
}

/// Reads a segment.
pub(super) fn read(bytes: &[u8]) -> Option<Arrival<'_>> {
    let view = TcpView::new_checked(bytes).ok()?;
    let payload = &bytes[view.header_bytes()..];
    let mut segment = Segment {
        seq: Seq(view.sequence()),
        ack: Seq(view.acknowledgment()),
        flags: view.flags(),
        window: view.window(),
        len: payload.len() as u32,
        ..Segment::default()
    };
    for option in view.options() {
        match option {
            TcpOption::MaximumSegmentSize(mss) => segment.mss = Some(mss),
            TcpOption::WindowScale(shift) => segment.window_scale = Some(shift),
            TcpOption::SackPermitted => segment.sack_permitted = true,
            TcpOption::Sack(blocks) => segment.sack = blocks,
            TcpOption::Timestamps { value, echo } => segment.timestamps = Some((value, echo)),
            TcpOption::NoOperation | TcpOption::Other { .. } => {}
        }
    }
    Some(Arrival {
        source_port: view.source_port(),
        destination_port: view.destination_port(),
        segment,
        payload,
    })
}

/// The way of a connection's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// From, and to.
    pub(super) macs: [MacAddress; 2],
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) type_of_service: u8,
    pub(super) hops: u8,
}

/// The options of a segment, in the order in which BSD has them.
fn options(segment: &Segment) -> TcpOptions {
    let no_operation = Some(TcpOption::NoOperation);
    let scale = segment.window_scale;
    let times = segment.timestamps;
    let list = [
        segment.mss.map(TcpOption::MaximumSegmentSize),
        scale.and(no_operation),
        scale.map(TcpOption::WindowScale),
        times.and(no_operation),
        times.and(no_operation),
        times.map(|(value, echo)| TcpOption::Timestamps { value, echo }),
    ];
    let mut options = TcpOptions::EMPTY;
    for option in list.into_iter().flatten() {
        options.push(option).expect("these have 20 bytes");
    }
    options
}

/// Sends a segment. Addresses of different families send nothing.
pub(super) fn write(
    context: &mut Context<'_>,
    route: &Route,
    segment: &Segment,
    window: u16,
    outbox: &Outbox,
) {
    let header = TcpHeader {
        source_port: route.local.port(),
        destination_port: route.remote.port(),
        sequence: segment.seq.0,
        acknowledgment: segment.ack.0,
        flags: segment.flags,
        window,
        urgent_pointer: 0,
        options: options(segment),
    };
    let header_bytes = header.buffer_len();
    let bytes = header_bytes + segment.len as usize;
    let [from, to] = route.macs;
    let (packet, pseudo_header) = match (route.local.ip(), route.remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4Header {
                identification: IDENTIFICATION,
                dont_fragment: false,
                time_to_live: route.hops,
                type_of_service: route.type_of_service,
                ..Ipv4Header::new(source, destination, IpProtocol::TCP)
            };
            let packet = context.send_ipv4(from, to, &ip, bytes);
            let sum = pseudo_header_v4(source, destination, IpProtocol::TCP, bytes as u16);
            (packet, sum)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                hop_limit: route.hops,
                traffic_class: route.type_of_service,
                ..Ipv6Header::new(source, destination, IpProtocol::TCP)
            };
            let packet = context.send_ipv6(from, to, &ip, bytes);
            let sum = pseudo_header_v6(source, destination, IpProtocol::TCP, bytes as u32);
            (packet, sum)
        }
        _ => return,
    };
    header.emit(packet);
    outbox.copy_to(segment.offset as usize, &mut packet[header_bytes..]);
    TcpView::new_unchecked(packet).fill_checksum(pseudo_header);
}
