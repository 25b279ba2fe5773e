//! A host that echoes what it gets, by UDP and by TCP, as Linux does: the first piece of a connection is
//! acknowledged by itself, the second by its echo. Another port refuses connections.

use std::collections::HashMap;

use allosaur_packet::frame::{Transport, parse};
use allosaur_packet::network::checksum::pseudo_header_v4;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};
use allosaur_packet::transport::tcp::{TcpFlags, TcpHeader, TcpView};
use allosaur_packet::transport::tcp_options::TcpOptions;
use allosaur_packet::transport::udp::UdpView;

use super::Peer;

/// Where connections are refused.
const REFUSES: u16 = 9002;
/// Bytes of the Ethernet header: the recordings have no tags.
const LINK: usize = 14;

/// Its number of the first byte of a connection.
const FIRST: u32 = 1001;

/// The next number of what it sends, by the client's address and port.
#[derive(Default)]
pub(crate) struct Echo {
    next: HashMap<(u32, u16), u32>,
}

impl Peer for Echo {
    fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let layout = parse(frame);
        match layout.transport {
            Transport::Udp => vec![swapped(frame)],
            Transport::Tcp => self.talk(frame, layout.segment(frame)),
            _ => Vec::new(),
        }
    }
}

/// A datagram on its way back. All checksums stay right.
fn swapped(frame: &[u8]) -> Vec<u8> {
    let mut back = frame.to_vec();
    back[..6].copy_from_slice(&frame[6..12]);
    back[6..12].copy_from_slice(&frame[..6]);
    back[26..30].copy_from_slice(&frame[30..34]);
    back[30..34].copy_from_slice(&frame[26..30]);
    back[34..36].copy_from_slice(&frame[36..38]);
    back[36..38].copy_from_slice(&frame[34..36]);
    debug_assert!(UdpView::new_checked(&back[34..]).is_ok());
    back
}

impl Echo {
    fn talk(&mut self, frame: &[u8], segment: &[u8]) -> Vec<Vec<u8>> {
        let view = TcpView::new_checked(segment).expect("it sends whole segments");
        let packet = Ipv4View::new_checked(&frame[LINK..]).expect("IPv4");
        let data = view.payload();
        let key = (u32::from(packet.source()), view.source_port());
        let reply = |flags: TcpFlags, seq: u32, data: &[u8]| {
            let span = data_span(&view);
            segment_back(
                frame,
                &view,
                (flags, seq, view.sequence().wrapping_add(span)),
                data,
            )
        };
        if view.flags().contains(TcpFlags::SYN) {
            let refuses = view.destination_port() == REFUSES;
            let flags = if refuses {
                TcpFlags::RST
            } else {
                TcpFlags::SYN
            };
            self.next.insert(key, FIRST);
            return vec![reply(flags | TcpFlags::ACK, FIRST - 1, &[])];
        }
        let Some(next) = self.next.get_mut(&key) else {
            return Vec::new();
        };
        let mut answers = Vec::new();
        if !data.is_empty() {
            if *next == FIRST {
                answers.push(reply(TcpFlags::ACK, *next, &[]));
            }
            answers.push(reply(TcpFlags::ACK | TcpFlags::PSH, *next, data));
            *next = next.wrapping_add(data.len() as u32);
        }
        if view.flags().contains(TcpFlags::FIN) {
            answers.push(reply(TcpFlags::ACK | TcpFlags::FIN, *next, &[]));
        }
        answers
    }
}

/// The length of a segment in sequence numbers.
fn data_span(view: &TcpView<&[u8]>) -> u32 {
    let counts = |flag| u32::from(view.flags().contains(flag));
    view.payload().len() as u32 + counts(TcpFlags::SYN) + counts(TcpFlags::FIN)
}

fn segment_back(
    frame: &[u8],
    view: &TcpView<&[u8]>,
    (flags, sequence, acknowledgment): (TcpFlags, u32, u32),
    data: &[u8],
) -> Vec<u8> {
    let packet = Ipv4View::new_checked(&frame[LINK..]).expect("IPv4");
    let (source, destination) = (packet.destination(), packet.source());
    let tcp = TcpHeader {
        source_port: view.destination_port(),
        destination_port: view.source_port(),
        sequence,
        acknowledgment,
        flags,
        window: 0xffff,
        urgent_pointer: 0,
        options: TcpOptions::EMPTY,
    };
    let ip = Ipv4Header::new(source, destination, IpProtocol::TCP);
    let (ip_bytes, tcp_bytes) = (ip.buffer_len(), tcp.buffer_len() + data.len());
    let ip = Ipv4Header {
        total_bytes: (ip_bytes + tcp_bytes) as u16,
        ..ip
    };
    let mut back = vec![0; LINK + ip_bytes + tcp_bytes];
    back[..6].copy_from_slice(&frame[6..12]);
    back[6..12].copy_from_slice(&frame[..6]);
    back[12..LINK].copy_from_slice(&frame[12..LINK]);
    ip.emit(&mut back[LINK..]);
    let segment = &mut back[LINK + ip_bytes..];
    tcp.emit(segment);
    segment[tcp.buffer_len()..].copy_from_slice(data);
    let sum = pseudo_header_v4(source, destination, IpProtocol::TCP, tcp_bytes as u16);
    TcpView::new_unchecked(segment).fill_checksum(sum);
    back
}
