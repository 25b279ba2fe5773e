//! Writing a frame of TCP or UDP around data that somebody else writes.

use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::transport::tcp as tcp_header;
use allosaur_packet::transport::tcp_options::SackBlocks;

use super::envelope::{Content, Envelope, IPV6_BYTES, Places};
use super::fast_path::{
    NETWORK, SYN_BYTES, SYN_HEADER_BYTES, TIMED_BYTES, TIMED_HEADER_BYTES, TRANSPORT, join,
    put_tcp, put_words, syn_options, timed_options,
};
use super::{Addresses, pseudo_header};
use crate::encapsulation::{PREFIX_BYTES_MAX, flow_hash};
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
        let segment_bytes = places.end - places.transport;
        let plain = match self.addresses {
            Addresses::V4(from, to) if self.link.is_ethernet() => Some((from, to)),
            _ => None,
        };
        if let (Some(ends), Content::Tcp(segment)) = (plain, content) {
            if let (Ok(head), Some(options)) = ((&mut *head).try_into(), timed_options(segment)) {
                return self.write_fast::<_, TIMED_BYTES>(ends, segment, options, data_sum, head);
            }
            if let (Ok(head), Some(options)) = ((&mut *head).try_into(), syn_options(segment)) {
                return self.write_fast::<_, SYN_BYTES>(ends, segment, options, data_sum, head);
            }
        }
        let (front, header) = head.split_at_mut(places.transport);
        let sum = match (plain, front.first_chunk_mut()) {
            (Some(ends), Some(front)) => self.write_plain(ends, content, segment_bytes, front),
            _ => self.write_front(places, content, front),
        };
        let sum = sum.and_sum(data_sum);
        match content {
            Content::Tcp(segment) => write_segment(segment, self.ports, sum, header),
            Content::Udp(_) => write_datagram(self.ports, segment_bytes, sum, header),
        }
    }

    /// What stands in front of TCP or UDP, whatever that is. Returns the sum over the pseudo header.
    #[inline]
    fn write_front(&self, places: Places, content: &Content<'_>, front: &mut [u8]) -> Sum {
        let packet_bytes = places.end - places.network;
        self.link.write(packet_bytes, || self.flow_hash(), front);
        let network = &mut front[places.network..];
        let segment_bytes = places.end - places.transport;
        match self.addresses {
            Addresses::V6(from, to) => {
                let header = network.try_into().expect("it has its length");
                self.write_ipv6((from, to), content, segment_bytes, header)
            }
            Addresses::V4(from, to) => {
                let header = network.try_into().expect("it has its length");
                self.write_ipv4((from, to), content, segment_bytes, header)
            }
        }
    }

    /// What tells the flow from others, for a tunnel's source port.
    pub(super) fn flow_hash(&self) -> u16 {
        let (from, to) = match self.addresses {
            Addresses::V4(from, to) => (from.to_bits(), to.to_bits()),
            Addresses::V6(from, to) => (from.to_bits() as u32, to.to_bits() as u32),
        };
        flow_hash(from, to, self.ports)
    }
}

impl Envelope<'_> {
    /// Writes what stands in front of the data of a segment with timestamps and nothing else, whatever
    /// stands in front of its packet; the data has this sum.
    ///
    /// # Panics
    ///
    /// When `head` is shorter than that.
    #[inline(always)]
    pub fn write_timed_behind(&self, segment: &Segment, data_sum: Sum, head: &mut [u8]) {
        if let Some(options) = timed_options(segment) {
            self.write_behind(segment, options, data_sum, self.link.bytes(), head);
        }
    }

    /// The same behind a prefix that has `PREFIX` bytes, so that all places are known when the program is
    /// compiled.
    ///
    /// # Panics
    ///
    /// When `head` is shorter than that.
    #[inline(always)]
    pub fn write_timed_at<const PREFIX: usize>(
        &self,
        segment: &Segment,
        data_sum: Sum,
        head: &mut [u8],
    ) {
        if let Some(options) = timed_options(segment) {
            self.write_behind(segment, options, data_sum, PREFIX, head);
        }
    }

    /// The same for a SYN, or the answer to one, that offers all that we know.
    ///
    /// # Panics
    ///
    /// When `head` is shorter than that.
    #[inline(always)]
    pub fn write_syn_behind(&self, segment: &Segment, head: &mut [u8]) {
        if let Some(options) = syn_options(segment) {
            self.write_behind(segment, options, Sum::default(), self.link.bytes(), head);
        }
    }

    /// The same for a segment with these options.
    #[inline(always)]
    fn write_behind<const OPTIONS: usize>(
        &self,
        segment: &Segment,
        options: [u32; OPTIONS],
        data_sum: Sum,
        prefix_bytes: usize,
        head: &mut [u8],
    ) {
        let content = Content::Tcp(segment);
        let header_bytes = tcp_header::HEADER_BYTES_MIN + 4 * OPTIONS;
        let segment_bytes = header_bytes + segment.len as usize;
        let packet_bytes = self.network_bytes() + segment_bytes;
        self.link.write(packet_bytes, || self.flow_hash(), head);
        let packet = &mut head[prefix_bytes..];
        let (sum, header) = match self.addresses {
            Addresses::V4(from, to) => {
                let (header, rest) = packet.split_first_chunk_mut().expect("it has its length");
                (
                    self.write_ipv4((from, to), &content, segment_bytes, header),
                    rest,
                )
            }
            Addresses::V6(from, to) => {
                let (header, rest) = packet.split_first_chunk_mut().expect("it has its length");
                (
                    self.write_ipv6((from, to), &content, segment_bytes, header),
                    rest,
                )
            }
        };
        let header = &mut header[..header_bytes];
        put_tcp(self.ports, segment, options, sum.and_sum(data_sum), header);
    }
}

/// Where an IPv4 packet has its identification and its checksum, and TCP its number and its checksum.
const IDENTIFICATION: usize = 4;
const NETWORK_CHECKSUM: usize = 10;
const SEQ: usize = 4;
const TRANSPORT_CHECKSUM: usize = 16;
/// The longest head of a segment with timestamps and nothing else.
const HEAD_BYTES_MAX: usize = PREFIX_BYTES_MAX + IPV6_BYTES + TIMED_HEADER_BYTES;

/// The headers of segments that differ in nothing but their numbers and their data, which has the same
/// length.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    /// With zeros in the place of what differs.
    bytes: [u8; HEAD_BYTES_MAX],
    places: Places,
    /// Over IPv4 without tags.
    is_plain: bool,
    /// What the checksum of IPv4 covers, but for the identification; `None` for IPv6.
    network_sum: Option<Sum>,
    /// What the checksum of TCP covers, but for the number and the data.
    transport_sum: Sum,
}

impl HeaderTemplate {
    /// That of segments like `segment`, which has timestamps and no other option.
    pub fn new(envelope: &Envelope<'_>, segment: &Segment) -> HeaderTemplate {
        let content = Content::Tcp(segment);
        let places = envelope.places(&content);
        let mut bytes = [0; HEAD_BYTES_MAX];
        let head = &mut bytes[..places.payload];
        envelope.write_head_at(places, &content, head, Sum::default());
        put(head, places.transport + SEQ, [0; 4]);
        put(head, places.transport + TRANSPORT_CHECKSUM, [0; 2]);
        let is_v4 = matches!(envelope.addresses, Addresses::V4(..));
        let network_sum = is_v4.then(|| {
            put(head, places.network + IDENTIFICATION, [0; 2]);
            put(head, places.network + NETWORK_CHECKSUM, [0; 2]);
            Sum::of(&head[places.network..places.transport])
        });
        let segment_bytes = places.end - places.transport;
        let pseudo_header = pseudo_header(envelope.addresses, IpProtocol::TCP, segment_bytes);
        let transport_sum = pseudo_header.and(&head[places.transport..]);
        HeaderTemplate {
            bytes,
            places,
            is_plain: is_v4 && envelope.link.is_ethernet(),
            network_sum,
            transport_sum,
        }
    }

    /// How many bytes it writes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.places.payload
    }

    /// Writes the headers of a segment whose data has this sum.
    ///
    /// # Panics
    ///
    /// When `head` has other than [`bytes`](HeaderTemplate::bytes).
    #[inline(always)]
    pub fn write(&self, identification: u16, seq: Seq, data_sum: u16, head: &mut [u8]) {
        if self.is_plain {
            let head: &mut [u8; TIMED_BYTES] = head.try_into().expect("it has its length");
            *head = *self.bytes.first_chunk().expect("it has its length");
            return self.put_numbers((NETWORK, TRANSPORT), identification, seq, data_sum, head);
        }
        let Places {
            network, transport, ..
        } = self.places;
        head.copy_from_slice(&self.bytes[..self.bytes()]);
        self.put_numbers((network, transport), identification, seq, data_sum, head);
    }

    /// Writes what differs.
    #[inline(always)]
    fn put_numbers(
        &self,
        (network, transport): (usize, usize),
        identification: u16,
        seq: Seq,
        data_sum: u16,
        head: &mut [u8],
    ) {
        if let Some(sum) = self.network_sum {
            let sum = sum.and_u16(identification).checksum();
            let identification = identification.to_be_bytes();
            put(head, network + IDENTIFICATION, identification);
            put(head, network + NETWORK_CHECKSUM, sum.to_be_bytes());
        }
        let sum = self.transport_sum.and_u32(seq.0).and_u16(data_sum);
        put(head, transport + SEQ, seq.0.to_be_bytes());
        let sum = sum.checksum().to_be_bytes();
        put(head, transport + TRANSPORT_CHECKSUM, sum);
    }
}

/// Writes some bytes of a template.
#[inline(always)]
fn put<const N: usize>(head: &mut [u8], at: usize, bytes: [u8; N]) {
    head[at..at + N].copy_from_slice(&bytes);
}

fn write_datagram(ports: (u16, u16), bytes: usize, sum: Sum, header: &mut [u8]) {
    let ports = u32::from(ports.0) << 16 | u32::from(ports.1);
    let length = (bytes as u32) << 16;
    let sum = checksum::for_udp(sum.and_u32(ports).and_u32(length).checksum());
    put_words([ports, length | u32::from(sum)], header);
}

#[inline]
fn write_segment(segment: &Segment, ports: (u16, u16), sum: Sum, header: &mut [u8]) {
    match (header.len(), timed_options(segment), syn_options(segment)) {
        (TIMED_HEADER_BYTES, Some(options), _) => put_tcp(ports, segment, options, sum, header),
        (SYN_HEADER_BYTES, _, Some(options)) => put_tcp(ports, segment, options, sum, header),
        _ => write_any_segment(segment, ports, sum, header),
    }
}

#[inline(never)]
fn write_any_segment(segment: &Segment, ports: (u16, u16), sum: Sum, header: &mut [u8]) {
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
