//! The frames that flows mostly exchange, read and written at once: TCP or UDP over IPv4 without IP
//! options or tags, and of TCP the headers that our own segments have. What differs in anything, or is
//! wrong, is read again by `parse`, which knows why, and written by `emit`.

use std::net::Ipv4Addr;

use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::{self as tcp_header, TcpFlags};
use allosaur_packet::transport::udp as udp_header;

use super::envelope::{Content, Envelope, IPV4_BYTES, Places};
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
const SYN_HEADER_BYTES: usize = TCP_BYTES + 4 * SYN_OPTIONS;
/// What stands in front of the data of a segment with timestamps and nothing else.
pub const TIMED_BYTES: usize = TRANSPORT + TIMED_HEADER_BYTES;
/// The options of a SYN that offers all that we know, in words.
const SYN_OPTIONS: usize = 6;
/// Such a SYN.
pub const SYN_BYTES: usize = TRANSPORT + SYN_HEADER_BYTES;

/// Reads such a frame, and finds where in its head data begins that is not apart; `None` when it is
/// none, or wrong: see `parse`. Data that is apart is not looked at, as its sum is known.
#[inline(always)]
pub fn read_fast(frame: &SplitFrame<'_>) -> Option<(Received, usize)> {
    let headers: &[u8; HEADERS_BYTES] = frame.head.first_chunk()?;
    // IPv4 with 20 bytes, which is no part of a larger packet.
    let is_plain = half(headers, 12) == EtherType::IPV4.0
        && headers[NETWORK] == 0x45
        && half(headers, NETWORK + 6) & 0x3fff == 0;
    if !is_plain || frame.frame_bytes() > usize::from(u16::MAX) {
        return None;
    }
    let network: &[u8; IPV4_BYTES] = headers[NETWORK..].first_chunk()?;
    if Sum::of_header(network).checksum() != 0 {
        return None;
    }
    let end = NETWORK + usize::from(half(headers, NETWORK + 2));
    if network[9] != IpProtocol::TCP.0 {
        return read_datagram(network, frame, end);
    }
    let fixed: &[u8; TCP_BYTES] = headers[TRANSPORT..].first_chunk()?;
    let header_bytes = 4 * usize::from(fixed[12] >> 4);
    let (data, data_sum) = data_of(frame, TRANSPORT + header_bytes, end)?;
    let pseudo_header = pseudo_header(network, IpProtocol::TCP, header_bytes + data.len());
    let segment = &frame.head[TRANSPORT..];
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
                ..fixed_fields(network, fixed, data.len())
            };
            let start = TRANSPORT + SYN_HEADER_BYTES;
            return Some((received(network, fixed, Arrival::Tcp(read)), start));
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
        ..fixed_fields(network, fixed, data.len())
    };
    let start = TRANSPORT + header_bytes;
    Some((received(network, fixed, Arrival::Tcp(read)), start))
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

/// What is read of a packet that brought this; `transport` begins with the ports.
#[inline(always)]
fn received<const BYTES: usize>(
    network: &[u8; IPV4_BYTES],
    transport: &[u8; BYTES],
    arrival: Arrival,
) -> Received {
    let (source, destination) = addresses(network);
    Received {
        addresses: Addresses::V4(source, destination),
        ports: (half(transport, 0), half(transport, 2)),
        arrival,
    }
}

/// What a segment says without its options.
#[inline(always)]
fn fixed_fields(network: &[u8; IPV4_BYTES], fixed: &[u8; TCP_BYTES], data_bytes: usize) -> Segment {
    Segment {
        seq: Seq(word(fixed, 4)),
        ack: Seq(word(fixed, 8)),
        flags: TcpFlags(fixed[13]),
        window: half(fixed, 14),
        len: data_bytes as u32,
        ecn: network[1] & CE == CE,
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
fn read_datagram(
    network: &[u8; IPV4_BYTES],
    frame: &SplitFrame<'_>,
    end: usize,
) -> Option<(Received, usize)> {
    let datagram = frame.head.get(TRANSPORT..end)?;
    let header: &[u8; udp_header::HEADER_BYTES] = datagram.first_chunk()?;
    let is_whole = !frame.is_split() && usize::from(half(header, 4)) == datagram.len();
    let has_checksum = half(header, 6) != 0;
    if network[9] != IpProtocol::UDP.0 || !is_whole || !has_checksum {
        return None;
    }
    let data = &datagram[header.len()..];
    let sum = pseudo_header(network, IpProtocol::UDP, datagram.len());
    let sum = sum.and_sum(Sum::of_header(header)).and(data);
    let arrival = Arrival::Udp(data.len() as u16);
    let is_right = sum.checksum() == 0;
    let start = TRANSPORT + udp_header::HEADER_BYTES;
    is_right.then(|| (received(network, header, arrival), start))
}

/// Source, destination.
#[inline(always)]
fn addresses(network: &[u8; IPV4_BYTES]) -> (Ipv4Addr, Ipv4Addr) {
    (
        Ipv4Addr::from_bits(word(network, 12)),
        Ipv4Addr::from_bits(word(network, 16)),
    )
}

#[inline(always)]
fn pseudo_header(network: &[u8; IPV4_BYTES], protocol: IpProtocol, bytes: usize) -> Sum {
    let (source, destination) = addresses(network);
    checksum::pseudo_header_v4(source, destination, protocol, bytes as u16)
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
    /// The same for a frame as most are: IPv4 without tags, and TCP with timestamps and nothing
    /// else; `None` for others. But for its length all is known when the program is compiled. Its
    /// envelope has [`Encapsulation::Ethernet`].
    #[inline(always)]
    pub fn fast_places(is_plain: bool, segment: &Segment) -> Option<Places> {
        let is_fast = segment.timestamps.is_some()
            && segment.mss.is_none()
            && segment.window_scale.is_none()
            && !segment.sack_permitted
            && segment.sack.as_slice().is_empty();
        (is_plain && is_fast).then_some(Places {
            network: NETWORK,
            transport: TRANSPORT,
            payload: TIMED_BYTES,
            end: TIMED_BYTES + segment.len as usize,
        })
    }

    /// The same for a SYN, or the answer to one, that offers all that we know, in such a frame.
    #[inline]
    pub fn syn_places(segment: &Segment) -> Option<Places> {
        let is_fast = segment.len == 0 && segment.sack.as_slice().is_empty();
        (is_fast && syn_options(segment).is_some()).then_some(Places {
            network: NETWORK,
            transport: TRANSPORT,
            payload: SYN_BYTES,
            end: SYN_BYTES,
        })
    }

    /// Writes what stands in front of the data of a segment that has [`fast_places`] between addresses
    /// of IPv4; the data has this sum. Nothing is written around others.
    ///
    /// [`fast_places`]: Envelope::fast_places
    #[inline(always)]
    pub fn write_timed(&self, segment: &Segment, data_sum: Sum, head: &mut [u8; TIMED_BYTES]) {
        if let (Addresses::V4(from, to), Some(options)) = (self.addresses, timed_options(segment)) {
            self.write_fast::<_, TIMED_BYTES>((from, to), segment, options, data_sum, head);
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
        let mut words = [
            u32::from(self.ports.0) << 16 | u32::from(self.ports.1),
            segment.seq.0,
            segment.ack.0,
            join([(header_bytes * 4) as u8, segment.flags.0], segment.window),
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
    pub(super) fn write_plain(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        content: &Content<'_>,
        segment_bytes: usize,
        front: &mut [u8; TRANSPORT],
    ) -> Sum {
        let ([t0, t1, t2, t3, t4, t5], [f0, f1, f2, f3, f4, f5]) = (self.macs.0.0, self.macs.1.0);
        let link = [t0, t1, t2, t3, t4, t5, f0, f1, f2, f3, f4, f5, 8, 0];
        front[..link.len()].copy_from_slice(&link);
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
        put_words(words, &mut front[link.len()..]);
        checksum::pseudo_header_v4(from, to, protocol, segment_bytes as u16)
    }
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
#[inline]
pub(super) fn put_words<const N: usize>(words: [u32; N], to: &mut [u8]) -> Sum {
    let mut sum = Sum::default();
    let to = &mut to[..4 * N];
    for (word, place) in words.into_iter().zip(to.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_be_bytes());
        sum = sum.and_u32(word);
    }
    sum
}
