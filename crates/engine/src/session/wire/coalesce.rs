//! Segments that arrive behind each other and differ in nothing but their numbers and data: their headers
//! are compared, so that they can be handled as one.

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::TcpFlags;

use super::TIMESTAMPS_ONLY_BYTES;
use super::envelope::IPV4_BYTES;
use super::fast_path::{
    HEADERS_BYTES, NETWORK, TIMED_HEADER_BYTES, TRANSPORT, data_of, half, word,
};
use crate::tcp::{Segment, Seq};

/// Coalesces `segment`, which [`read_plain`](super::read_plain) read from `first`, with those that bring the
/// data behind it and differ from it in nothing but their numbers: those at the beginning of `behind`, up
/// to one with PSH, and as long as all have no more than `bytes_max`. So does Linux' GRO. `None` where
/// there are none. In `behind`, `None` is a frame that came in something else.
pub fn coalesce<'f>(
    first: &SplitFrame<'_>,
    segment: &Segment,
    behind: impl Iterator<Item = Option<SplitFrame<'f>>>,
    bytes_max: u32,
) -> Option<Segment> {
    let mut behind = behind.map_while(|next| next).peekable();
    let alike = Alike::of(first, behind.peek()?)?;
    let mut coalesced = *segment;
    let mut is_last = segment.has(TcpFlags::PSH);
    for next in behind {
        let seq = segment.seq + coalesced.len;
        match alike.read(&next, seq) {
            Some((bytes, is_pushed)) if !is_last && coalesced.len + bytes <= bytes_max => {
                coalesced.coalesce(bytes);
                is_last = is_pushed;
            }
            _ => break,
        }
    }
    (coalesced.coalesced > 0).then_some(coalesced)
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
    options: Option<&'a [u8; TIMESTAMPS_ONLY_BYTES]>,
    /// What the checksum of IPv4 covers, but for what differs.
    network_sum: Sum,
    /// The same of TCP.
    transport_sum: Sum,
}

impl<'a> Alike<'a> {
    /// That of a frame that `read_plain` read, if the next one looks like it.
    #[inline]
    fn of(first: &SplitFrame<'a>, next: &SplitFrame<'_>) -> Option<Alike<'a>> {
        let headers: &[u8; HEADERS_BYTES] = first.head.first_chunk()?;
        let options = match 4 * usize::from(headers[TRANSPORT + 12] >> 4) {
            TIMED_HEADER_BYTES => Some(first.head[HEADERS_BYTES..].first_chunk()?),
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
                TRANSPORT + TIMED_HEADER_BYTES,
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
