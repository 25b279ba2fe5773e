//! Checksums: what each one sums up, as the compiler finds it, and the sums of a burst.

use super::header::{
    ICMPV6_CHECKSUM_OFFSET, IPV4_CHECKSUM_OFFSET, IPV6_HEADER_BYTES, TCP_CHECKSUM_OFFSET,
    UDP_CHECKSUM_OFFSET, ipv4_header_bytes,
};
use super::low32;
use super::program::{Action, Checksum, Ending, Part, Source, Varying, Width, Write, fold};
use super::run::{Columns, Stage};

/// Where the addresses are in an IPv4 header, and their bytes (RFC 791 §3.1).
const IPV4_ADDRESSES: (usize, usize) = (12, 8);
/// Where the addresses are in an IPv6 header, and their bytes (RFC 8200 §3).
const IPV6_ADDRESSES: (usize, usize) = (8, 32);

/// A checksum field and what belongs into it.
#[derive(Clone, Debug)]
pub(super) struct Field {
    name: &'static str,
    offset: usize,
    /// The bytes that it is of: offset and length.
    covers: (usize, usize),
    /// With a pseudo header: offset and length of the addresses, and the protocol.
    pseudo: Option<((usize, usize), u32)>,
    /// Whether the bytes count, and not only the pseudo header.
    whole: bool,
    /// Packets end elsewhere than the template.
    varies: bool,
    ending: Ending,
}

impl Field {
    /// The checksum of the IPv4 header at `header`.
    pub(super) fn of_header(template: &[u8], header: usize) -> Field {
        let bytes = ipv4_header_bytes(template, header).expect("the verifier found a header here");
        Field {
            name: "IPv4 checksum",
            offset: header + IPV4_CHECKSUM_OFFSET,
            covers: (header, bytes),
            pseudo: None,
            whole: true,
            varies: false,
            ending: Ending::Complement,
        }
    }

    /// Zero in the place of an IPv4 header's checksum.
    pub(super) fn zero(header: usize) -> Field {
        Field {
            name: "place of the IPv4 checksum",
            offset: header + IPV4_CHECKSUM_OFFSET,
            covers: (header, 0),
            pseudo: None,
            whole: false,
            varies: false,
            ending: Ending::Sum,
        }
    }

    pub(super) fn udp(template: &[u8], place: (usize, usize), varies: bool) -> Field {
        Field {
            ending: Ending::ComplementOrOnes,
            ..Field::of_segment(
                "UDP checksum",
                (UDP_CHECKSUM_OFFSET, 17),
                template,
                place,
                varies,
            )
        }
    }

    pub(super) fn tcp(template: &[u8], place: (usize, usize), varies: bool) -> Field {
        Field::of_segment(
            "TCP checksum",
            (TCP_CHECKSUM_OFFSET, 6),
            template,
            place,
            varies,
        )
    }

    pub(super) fn icmpv6(template: &[u8], place: (usize, usize), varies: bool) -> Field {
        let at = (ICMPV6_CHECKSUM_OFFSET, 58);
        Field::of_segment("ICMPv6 checksum", at, template, place, varies)
    }

    /// A checksum with a pseudo header (RFC 9293 §3.1, RFC 8200 §8.1): its offset in the header
    /// behind that of IP, and its protocol. `place` is where the IP header is and how long.
    fn of_segment(
        name: &'static str,
        (offset, protocol): (usize, u32),
        template: &[u8],
        (l3, l3_bytes): (usize, usize),
        varies: bool,
    ) -> Field {
        let ipv4 = ipv4_header_bytes(template, l3).is_some();
        let (at, addresses) = if ipv4 { IPV4_ADDRESSES } else { IPV6_ADDRESSES };
        let segment = l3 + l3_bytes;
        Field {
            name,
            offset: segment + offset,
            covers: (segment, segment_bytes(template, (l3, l3_bytes), ipv4)),
            pseudo: Some(((l3 + at, addresses), protocol)),
            whole: true,
            varies,
            ending: Ending::Complement,
        }
    }

    /// Only the sum of the pseudo header: the port adds the rest.
    pub(super) fn left_to_port(self) -> Field {
        Field {
            name: "sum of the pseudo header",
            whole: false,
            ending: Ending::Sum,
            ..self
        }
    }

    /// The checksum after these actions, its result in this column.
    pub(super) fn compile(&self, template: &[u8], actions: &[Action], column: usize) -> Checksum {
        let (segment, bytes) = self.covers;
        let mut constant = 0;
        let mut live = Vec::new();
        if self.whole && !self.varies {
            live.push(LiveBytes::new(segment, bytes));
        }
        if let Some(((addresses, addresses_bytes), protocol)) = self.pseudo {
            constant += protocol;
            if !self.varies {
                live.push(LiveBytes::new(addresses, addresses_bytes));
                constant += u32::try_from(bytes).expect("packets are short");
            }
        }
        for region in &mut live {
            region.take(self.offset, Width::Two, 0xffff);
        }
        let parts = take_parts(&mut live, actions);
        constant += live.iter().map(|region| region.sum(template)).sum::<u32>();
        let varying = self.pseudo.filter(|_| self.varies);
        let varying = varying.map(|(addresses, _)| Varying {
            addresses,
            segment,
            whole: self.whole,
            tail: Box::default(),
        });
        let source = Source {
            column,
            width: Width::Two,
            add: 0,
            big_endian: true,
        };
        Checksum {
            name: self.name,
            covers: self.covers,
            constant: fold(constant),
            parts,
            varying,
            ending: self.ending,
            write: Write {
                source,
                offset: self.offset,
                mask: 0xffff,
                variable: usize::MAX,
            },
        }
    }
}

impl Checksum {
    /// Prepares the sums of what is behind the bytes that are staged.
    pub(super) fn add_tail(&mut self, template: &[u8], header_bytes: usize) {
        let Some(varying) = self.varying.as_mut().filter(|varying| varying.whole) else {
            return;
        };
        let tail = template.get(header_bytes..).unwrap_or_default();
        let mut sum = 0;
        let sums = (header_bytes..).zip(tail).map(|(at, &byte)| {
            let upper = (at - varying.segment) % 2 == 0;
            sum = fold(sum + (u32::from(byte) << if upper { 8 } else { 0 }));
            u16::try_from(sum).expect("a folded sum has 16 bits")
        });
        varying.tail = sums.collect();
    }
}

/// Bytes from a header to the end of its IP packet, as the length field says; to the end of the
/// frame when that makes no sense.
fn segment_bytes(template: &[u8], (l3, l3_bytes): (usize, usize), ipv4: bool) -> usize {
    let (field, more) = if ipv4 { (2, 0) } else { (4, IPV6_HEADER_BYTES) };
    let length = u16::from_be_bytes([template[l3 + field], template[l3 + field + 1]]);
    let room = template.len() - l3 - l3_bytes;
    match (usize::from(length) + more).checked_sub(l3_bytes) {
        Some(bytes @ 1..) if bytes <= room => bytes,
        _ => room,
    }
}

/// What the actions, from the last to the first, put into regions that nobody wrote after them.
fn take_parts(live: &mut [LiveBytes], actions: &[Action]) -> Vec<Part> {
    let mut parts = Vec::new();
    for action in actions.iter().rev() {
        let write = action.write();
        for region in &mut *live {
            let (mask, upper) = region.take(write.offset, write.source.width, write.mask);
            if mask != 0 {
                parts.push(Part {
                    source: write.source,
                    variable: write.variable,
                    mask,
                    upper,
                });
            }
        }
    }
    parts
}

/// The bits of some bytes whose last writer is still to be found, going backwards.
struct LiveBytes {
    begin: usize,
    live: Vec<u8>,
}

impl LiveBytes {
    fn new(begin: usize, bytes: usize) -> LiveBytes {
        LiveBytes {
            begin,
            live: vec![0xff; bytes],
        }
    }

    /// Takes the bits of a write away. Gives those, in network order, that were still there,
    /// and whether the last byte is the upper one of its word.
    fn take(&mut self, offset: usize, width: Width, bits: u64) -> (u64, bool) {
        let mut mask = 0;
        let bytes = &bits.to_be_bytes()[8 - width.bytes()..];
        for (at, bits) in (offset..).zip(bytes) {
            mask <<= 8;
            let byte = at.checked_sub(self.begin);
            if let Some(live) = byte.and_then(|byte| self.live.get_mut(byte)) {
                mask |= u64::from(*live & bits);
                *live &= !bits;
            }
        }
        let upper = (offset + width.bytes() + self.begin) % 2 == 1;
        (mask, upper)
    }

    /// The folded sum of the bits that nobody wrote.
    fn sum(&self, template: &[u8]) -> u32 {
        let bytes = &template[self.begin..self.begin + self.live.len()];
        let mut sum = 0;
        for (index, (&byte, &live)) in bytes.iter().zip(&self.live).enumerate() {
            sum += u32::from(byte & live) << if index % 2 == 0 { 8 } else { 0 };
        }
        fold(sum)
    }
}

impl Stage {
    /// Computes a checksum. From packets of different lengths it is summed up anew: how much of
    /// what was written counts, is different in each.
    pub(super) fn sum(&mut self, checksum: &Checksum, n: usize) {
        let sums = self.columns.sums(checksum, n);
        if let Some(varying) = &checksum.varying {
            let slots = self.slots.chunks_exact_mut(self.slot_bytes);
            for ((slot, &length), sum) in slots.zip(&self.lengths).zip(sums) {
                slot[checksum.write.offset..][..2].fill(0);
                *sum = fold(*sum + varying.sum(slot, usize::from(length)));
            }
        }
        self.columns.finish_sums(checksum, n);
    }
}

impl Columns {
    /// The sums that a checksum of `n` packets begins with.
    fn sums(&mut self, checksum: &Checksum, n: usize) -> &mut [u32] {
        let sums = &mut self.sums[..n];
        sums.fill(checksum.constant);
        sums
    }

    /// Computes a checksum of the next `n` packets: adds the columns that it depends on to
    /// [`Columns::sums`].
    fn finish_sums(&mut self, checksum: &Checksum, n: usize) {
        let sums = &mut self.sums[..n];
        for part in &checksum.parts {
            let Source { width, column, .. } = part.source;
            if width == Width::Eight {
                add_wide(part, &self.wide[column][..n], sums);
            } else {
                add_narrow(part, &self.narrow[column][..n], sums);
            }
        }
        let results = &mut self.narrow[checksum.write.source.column][..n];
        let pairs = results.iter_mut().zip(sums);
        match checksum.ending {
            Ending::Complement => pairs.for_each(|(result, sum)| *result = !fold(*sum) & 0xffff),
            Ending::ComplementOrOnes => pairs.for_each(|(result, sum)| {
                let sum = !fold(*sum) & 0xffff;
                *result = if sum == 0 { 0xffff } else { sum };
            }),
            Ending::Sum => pairs.for_each(|(result, sum)| *result = fold(*sum)),
        }
    }
}

impl Varying {
    /// The sum of a packet of this length: its addresses, the segment's length and, when it
    /// counts, the segment. The sums of words stay far below 2^32: a packet has 9 KB at most.
    fn sum(&self, slot: &[u8], length: usize) -> u32 {
        let (addresses, bytes) = self.addresses;
        let mut sum = words(&slot[addresses..addresses + bytes]);
        sum += u32::try_from(length.saturating_sub(self.segment)).expect("packets are short");
        if self.whole {
            let end = length.min(slot.len()).max(self.segment);
            sum += words(&slot[self.segment..end]);
            let tail = length.checked_sub(slot.len() + 1);
            sum += tail.map_or(0, |last| u32::from(self.tail[last]));
        }
        fold(sum)
    }
}

/// The sum of the 16-bit words of these bytes.
fn words(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let last = words
        .remainder()
        .first()
        .map_or(0, |&byte| u32::from(byte) << 8);
    words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum::<u32>()
        + last
}

/// Adds the words of a narrow column. The sums cannot overflow: each of the 512 bytes that a
/// program may write counts once, every second one as at most 255·2^16 and the others as at most
/// 255·2^8, and the constant is at most 0xffff. That is 2^32 - 1 in all.
#[inline(always)]
fn add_narrow(part: &Part, values: &[u32], sums: &mut [u32]) {
    let Source {
        width,
        add,
        big_endian,
        ..
    } = part.source;
    let (add, mask) = (low32(add), low32(part.mask));
    let shift = if part.upper { 8 } else { 0 };
    if big_endian || width == Width::One {
        for (sum, value) in sums.iter_mut().zip(values) {
            let words = value.wrapping_add(add) & mask;
            *sum += ((words & 0xffff) + (words >> 16)) << shift;
        }
    } else {
        let unused_bits = if width == Width::Two { 16 } else { 0 };
        for (sum, value) in sums.iter_mut().zip(values) {
            let words = (value.wrapping_add(add).swap_bytes() >> unused_bits) & mask;
            *sum += ((words & 0xffff) + (words >> 16)) << shift;
        }
    }
}

/// Adds the words of a wide column.
#[inline(always)]
fn add_wide(part: &Part, values: &[u64], sums: &mut [u32]) {
    let shift = if part.upper { 8 } else { 0 };
    for (sum, value) in sums.iter_mut().zip(values) {
        let value = value.wrapping_add(part.source.add);
        let value = if part.source.big_endian {
            value
        } else {
            value.swap_bytes()
        };
        let words = value & part.mask;
        let pairs = (words & 0xffff_0000_ffff) + ((words >> 16) & 0xffff_0000_ffff);
        *sum += (low32(pairs) + low32(pairs >> 32)) << shift;
    }
}
