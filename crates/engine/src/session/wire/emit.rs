//! Writing a frame of TCP or UDP around data that somebody else writes.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::transport::tcp as tcp_header;
use allosaur_packet::transport::tcp_options::SackBlocks;
use allosaur_packet::transport::udp as udp_header;

use super::encapsulation::Encapsulation;
use super::{
    Addresses, CE, MSS, SACK_PERMITTED, USUAL_OPTIONS, USUAL_OPTIONS_BYTES, WINDOW_SCALE,
    pseudo_header,
};
use crate::tcp::{Segment, Seq};

const MACS_BYTES: usize = 12;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Ethernet without tags, and IPv4.
const PLAIN_BYTES: usize = MACS_BYTES + 2 + IPV4_BYTES;
/// What stands in front of the data of a segment with timestamps and nothing else.
pub const TIMED_BYTES: usize = PLAIN_BYTES + tcp_header::HEADER_BYTES_MIN + USUAL_OPTIONS_BYTES;
/// The options of a SYN that offers all that we know, in words.
const SYN_OPTIONS: usize = 6;
/// Such a SYN.
pub const SYN_BYTES: usize = PLAIN_BYTES + tcp_header::HEADER_BYTES_MIN + 4 * SYN_OPTIONS;
/// Of a frame without FCS; what is shorter is padded with zeros.
const FRAME_BYTES_MIN: usize = 60;
/// A packet that routers may mark (RFC 3168, section 5).
const ECT_0: u8 = 0b10;

/// What surrounds the segments that a flow sends.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// MAC addresses: to, from.
    pub macs: (MacAddress, MacAddress),
    /// What stands between them and the IP packet.
    pub encapsulation: &'a Encapsulation,
    /// Source, destination.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// The type of service, or traffic class, without ECN.
    pub type_of_service: u8,
    /// Time to live, or hop limit.
    pub time_to_live: u8,
    /// The identification of an IPv4 packet.
    pub identification: u16,
}

/// What is written: a segment, or a datagram with so many bytes.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A TCP segment.
    Tcp(&'a Segment),
    /// A UDP datagram with so many bytes.
    Udp(u16),
}

impl Content<'_> {
    fn data_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => segment.len as usize,
            Content::Udp(bytes) => usize::from(*bytes),
        }
    }

    fn header_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => tcp_header::HEADER_BYTES_MIN + option_bytes(segment),
            Content::Udp(_) => udp_header::HEADER_BYTES,
        }
    }

    fn protocol(&self) -> IpProtocol {
        match self {
            Content::Tcp(_) => IpProtocol::TCP,
            Content::Udp(_) => IpProtocol::UDP,
        }
    }
}

/// Bytes of a frame around the data of a segment without options.
pub fn header_bytes(is_v6: bool, encapsulation: &Encapsulation) -> usize {
    let network = if is_v6 { IPV6_BYTES } else { IPV4_BYTES };
    MACS_BYTES + encapsulation.prefix_bytes() + network + tcp_header::HEADER_BYTES_MIN
}

/// Where the parts of a frame are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    network: usize,
    transport: usize,
    payload: usize,
    end: usize,
}

impl Places {
    /// The length of the frame, without FCS.
    #[inline]
    pub fn frame_bytes(self) -> usize {
        self.end.max(FRAME_BYTES_MIN)
    }

    /// How many bytes stand in front of the data.
    #[inline]
    pub fn head_bytes(self) -> usize {
        self.payload
    }
}

impl Envelope<'_> {
    pub(super) fn network_offset(&self) -> usize {
        MACS_BYTES + self.encapsulation.prefix_bytes()
    }

    fn network_bytes(&self) -> usize {
        match self.addresses {
            Addresses::V4(..) => IPV4_BYTES,
            Addresses::V6(..) => IPV6_BYTES,
        }
    }

    /// How many bytes stand in front of the data of `content`.
    pub fn header_bytes(&self, content: &Content<'_>) -> usize {
        self.places(content).payload
    }

    /// The length of the frame around `content`, without FCS.
    pub fn frame_bytes(&self, content: &Content<'_>) -> usize {
        self.places(content).frame_bytes()
    }

    /// Where the parts of the frame around `content` are.
    #[inline]
    pub fn places(&self, content: &Content<'_>) -> Places {
        let network = self.network_offset();
        let transport = network + self.network_bytes();
        let payload = transport + content.header_bytes();
        Places {
            network,
            transport,
            payload,
            end: payload + content.data_bytes(),
        }
    }

    /// The same for a frame as most are: IPv4 without tags, and TCP with timestamps and nothing
    /// else; `None` for others. But for its length all is known when the program is compiled. Its
    /// envelope has [`Encapsulation::Ethernet`].
    #[inline(always)]
    pub fn usual_places(is_plain: bool, segment: &Segment) -> Option<Places> {
        let is_usual = segment.timestamps.is_some()
            && segment.mss.is_none()
            && segment.window_scale.is_none()
            && !segment.sack_permitted
            && segment.sack.as_slice().is_empty();
        (is_plain && is_usual).then_some(Places {
            network: PLAIN_BYTES - IPV4_BYTES,
            transport: PLAIN_BYTES,
            payload: TIMED_BYTES,
            end: TIMED_BYTES + segment.len as usize,
        })
    }

    /// The same for a SYN, or the answer to one, that offers all that we know, in such a frame.
    #[inline]
    pub fn syn_places(segment: &Segment) -> Option<Places> {
        let is_usual = segment.len == 0 && segment.sack.as_slice().is_empty();
        (is_usual && syn_options(segment).is_some()).then_some(Places {
            network: PLAIN_BYTES - IPV4_BYTES,
            transport: PLAIN_BYTES,
            payload: SYN_BYTES,
            end: SYN_BYTES,
        })
    }

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
                return self.write_usual::<_, TIMED_BYTES>(ends, segment, options, data_sum, head);
            }
            if let (Ok(head), Some(options)) = ((&mut *head).try_into(), syn_options(segment)) {
                return self.write_usual::<_, SYN_BYTES>(ends, segment, options, data_sum, head);
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

    /// All that stands in front of the data of a segment, where the length of each header is known
    /// when the program is compiled.
    #[inline(always)]
    fn write_usual<const OPTIONS: usize, const HEAD: usize>(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        segment: &Segment,
        options: [u32; OPTIONS],
        data_sum: Sum,
        head: &mut [u8; HEAD],
    ) {
        const { assert!(PLAIN_BYTES + tcp_header::HEADER_BYTES_MIN + 4 * OPTIONS == HEAD) };
        let content = Content::Tcp(segment);
        let header_bytes = tcp_header::HEADER_BYTES_MIN + 4 * OPTIONS;
        let segment_bytes = header_bytes + segment.len as usize;
        let (front, header) = head.split_at_mut(PLAIN_BYTES);
        let Some(front) = front.first_chunk_mut() else {
            return;
        };
        let sum = self.write_plain((from, to), &content, segment_bytes, front);
        let mut words = [
            u32::from(self.ports.0) << 16 | u32::from(self.ports.1),
            segment.seq.0,
            segment.ack.0,
            word([(header_bytes * 4) as u8, segment.flags.0], segment.window),
            // The checksum, and nothing urgent.
            0,
        ];
        let sum = words.into_iter().fold(sum, Sum::and_u32);
        let sum = options.into_iter().fold(sum, Sum::and_u32);
        words[4] = u32::from(sum.and_sum(data_sum).checksum()) << 16;
        let (fixed, rest) = header.split_at_mut(tcp_header::HEADER_BYTES_MIN);
        put_words(words, fixed);
        put_words(options, rest);
    }

    /// The header of Ethernet and that of IPv4, as most frames have them. Returns the sum over the
    /// pseudo header.
    #[inline(always)]
    fn write_plain(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        content: &Content<'_>,
        segment_bytes: usize,
        front: &mut [u8; PLAIN_BYTES],
    ) -> Sum {
        let ([t0, t1, t2, t3, t4, t5], [f0, f1, f2, f3, f4, f5]) = (self.macs.0.0, self.macs.1.0);
        let link = [t0, t1, t2, t3, t4, t5, f0, f1, f2, f3, f4, f5, 8, 0];
        front[..link.len()].copy_from_slice(&link);
        let protocol = content.protocol();
        let total = (IPV4_BYTES + segment_bytes) as u16;
        // Do not fragment: our segments have the size that the way allows.
        let identification = u32::from(self.identification) << 16 | 0x4000;
        let mut words = [
            word([0x45, self.class(content)], total),
            identification,
            word([self.time_to_live, protocol.0], 0),
            from.to_bits(),
            to.to_bits(),
        ];
        let sum = words.into_iter().fold(Sum::default(), Sum::and_u32);
        words[2] |= u32::from(sum.checksum());
        put_words(words, &mut front[link.len()..]);
        checksum::pseudo_header_v4(from, to, protocol, segment_bytes as u16)
    }

    /// The type of service, or traffic class, with ECN.
    #[inline]
    fn class(&self, content: &Content<'_>) -> u8 {
        let ecn = match content {
            Content::Tcp(segment) if segment.ecn => ECT_0,
            _ => 0,
        };
        self.type_of_service & !CE | ecn
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
                    word([0x45, class], total),
                    // Do not fragment: our segments have the size that the way allows.
                    u32::from(self.identification) << 16 | 0x4000,
                    word([self.time_to_live, protocol], 0),
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
const IDENTIFICATION: usize = PLAIN_BYTES - IPV4_BYTES + 4;
const NETWORK_CHECKSUM: usize = PLAIN_BYTES - IPV4_BYTES + 10;
const SEQ: usize = PLAIN_BYTES + 4;
const TRANSPORT_CHECKSUM: usize = PLAIN_BYTES + 16;

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
    /// That of segments like `segment`, which has [`usual_places`](Envelope::usual_places).
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

/// Two bytes and a 16-bit number, in the order of the wire.
#[inline]
fn word([first, second]: [u8; 2], third: u16) -> u32 {
    u32::from(first) << 24 | u32::from(second) << 16 | u32::from(third)
}

/// Writes words in the order of the wire, and returns their sum.
#[inline]
fn put_words<const N: usize>(words: [u32; N], to: &mut [u8]) -> Sum {
    let mut sum = Sum::default();
    let to = &mut to[..4 * N];
    for (word, place) in words.into_iter().zip(to.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_be_bytes());
        sum = sum.and_u32(word);
    }
    sum
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
        word([offset as u8, segment.flags.0], segment.window),
        // The checksum, and nothing urgent.
        0,
    ];
    let sum = words.into_iter().fold(sum, Sum::and_u32);
    words[4] = u32::from(sum.checksum()) << 16;
    put_words(words, fixed);
}

/// The options of a segment with timestamps, where it has no others.
#[inline(always)]
fn timed_options(segment: &Segment) -> Option<[u32; USUAL_OPTIONS_BYTES / 4]> {
    let (value, echo) = segment.timestamps?;
    Some([USUAL_OPTIONS, value, echo])
}

/// The options of a SYN that offers all that we know, in the order of `write_options`.
#[inline(always)]
fn syn_options(segment: &Segment) -> Option<[u32; SYN_OPTIONS]> {
    let (value, echo) = segment.timestamps?;
    let (mss, shift) = (segment.mss?, segment.window_scale?);
    segment.sack_permitted.then_some([
        MSS << 16 | u32::from(mss),
        SACK_PERMITTED,
        USUAL_OPTIONS,
        value,
        echo,
        WINDOW_SCALE << 8 | u32::from(shift),
    ])
}

/// Bytes of the options with their padding to whole words.
fn option_bytes(segment: &Segment) -> usize {
    let blocks = segment.sack.as_slice().len();
    segment.mss.map_or(0, |_| 4)
        + segment.window_scale.map_or(0, |_| 4)
        + if segment.sack_permitted { 4 } else { 0 }
        + segment.timestamps.map_or(0, |_| 12)
        + if blocks > 0 { 4 + 8 * blocks } else { 0 }
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
