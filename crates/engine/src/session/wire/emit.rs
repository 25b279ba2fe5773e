//! Writing a frame of TCP or UDP around data that somebody else writes.

use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::transport::tcp as tcp_header;
use allosaur_packet::transport::tcp_options::SackBlocks;

use super::encapsulation::Encapsulation;
use super::envelope::{Content, Envelope, IPV4_BYTES, MACS_BYTES, Places};
use super::fast_path::{
    NETWORK, SYN_BYTES, TIMED_BYTES, TRANSPORT, join, put_words, syn_options, timed_options,
};
use super::{Addresses, pseudo_header};
use crate::tcp::{Segment, Seq};

impl Envelope<'_> {
    /// Writes the frame around `content`. `data` writes the data and returns its sum, where there is
    /// any.
    ///
    /// # Panics
    ///
    /// When `frame` is not as long as [`frame_bytes`](Envelope::frame_bytes) says.
    pub fn write(
        &self,
        content: &Content<'_>,
        frame: &mut [u8],
        data: impl FnOnce(&mut [u8]) -> Sum,
    ) {
        self.write_at(self.places(content), content, frame, data);
    }

    /// The same, where the parts have their [`places`](Envelope::places).
    #[inline(always)]
    pub fn write_at(
        &self,
        places: Places,
        content: &Content<'_>,
        frame: &mut [u8],
        data: impl FnOnce(&mut [u8]) -> Sum,
    ) {
        let (head, rest) = frame.split_at_mut(places.payload);
        let (place, padding) = rest.split_at_mut(places.end - places.payload);
        let data_sum = if place.is_empty() {
            Sum::default()
        } else {
            data(place)
        };
        if !padding.is_empty() {
            padding.fill(0);
        }
        self.write_head_at(places, content, head, data_sum);
    }

    /// Writes only what stands in front of the data, which has this sum.
    #[inline(always)]
    pub fn write_head_at(
        &self,
        places: Places,
        content: &Content<'_>,
        head: &mut [u8],
        data_sum: Sum,
    ) {
        let Places {
            network,
            transport,
            payload: _,
            end,
        } = places;
        let segment_bytes = end - transport;
        let link = self.encapsulation;
        if let (Encapsulation::Ethernet, Addresses::V4(from, to), Content::Tcp(segment)) =
            (link, self.addresses, content)
        {
            let ends = (from, to);
            if let (Ok(head), Some(options)) = ((&mut *head).try_into(), timed_options(segment)) {
                return self.write_fast::<_, TIMED_BYTES>(ends, segment, options, data_sum, head);
            }
            if let (Ok(head), Some(options)) = ((&mut *head).try_into(), syn_options(segment)) {
                return self.write_fast::<_, SYN_BYTES>(ends, segment, options, data_sum, head);
            }
        }
        let (front, header) = head.split_at_mut(transport);
        let sum = match (link, self.addresses, front.first_chunk_mut()) {
            (Encapsulation::Ethernet, Addresses::V4(from, to), Some(front)) => {
                self.write_plain((from, to), content, segment_bytes, front)
            }
            _ => {
                self.write_link(network, end - network, front);
                self.write_network(content, segment_bytes, &mut front[network..]);
                pseudo_header(self.addresses, content.protocol(), segment_bytes)
            }
        };
        let sum = sum.and_sum(data_sum);
        match content {
            Content::Tcp(segment) => write_segment(segment, self.ports, sum, header),
            Content::Udp(_) => write_datagram(self.ports, segment_bytes, sum, header),
        }
    }

    /// What stands in front of the IP packet at `network`, which has `packet_bytes`.
    fn write_link(&self, network: usize, packet_bytes: usize, frame: &mut [u8]) {
        let ether_type = match self.addresses {
            Addresses::V4(..) => EtherType::IPV4,
            Addresses::V6(..) => EtherType::IPV6,
        };
        frame[..6].copy_from_slice(&self.macs.0.0);
        frame[6..MACS_BYTES].copy_from_slice(&self.macs.1.0);
        let prefix = &mut frame[MACS_BYTES..network];
        self.encapsulation.write(ether_type, packet_bytes, prefix);
    }

    fn write_network(&self, content: &Content<'_>, segment_bytes: usize, header: &mut [u8]) {
        let class = self.class(content);
        let protocol = content.protocol().0;
        match self.addresses {
            Addresses::V4(from, to) => {
                let total = (IPV4_BYTES + segment_bytes) as u16;
                let words = [
                    join([0x45, class], total),
                    // Do not fragment: our segments have the size that the way allows.
                    u32::from(self.identification) << 16 | 0x4000,
                    join([self.time_to_live, protocol], 0),
                    from.to_bits(),
                    to.to_bits(),
                ];
                let sum = put_words(words, header).checksum();
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Addresses::V6(from, to) => {
                let first = 6 << 28 | u32::from(class) << 20;
                header[..4].copy_from_slice(&first.to_be_bytes());
                header[4..6].copy_from_slice(&(segment_bytes as u16).to_be_bytes());
                header[6..8].copy_from_slice(&[protocol, self.time_to_live]);
                header[8..24].copy_from_slice(&from.octets());
                header[24..40].copy_from_slice(&to.octets());
            }
        }
    }
}

/// Where an IPv4 packet has its identification and its checksum in such headers, and TCP its number and
/// its checksum.
const IDENTIFICATION: usize = NETWORK + 4;
const NETWORK_CHECKSUM: usize = NETWORK + 10;
const SEQ: usize = TRANSPORT + 4;
const TRANSPORT_CHECKSUM: usize = TRANSPORT + 16;

/// The headers of segments over IPv4 without tags that differ in nothing but their numbers and their
/// data, which has the same length.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    /// With zeros in the place of what differs.
    bytes: [u8; TIMED_BYTES],
    /// What the checksum of IPv4 covers, but for the identification.
    network_sum: Sum,
    /// What the checksum of TCP covers, but for the number and the data.
    transport_sum: Sum,
}

impl HeaderTemplate {
    /// That of segments like `segment`, which has [`fast_places`](Envelope::fast_places).
    pub fn new(envelope: &Envelope<'_>, segment: &Segment) -> HeaderTemplate {
        let content = Content::Tcp(segment);
        let places = envelope.places(&content);
        let mut bytes = [0; TIMED_BYTES];
        envelope.write_head_at(places, &content, &mut bytes, Sum::default());
        put(&mut bytes, IDENTIFICATION, [0; 2]);
        put(&mut bytes, NETWORK_CHECKSUM, [0; 2]);
        put(&mut bytes, SEQ, [0; 4]);
        put(&mut bytes, TRANSPORT_CHECKSUM, [0; 2]);
        let segment_bytes = places.end - places.transport;
        let pseudo_header = pseudo_header(envelope.addresses, IpProtocol::TCP, segment_bytes);
        HeaderTemplate {
            bytes,
            network_sum: Sum::of(&bytes[places.network..places.transport]),
            transport_sum: pseudo_header.and(&bytes[places.transport..]),
        }
    }

    /// Writes the headers of a segment whose data has this sum.
    ///
    /// # Panics
    ///
    /// When `head` has other than [`TIMED_BYTES`].
    #[inline(always)]
    pub fn write(&self, identification: u16, seq: Seq, data_sum: u16, head: &mut [u8]) {
        let head: &mut [u8; TIMED_BYTES] = head.try_into().expect("it has its length");
        *head = self.bytes;
        let network = self.network_sum.and_u16(identification);
        let transport = self.transport_sum.and_u32(seq.0).and_u16(data_sum);
        put(head, IDENTIFICATION, identification.to_be_bytes());
        put(head, NETWORK_CHECKSUM, network.checksum().to_be_bytes());
        put(head, SEQ, seq.0.to_be_bytes());
        put(head, TRANSPORT_CHECKSUM, transport.checksum().to_be_bytes());
    }
}

/// Writes some bytes of a template.
#[inline(always)]
fn put<const N: usize>(head: &mut [u8; TIMED_BYTES], at: usize, bytes: [u8; N]) {
    head[at..at + N].copy_from_slice(&bytes);
}

fn write_datagram(ports: (u16, u16), bytes: usize, sum: Sum, header: &mut [u8]) {
    let ports = u32::from(ports.0) << 16 | u32::from(ports.1);
    let length = (bytes as u32) << 16;
    let sum = checksum::for_udp(sum.and_u32(ports).and_u32(length).checksum());
    put_words([ports, length | u32::from(sum)], header);
}

fn write_segment(segment: &Segment, ports: (u16, u16), sum: Sum, header: &mut [u8]) {
    let offset = (header.len() / 4) << 4;
    let (fixed, options) = header.split_at_mut(tcp_header::HEADER_BYTES_MIN);
    write_options(segment, options);
    let sum = sum.and(options);
    let mut words = [
        u32::from(ports.0) << 16 | u32::from(ports.1),
        segment.seq.0,
        segment.ack.0,
        join([offset as u8, segment.flags.0], segment.window),
        // The checksum, and nothing urgent.
        0,
    ];
    let sum = words.into_iter().fold(sum, Sum::and_u32);
    words[4] = u32::from(sum.checksum()) << 16;
    put_words(words, fixed);
}

/// Each option is padded to whole words in front, as all systems do.
fn write_options(segment: &Segment, mut rest: &mut [u8]) {
    let mut put = |bytes: &[u8]| {
        let (place, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        rest = after;
    };
    if let Some(bytes) = segment.mss {
        let [high, low] = bytes.to_be_bytes();
        put(&[2, 4, high, low]);
    }
    if segment.sack_permitted {
        put(&[1, 1, 4, 2]);
    }
    if let Some((value, echo)) = segment.timestamps {
        put(&[1, 1, 8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        put(&[1, 3, 3, shift]);
    }
    put_sack(segment.sack, put);
}

fn put_sack(blocks: SackBlocks, mut put: impl FnMut(&[u8])) {
    let blocks = blocks.as_slice();
    if blocks.is_empty() {
        return;
    }
    put(&[1, 1, 5, (2 + 8 * blocks.len()) as u8]);
    for block in blocks {
        put(&block.left.to_be_bytes());
        put(&block.right.to_be_bytes());
    }
}
