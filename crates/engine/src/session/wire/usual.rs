//! Reading the frames that flows mostly exchange, at once: TCP or UDP over IPv4 without IP options
//! or tags, and of TCP the headers that our own segments have. What differs in anything, or is wrong,
//! is read again by `parse`, which knows why.

use std::net::Ipv4Addr;

use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::{self as tcp_header, TcpFlags};
use allosaur_packet::transport::udp as udp_header;

use super::parse::{Arrival, Received};
use super::{Addresses, CE, MSS, SACK_PERMITTED, USUAL_OPTIONS, USUAL_OPTIONS_BYTES, WINDOW_SCALE};
use crate::tcp::{Coalesced, Segment, Seq};

const NETWORK: usize = ethernet::HEADER_BYTES;
const IPV4_BYTES: usize = 20;
const TRANSPORT: usize = NETWORK + IPV4_BYTES;
/// Of a frame, what is there in any: an Ethernet header, IPv4 and TCP without options.
const HEADERS_BYTES: usize = TRANSPORT + tcp_header::HEADER_BYTES_MIN;
const TCP_BYTES: usize = tcp_header::HEADER_BYTES_MIN;
/// A TCP header with timestamps and nothing else.
const TIMED_BYTES: usize = TCP_BYTES + USUAL_OPTIONS_BYTES;
/// That of a SYN that offers all that we know, as `emit` writes it.
const SYN_BYTES: usize = TIMED_BYTES + 12;

/// Reads such a frame, and finds where in its head data begins that is not apart; `None` when it is
/// none, or wrong: see `parse`. Data that is apart is not looked at, as its sum is known.
#[inline(always)]
pub fn read_usual(frame: &SplitFrame<'_>) -> Option<(Received, usize)> {
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
        TIMED_BYTES => {
            let header: &[u8; TIMED_BYTES] = segment.first_chunk()?;
            if word(header, TCP_BYTES) != USUAL_OPTIONS {
                return None;
            }
            (Sum::of_header(header), Some(header))
        }
        TCP_BYTES => (Sum::of_header(fixed), None),
        SYN_BYTES => {
            let options = read_syn_options(segment, pseudo_header.and_sum(data_sum))?;
            let read = Segment {
                mss: Some(options.mss),
                sack_permitted: true,
                timestamps: Some(options.timestamps),
                window_scale: Some(options.window_scale),
                ..fixed_fields(network, fixed, data.len())
            };
            let start = TRANSPORT + SYN_BYTES;
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

/// Counts the segments that bring the data behind that of `segment`, which [`read_usual`] read from
/// `first`, and differ from it in nothing but their numbers: those at the beginning of `behind`, up to
/// one with PSH, and as long as all have no more than `bytes_max`. So Linux' GRO takes them together.
pub fn coalesce(
    first: &SplitFrame<'_>,
    segment: &Segment,
    behind: &[SplitFrame<'_>],
    bytes_max: u32,
) -> Coalesced {
    let mut coalesced = Coalesced::one(segment.len);
    let mut is_last = segment.has(TcpFlags::PSH);
    let Some(alike) = behind.first().and_then(|next| Alike::of(first, next)) else {
        return coalesced;
    };
    for next in behind {
        let seq = segment.seq + coalesced.bytes;
        match alike.read(next, seq) {
            Some((bytes, is_pushed)) if !is_last && coalesced.bytes + bytes <= bytes_max => {
                coalesced.add(bytes);
                is_last = is_pushed;
            }
            _ => break,
        }
    }
    coalesced
}

/// The words of Ethernet, IPv4 and the beginning of TCP that segments have in common: not the length,
/// identification and checksum of their packets, not their number, nor whether they are pushed.
const COMMON_WORDS: [u64; COMMON_BYTES / 8] = {
    let mut bits = [0xff_u8; COMMON_BYTES];
    let mut differ = 0;
    while differ < 10 {
        bits[[16, 17, 18, 19, 24, 25, 38, 39, 40, 41][differ]] = 0;
        differ += 1;
    }
    bits[FLAGS] = !TcpFlags::PSH.0;
    let mut words = [0; COMMON_BYTES / 8];
    let mut n = 0;
    while n < bits.len() {
        // In the order of memory.
        let shift = if cfg!(target_endian = "little") {
            8 * (n % 8)
        } else {
            56 - 8 * (n % 8)
        };
        words[n / 8] |= (bits[n] as u64) << shift;
        n += 1;
    }
    words
};
const COMMON_BYTES: usize = 48;
/// Where a segment has its flags.
const FLAGS: usize = TRANSPORT + 13;

/// What segments have in common that are coalesced.
struct Alike<'a> {
    first: &'a [u8; HEADERS_BYTES],
    /// Timestamps, or none.
    options: Option<&'a [u8; USUAL_OPTIONS_BYTES]>,
    /// What the checksum of IPv4 covers, but for what differs.
    network_sum: Sum,
    /// The same of TCP.
    transport_sum: Sum,
}

impl<'a> Alike<'a> {
    /// That of a frame that `read_usual` read, if the next one looks like it.
    #[inline]
    fn of(first: &SplitFrame<'a>, next: &SplitFrame<'_>) -> Option<Alike<'a>> {
        let headers: &[u8; HEADERS_BYTES] = first.head.first_chunk()?;
        let options = match 4 * usize::from(headers[TRANSPORT + 12] >> 4) {
            TIMED_BYTES => Some(first.head[HEADERS_BYTES..].first_chunk()?),
            _ => None,
        };
        if !are_alike(headers, next.head.first_chunk()?) {
            return None;
        }
        let word = |at: usize| word(headers, at);
        let addresses = Sum::default().and_u32(word(26)).and_u32(word(30));
        let network = addresses.and_u16(half(headers, 14)).and_u32(word(20));
        let transport = addresses
            .and_u16(u16::from(IpProtocol::TCP.0))
            .and_u32(word(34))
            .and_u32(word(42))
            .and_u16(half(headers, 48))
            .and_u16(half(headers, 52));
        Some(Alike {
            first: headers,
            options,
            network_sum: network,
            transport_sum: options.map_or(transport, |it| transport.and(it)),
        })
    }

    /// The bytes of data of the next one if it is alike, whole and right, and its number `seq`; and
    /// whether it is pushed.
    #[inline]
    fn read(&self, next: &SplitFrame<'_>, seq: Seq) -> Option<(u32, bool)> {
        let headers: &[u8; HEADERS_BYTES] = next.head.first_chunk()?;
        let (options, start) = match self.options {
            Some(_) => (
                next.head[HEADERS_BYTES..].first_chunk(),
                TRANSPORT + TIMED_BYTES,
            ),
            None => (None, HEADERS_BYTES),
        };
        let is_next = are_alike(self.first, headers) && word(headers, 38) == seq.0;
        if !is_next || options != self.options || next.frame_bytes() > usize::from(u16::MAX) {
            return None;
        }
        let packet_bytes = half(headers, NETWORK + 2);
        let (data, data_sum) = data_of(next, start, NETWORK + usize::from(packet_bytes))?;
        let network = self.network_sum.and_u32(word(headers, 16));
        let network = network.and_u16(half(headers, 24));
        let transport = self.transport_sum.and_u32(seq.0).and_sum(data_sum);
        let transport = transport
            .and_u16(packet_bytes - IPV4_BYTES as u16)
            .and_u16(half(headers, FLAGS - 1))
            .and_u16(half(headers, 50));
        let is_right = network.checksum() == 0 && transport.checksum() == 0;
        let is_pushed = headers[FLAGS] & TcpFlags::PSH.0 != 0;
        (is_right && !data.is_empty()).then_some((data.len() as u32, is_pushed))
    }
}

/// Whether two headers have the same in all that segments have in common.
#[inline(always)]
fn are_alike(one: &[u8; HEADERS_BYTES], other: &[u8; HEADERS_BYTES]) -> bool {
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let words = ones.zip(others).zip(COMMON_WORDS);
    let differ = words.fold(0, |differ, ((one, other), mask)| {
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        differ | (word(one) ^ word(other)) & mask
    });
    // The window, and what is urgent.
    differ == 0 && half(one, 48) == half(other, 48) && half(one, 52) == half(other, 52)
}

/// What stands behind the headers of a packet, and its sum: from `start` to `end` of a frame.
#[inline(always)]
fn data_of<'f>(frame: &SplitFrame<'f>, start: usize, end: usize) -> Option<(&'f [u8], Sum)> {
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
    let header: &[u8; SYN_BYTES] = segment.first_chunk()?;
    let (mss, scale) = (word(header, 20), word(header, 40));
    let is_usual = mss >> 16 == MSS
        && word(header, 24) == SACK_PERMITTED
        && word(header, 28) == USUAL_OPTIONS
        && scale >> 8 == WINDOW_SCALE;
    let sum = sum.and_sum(Sum::of_header(header));
    (is_usual && sum.checksum() == 0).then_some(SynOptions {
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
fn half<const BYTES: usize>(bytes: &[u8; BYTES], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit number at `at`, in the order of the wire.
#[inline(always)]
fn word<const BYTES: usize>(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
