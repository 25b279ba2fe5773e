//! The packets that flows mostly exchange, read and written at once: TCP or UDP over IPv4 without IP
//! options or over IPv6 without extension headers, and of TCP the headers that our own segments have.
//! What differs in anything, or is wrong, is read again by `parse`, which knows why, and written by
//! `emit`.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::{self as tcp_header, TcpFlags};
use allosaur_packet::transport::udp as udp_header;

use super::envelope::{Content, Envelope, IPV4_BYTES, IPV6_BYTES, Places};
use super::parse::{Arrival, Received};
use super::{
    Addresses, CE, MSS, SACK_PERMITTED, TIMESTAMPS_ONLY, TIMESTAMPS_ONLY_BYTES, WINDOW_SCALE,
};
use crate::tcp::{Segment, Seq};

pub(super) const NETWORK: usize = ethernet::HEADER_BYTES;
/// Behind Ethernet without tags, and IPv4.
pub(super) const TRANSPORT: usize = NETWORK + IPV4_BYTES;
/// Of a frame, what is there in any: an Ethernet header, IPv4 and TCP without options.
pub(super) const HEADERS_BYTES: usize = TRANSPORT + TCP_BYTES;
const TCP_BYTES: usize = tcp_header::HEADER_BYTES_MIN;
/// A TCP header with timestamps and nothing else.
pub(super) const TIMED_HEADER_BYTES: usize = TCP_BYTES + TIMESTAMPS_ONLY_BYTES;
/// That of a SYN that offers all that we know.
pub(super) const SYN_HEADER_BYTES: usize = TCP_BYTES + 4 * SYN_OPTIONS;
/// What stands in front of the data of a segment with timestamps and nothing else.
pub const TIMED_BYTES: usize = TRANSPORT + TIMED_HEADER_BYTES;
/// The options of a SYN that offers all that we know, in words.
const SYN_OPTIONS: usize = 6;
/// Such a SYN.
pub const SYN_BYTES: usize = TRANSPORT + SYN_HEADER_BYTES;

/// Reads a frame that is [plain](is_plain), and finds where in its head data begins that is not apart;
/// `None` when it is none of the fast path, or wrong: see `parse`. Data that is apart is not looked at,
/// as its sum is known.
#[inline(always)]
pub fn read_plain(frame: &SplitFrame<'_>) -> Option<(Received, usize)> {
    read_ipv4(frame, NETWORK)
}

/// Whether the packet of a frame is IPv4 behind no tag.
#[inline(always)]
pub fn is_plain(frame: &SplitFrame<'_>) -> bool {
    let header: Option<&[u8; ethernet::HEADER_BYTES]> = frame.head.first_chunk();
    header.is_some_and(|header| half(header, ethernet::TYPE_OFFSET) == EtherType::IPV4.0)
}

/// The same for a packet of this type that begins at `at`, whatever is in front of it.
#[inline]
pub fn read_packet(
    frame: &SplitFrame<'_>,
    at: usize,
    packet: EtherType,
) -> Option<(Received, usize)> {
    match packet {
        EtherType::IPV4 => read_ipv4(frame, at),
        EtherType::IPV6 => read_ipv6(frame, at),
        _ => None,
    }
}

/// What the network header of a packet says.
struct Packet {
    addresses: Addresses,
    protocol: IpProtocol,
    /// The sum over its addresses.
    addresses_sum: Sum,
    /// A router marked it.
    is_marked: bool,
    /// Where what it carries begins, and where it ends.
    transport: usize,
    end: usize,
}

/// IPv4 with a header of 20 bytes, which is no part of a larger packet.
#[inline(always)]
fn read_ipv4(frame: &SplitFrame<'_>, at: usize) -> Option<(Received, usize)> {
    let headers = frame.head.get(at..).and_then(<[u8]>::first_chunk);
    let Some(headers): Option<&[u8; IPV4_BYTES + TCP_BYTES]> = headers else {
        return read_short_ipv4(frame, at);
    };
    let (network, fixed) = headers.split_first_chunk::<IPV4_BYTES>()?;
    let packet = ipv4_packet(frame, network, at)?;
    if packet.protocol != IpProtocol::TCP {
        return read_datagram(&packet, frame);
    }
    read_tcp(&packet, frame, fixed.first_chunk()?)
}

/// The same where no TCP header has room: a short datagram behind tags.
#[cold]
fn read_short_ipv4(frame: &SplitFrame<'_>, at: usize) -> Option<(Received, usize)> {
    let network = frame.head.get(at..)?.first_chunk()?;
    read_datagram(&ipv4_packet(frame, network, at)?, frame)
}

/// What such a header says of the packet at `at`.
#[inline(always)]
fn ipv4_packet(frame: &SplitFrame<'_>, network: &[u8; IPV4_BYTES], at: usize) -> Option<Packet> {
    let is_plain = network[0] == 0x45 && half(network, 6) & 0x3fff == 0;
    if !is_plain || frame.frame_bytes() > usize::from(u16::MAX) {
        return None;
    }
    if Sum::of_header(network).checksum() != 0 {
        return None;
    }
    let (from, to) = (word(network, 12), word(network, 16));
    Some(Packet {
        addresses: Addresses::V4(Ipv4Addr::from_bits(from), Ipv4Addr::from_bits(to)),
        protocol: IpProtocol(network[9]),
        addresses_sum: Sum::default().and_u32(from).and_u32(to),
        is_marked: network[1] & CE == CE,
        transport: at + IPV4_BYTES,
        end: at + usize::from(half(network, 2)),
    })
}

/// IPv6 whose header says at once what it carries.
#[inline(always)]
fn read_ipv6(frame: &SplitFrame<'_>, at: usize) -> Option<(Received, usize)> {
    let packet = frame.head.get(at..)?;
    let network: &[u8; IPV6_BYTES] = packet.first_chunk()?;
    if network[0] >> 4 != 6 || frame.frame_bytes() > usize::from(u16::MAX) {
        return None;
    }
    let addresses: &[u8; 32] = network[8..].first_chunk()?;
    let (from, to) = addresses.split_first_chunk::<16>()?;
    let to: [u8; 16] = *to.first_chunk()?;
    let packet = Packet {
        addresses: Addresses::V6((*from).into(), to.into()),
        protocol: IpProtocol(network[6]),
        addresses_sum: Sum::of_header(addresses),
        is_marked: network[1] >> 4 & CE == CE,
        transport: at + IPV6_BYTES,
        end: at + IPV6_BYTES + usize::from(half(network, 4)),
    };
    if packet.protocol != IpProtocol::TCP {
        return read_datagram(&packet, frame);
    }
    let fixed = frame.head[packet.transport..].first_chunk()?;
    read_tcp(&packet, frame, fixed)
}

/// TCP with the options of a SYN of ours, with timestamps, or with none.
#[inline(always)]
fn read_tcp(
    packet: &Packet,
    frame: &SplitFrame<'_>,
    fixed: &[u8; TCP_BYTES],
) -> Option<(Received, usize)> {
    let header_bytes = 4 * usize::from(fixed[12] >> 4);
    let start = packet.transport + header_bytes;
    let (data, data_sum) = data_of(frame, start, packet.end)?;
    let pseudo_header = packet.pseudo_header(header_bytes + data.len());
    let segment = &frame.head[packet.transport..];
    let (header_sum, timestamps) = match header_bytes {
        TIMED_HEADER_BYTES => {
            let header: &[u8; TIMED_HEADER_BYTES] = segment.first_chunk()?;
            if word(header, TCP_BYTES) != TIMESTAMPS_ONLY {
                return None;
            }
            (Sum::of_header(header), Some(header))
        }
        TCP_BYTES => (Sum::of_header(fixed), None),
        SYN_HEADER_BYTES => {
            let options = read_syn_options(segment, pseudo_header.and_sum(data_sum))?;
            let read = Segment {
                mss: Some(options.mss),
                sack_permitted: true,
                timestamps: Some(options.timestamps),
                window_scale: Some(options.window_scale),
                ..fixed_fields(packet, fixed, data.len())
            };
            return Some((packet.received(fixed, Arrival::Tcp(read)), start));
        }
        _ => return None,
    };
    if pseudo_header
        .and_sum(header_sum)
        .and_sum(data_sum)
        .checksum()
        != 0
    {
        return None;
    }
    let timestamps = timestamps.map(|header| (word(header, 24), word(header, 28)));
    let read = Segment {
        timestamps,
        ..fixed_fields(packet, fixed, data.len())
    };
    Some((packet.received(fixed, Arrival::Tcp(read)), start))
}

impl Packet {
    /// The sum over the pseudo header of TCP or UDP with so many bytes.
    #[inline(always)]
    fn pseudo_header(&self, bytes: usize) -> Sum {
        let protocol = u16::from(self.protocol.0);
        self.addresses_sum.and_u16(protocol).and_u16(bytes as u16)
    }

    /// What is read of it when it brought this; `transport` begins with the ports.
    #[inline(always)]
    fn received<const BYTES: usize>(&self, transport: &[u8; BYTES], arrival: Arrival) -> Received {
        Received {
            addresses: self.addresses,
            ports: (half(transport, 0), half(transport, 2)),
            arrival,
        }
    }
}

/// What stands behind the headers of a packet, and its sum: from `start` to `end` of a frame.
#[inline(always)]
pub(super) fn data_of<'f>(
    frame: &SplitFrame<'f>,
    start: usize,
    end: usize,
) -> Option<(&'f [u8], Sum)> {
    if frame.is_split() {
        let is_whole = frame.head.len() == start && frame.frame_bytes() == end;
        return is_whole.then(|| (frame.payload, frame.sum()));
    }
    let data = frame.head.get(start..end)?;
    let sum = match data {
        [] => Sum::default(),
        data => Sum::of(data),
    };
    Some((data, sum))
}

/// What a segment says without its options.
#[inline(always)]
fn fixed_fields(packet: &Packet, fixed: &[u8; TCP_BYTES], data_bytes: usize) -> Segment {
    Segment {
        seq: Seq(word(fixed, 4)),
        ack: Seq(word(fixed, 8)),
        flags: TcpFlags(fixed[13]),
        window: half(fixed, 14),
        len: data_bytes as u32,
        ecn: packet.is_marked,
        ..Segment::default()
    }
}

/// What a SYN offers, or the answer to one.
struct SynOptions {
    mss: u16,
    window_scale: u8,
    /// Value and echo.
    timestamps: (u32, u32),
}

/// Those of a segment that offers all that we know. `sum` is that of all but its header.
#[inline(always)]
fn read_syn_options(segment: &[u8], sum: Sum) -> Option<SynOptions> {
    let header: &[u8; SYN_HEADER_BYTES] = segment.first_chunk()?;
    let (mss, scale) = (word(header, 20), word(header, 40));
    let is_fast = mss >> 16 == MSS
        && word(header, 24) == SACK_PERMITTED
        && word(header, 28) == TIMESTAMPS_ONLY
        && scale >> 8 == WINDOW_SCALE;
    let sum = sum.and_sum(Sum::of_header(header));
    (is_fast && sum.checksum() == 0).then_some(SynOptions {
        mss: mss as u16,
        window_scale: scale as u8,
        timestamps: (word(header, 32), word(header, 36)),
    })
}

/// A datagram in one part that fills its packet, and has a checksum.
#[inline(never)]
fn read_datagram(packet: &Packet, frame: &SplitFrame<'_>) -> Option<(Received, usize)> {
    let datagram = frame.head.get(packet.transport..packet.end)?;
    let header: &[u8; udp_header::HEADER_BYTES] = datagram.first_chunk()?;
    let is_whole = !frame.is_split() && usize::from(half(header, 4)) == datagram.len();
    let has_checksum = half(header, 6) != 0;
    if packet.protocol != IpProtocol::UDP || !is_whole || !has_checksum {
        return None;
    }
    let data = &datagram[header.len()..];
    let sum = packet.pseudo_header(datagram.len());
    let sum = sum.and_sum(Sum::of_header(header)).and(data);
    let arrival = Arrival::Udp(data.len() as u16);
    let is_right = sum.checksum() == 0;
    let start = packet.transport + udp_header::HEADER_BYTES;
    is_right.then(|| (packet.received(header, arrival), start))
}

/// The 16-bit number at `at`, in the order of the wire.
#[inline(always)]
pub(super) fn half<const BYTES: usize>(bytes: &[u8; BYTES], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit number at `at`, in the order of the wire.
#[inline(always)]
pub(super) fn word<const BYTES: usize>(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Envelope<'_> {
    /// The same for a segment with timestamps and nothing else. In a frame as most are, over IPv4
    /// without tags, all but its length is known when the program is compiled.
    #[inline(always)]
    pub fn timed_places(&self, segment: &Segment) -> Places {
        if let (true, Addresses::V4(..)) = (self.link.is_ethernet(), self.addresses) {
            return Places {
                network: NETWORK,
                transport: TRANSPORT,
                payload: TIMED_BYTES,
                end: TIMED_BYTES + segment.len as usize,
            };
        }
        self.places_around(TIMED_HEADER_BYTES, segment.len as usize)
    }

    /// The same for a SYN that offers all that we know, or the answer to one.
    #[inline]
    pub fn syn_places(&self) -> Places {
        self.places_around(SYN_HEADER_BYTES, 0)
    }

    /// Writes what stands in front of the data of a segment with timestamps and nothing else, in a
    /// frame without tags between addresses of IPv4; the data has this sum. Nothing is written around
    /// others.
    #[inline(always)]
    pub fn write_timed(&self, segment: &Segment, data_sum: Sum, head: &mut [u8; TIMED_BYTES]) {
        if let (Addresses::V4(from, to), Some(options)) = (self.addresses, timed_options(segment)) {
            self.write_fast::<_, TIMED_BYTES>((from, to), segment, options, data_sum, head);
        }
    }

    /// The same for a SYN, or the answer to one, that offers all that we know.
    #[inline(always)]
    pub fn write_syn(&self, segment: &Segment, head: &mut [u8; SYN_BYTES]) {
        if let (Addresses::V4(from, to), Some(options)) = (self.addresses, syn_options(segment)) {
            let data_sum = Sum::default();
            self.write_fast::<_, SYN_BYTES>((from, to), segment, options, data_sum, head);
        }
    }

    /// All that stands in front of the data of a segment, where the length of each header is known
    /// when the program is compiled.
    #[inline(always)]
    pub(super) fn write_fast<const OPTIONS: usize, const HEAD: usize>(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        segment: &Segment,
        options: [u32; OPTIONS],
        data_sum: Sum,
        head: &mut [u8; HEAD],
    ) {
        const { assert!(TRANSPORT + tcp_header::HEADER_BYTES_MIN + 4 * OPTIONS == HEAD) };
        let content = Content::Tcp(segment);
        let header_bytes = tcp_header::HEADER_BYTES_MIN + 4 * OPTIONS;
        let segment_bytes = header_bytes + segment.len as usize;
        let (front, header) = head.split_at_mut(TRANSPORT);
        let Some(front) = front.first_chunk_mut() else {
            return;
        };
        let sum = self.write_plain((from, to), &content, segment_bytes, front);
        put_tcp(self.ports, segment, options, sum.and_sum(data_sum), header);
    }

    /// The header of Ethernet and that of IPv4, as most frames have them. Returns the sum over the
    /// pseudo header.
    #[inline(always)]
    pub(super) fn write_plain(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        content: &Content<'_>,
        segment_bytes: usize,
        front: &mut [u8; TRANSPORT],
    ) -> Sum {
        let (link, network) = front.split_at_mut(NETWORK);
        link.copy_from_slice(self.link.ethernet());
        let network = network.first_chunk_mut().expect("an IPv4 header is left");
        self.write_ipv4((from, to), content, segment_bytes, network)
    }

    /// The header of IPv6. Returns the sum over the pseudo header.
    #[inline(always)]
    pub(super) fn write_ipv6(
        &self,
        (from, to): (Ipv6Addr, Ipv6Addr),
        content: &Content<'_>,
        segment_bytes: usize,
        header: &mut [u8; IPV6_BYTES],
    ) -> Sum {
        let protocol = content.protocol();
        let first = 6 << 28 | u32::from(self.class(content)) << 20;
        header[..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&(segment_bytes as u16).to_be_bytes());
        header[6..8].copy_from_slice(&[protocol.0, self.time_to_live]);
        header[8..24].copy_from_slice(&from.octets());
        header[24..].copy_from_slice(&to.octets());
        checksum::pseudo_header_v6(from, to, protocol, segment_bytes as u32)
    }

    /// The header of IPv4. Returns the sum over the pseudo header.
    #[inline(always)]
    pub(super) fn write_ipv4(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        content: &Content<'_>,
        segment_bytes: usize,
        header: &mut [u8; IPV4_BYTES],
    ) -> Sum {
        let protocol = content.protocol();
        let total = (IPV4_BYTES + segment_bytes) as u16;
        // Do not fragment: our segments have the size that the way allows.
        let identification = u32::from(self.identification) << 16 | 0x4000;
        let mut words = [
            join([0x45, self.class(content)], total),
            identification,
            join([self.time_to_live, protocol.0], 0),
            from.to_bits(),
            to.to_bits(),
        ];
        let sum = words.into_iter().fold(Sum::default(), Sum::and_u32);
        words[2] |= u32::from(sum.checksum());
        put_words(words, header);
        checksum::pseudo_header_v4(from, to, protocol, segment_bytes as u16)
    }
}

/// A TCP header with these options; `sum` is that of what it covers besides.
#[inline(always)]
pub(super) fn put_tcp<const OPTIONS: usize>(
    ports: (u16, u16),
    segment: &Segment,
    options: [u32; OPTIONS],
    sum: Sum,
    header: &mut [u8],
) {
    let header_bytes = TCP_BYTES + 4 * OPTIONS;
    let mut words = [
        u32::from(ports.0) << 16 | u32::from(ports.1),
        segment.seq.0,
        segment.ack.0,
        join([(header_bytes * 4) as u8, segment.flags.0], segment.window),
        // The checksum, and nothing urgent.
        0,
    ];
    let sum = words.into_iter().fold(sum, Sum::and_u32);
    let sum = options.into_iter().fold(sum, Sum::and_u32);
    words[4] = u32::from(sum.checksum()) << 16;
    let (fixed, rest) = header.split_at_mut(TCP_BYTES);
    put_words(words, fixed);
    put_words(options, rest);
}

/// Whether a segment has timestamps and no other option.
#[inline(always)]
pub fn is_timed(segment: &Segment) -> bool {
    segment.timestamps.is_some()
        && segment.mss.is_none()
        && segment.window_scale.is_none()
        && !segment.sack_permitted
        && segment.sack.as_slice().is_empty()
}

/// Whether a segment is a SYN, or the answer to one, that offers all that we know.
#[inline]
pub fn is_full_syn(segment: &Segment) -> bool {
    segment.len == 0 && segment.sack.as_slice().is_empty() && syn_options(segment).is_some()
}

/// The options of a segment with timestamps, where it has no others.
#[inline(always)]
pub(super) fn timed_options(segment: &Segment) -> Option<[u32; TIMESTAMPS_ONLY_BYTES / 4]> {
    let (value, echo) = segment.timestamps?;
    Some([TIMESTAMPS_ONLY, value, echo])
}

/// The options of a SYN that offers all that we know, in the order of `write_options`.
#[inline(always)]
pub(super) fn syn_options(segment: &Segment) -> Option<[u32; SYN_OPTIONS]> {
    let (value, echo) = segment.timestamps?;
    let (mss, shift) = (segment.mss?, segment.window_scale?);
    segment.sack_permitted.then_some([
        MSS << 16 | u32::from(mss),
        SACK_PERMITTED,
        TIMESTAMPS_ONLY,
        value,
        echo,
        WINDOW_SCALE << 8 | u32::from(shift),
    ])
}

/// Two bytes and a 16-bit number, in the order of the wire.
#[inline]
pub(super) fn join([first, second]: [u8; 2], third: u16) -> u32 {
    u32::from(first) << 24 | u32::from(second) << 16 | u32::from(third)
}

/// Writes words in the order of the wire, and returns their sum.
#[inline(always)]
pub(super) fn put_words<const N: usize>(words: [u32; N], to: &mut [u8]) -> Sum {
    let mut sum = Sum::default();
    let to = &mut to[..4 * N];
    for (word, place) in words.into_iter().zip(to.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_be_bytes());
        sum = sum.and_u32(word);
    }
    sum
}
