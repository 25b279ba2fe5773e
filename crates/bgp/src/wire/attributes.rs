//! Path attributes (RFC 4271 §4.3) that routes share. The next hop is not among them: it is the session's.

use std::net::Ipv4Addr;

use super::open::AS_TRANS;
use super::reader::Reader;

/// Types of attributes.
pub mod kind {
    /// ORIGIN.
    pub const ORIGIN: u8 = 1;
    /// AS_PATH.
    pub const AS_PATH: u8 = 2;
    /// NEXT_HOP.
    pub const NEXT_HOP: u8 = 3;
    /// MULTI_EXIT_DISC.
    pub const MULTI_EXIT_DISC: u8 = 4;
    /// LOCAL_PREF.
    pub const LOCAL_PREF: u8 = 5;
    /// ATOMIC_AGGREGATE.
    pub const ATOMIC_AGGREGATE: u8 = 6;
    /// AGGREGATOR.
    pub const AGGREGATOR: u8 = 7;
    /// COMMUNITIES (RFC 1997).
    pub const COMMUNITIES: u8 = 8;
    /// MP_REACH_NLRI (RFC 4760).
    pub const MP_REACH_NLRI: u8 = 14;
    /// MP_UNREACH_NLRI (RFC 4760).
    pub const MP_UNREACH_NLRI: u8 = 15;
    /// AS4_PATH (RFC 6793).
    pub const AS4_PATH: u8 = 17;
    /// LARGE_COMMUNITY (RFC 8092).
    pub const LARGE_COMMUNITIES: u8 = 32;
}

/// Flags of attributes.
pub mod flag {
    /// Not every speaker must know it.
    pub const OPTIONAL: u8 = 0x80;
    /// It goes along with the route.
    pub const TRANSITIVE: u8 = 0x40;
    /// Its length has two octets.
    pub const EXTENDED_LENGTH: u8 = 0x10;
}

const OPTIONAL_TRANSITIVE: u8 = flag::OPTIONAL | flag::TRANSITIVE;
/// Most AS numbers of a segment.
const SEGMENT_LEN_MAX: usize = 255;
const AS_SET: u8 = 1;
const AS_SEQUENCE: u8 = 2;

/// ORIGIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PathOrigin {
    /// From an interior protocol.
    #[default]
    Igp,
    /// From EGP.
    Egp,
    /// By other means.
    Incomplete,
}

impl PathOrigin {
    /// Its octet on the wire.
    pub fn octet(self) -> u8 {
        self as u8
    }

    /// The origin of an octet.
    pub fn of(octet: u8) -> Option<Self> {
        [Self::Igp, Self::Egp, Self::Incomplete]
            .get(usize::from(octet))
            .copied()
    }
}

/// A part of an AS path, of 1 to 255 numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AsSegment {
    /// Autonomous systems in order, the nearest first.
    Sequence(Vec<u32>),
    /// Autonomous systems in no order.
    Set(Vec<u32>),
}

impl AsSegment {
    fn parts(&self) -> (u8, &[u32]) {
        match self {
            Self::Sequence(numbers) => (AS_SEQUENCE, numbers),
            Self::Set(numbers) => (AS_SET, numbers),
        }
    }
}

/// An attribute that has no field of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnknownAttribute {
    /// Its flags, without that of the length.
    pub flags: u8,
    /// Its type.
    pub kind: u8,
    /// Its value.
    pub value: Vec<u8>,
}

/// What routes of one announcement have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PathAttributes {
    /// ORIGIN.
    pub origin: PathOrigin,
    /// AS_PATH, without the number of the session that announces it.
    pub as_path: Vec<AsSegment>,
    /// MULTI_EXIT_DISC.
    pub multi_exit_disc: Option<u32>,
    /// LOCAL_PREF, for sessions within an autonomous system.
    pub local_pref: Option<u32>,
    /// ATOMIC_AGGREGATE.
    pub atomic_aggregate: bool,
    /// AGGREGATOR: who made the route of others.
    pub aggregator: Option<(u32, Ipv4Addr)>,
    /// COMMUNITIES, the AS number in the upper half.
    pub communities: Vec<u32>,
    /// LARGE_COMMUNITY.
    pub large_communities: Vec<[u32; 3]>,
    /// All others, in the order in which they were read.
    pub others: Vec<UnknownAttribute>,
}

/// How attributes are written for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeEncoding {
    /// Whether AS numbers have four octets.
    pub four_octet_as: bool,
    /// Whether the peer is in another autonomous system: a number is put in front of the path, and
    /// LOCAL_PREF is left out. Else LOCAL_PREF is there, 100 where the routes say none.
    pub external: bool,
}

/// Where in the emitted octets a session's own values belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeOffsets {
    /// The first AS number of the path, of two or four octets.
    pub first_as: Option<usize>,
    /// The value of NEXT_HOP.
    pub next_hop: Option<usize>,
}

/// Appends the head of an attribute.
pub(super) fn emit_head(flags: u8, kind: u8, length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(length) => out.extend_from_slice(&[flags, kind, length]),
        Err(_) => {
            out.extend_from_slice(&[flags | flag::EXTENDED_LENGTH, kind]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
}

/// Appends the head of a multiprotocol attribute, always with a length of two octets.
pub(crate) fn emit_mp_head(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&[flag::OPTIONAL | flag::EXTENDED_LENGTH, kind]);
    out.extend_from_slice(&(length as u16).to_be_bytes());
}

fn emit_u32s(flags: u8, kind: u8, values: impl ExactSizeIterator<Item = u32>, out: &mut Vec<u8>) {
    emit_head(flags, kind, 4 * values.len(), out);
    values.for_each(|value| out.extend_from_slice(&value.to_be_bytes()));
}

fn is_large(number: u32) -> bool {
    number > u16::MAX.into()
}

impl PathAttributes {
    /// Whether an autonomous system is in the path.
    pub fn has_as(&self, number: u32) -> bool {
        let mut segments = self.as_path.iter();
        segments.any(|segment| segment.parts().1.contains(&number))
    }

    /// Appends all attributes in the order of their types, with `next_hop` where one is given, and zeros
    /// where an AS number is put in front. What they need must be below 65,536 octets; who packs them into
    /// messages checks the length of what was appended.
    pub fn emit(
        &self,
        encoding: AttributeEncoding,
        next_hop: Option<Ipv4Addr>,
        out: &mut Vec<u8>,
    ) -> AttributeOffsets {
        let mut offsets = AttributeOffsets::default();
        emit_head(flag::TRANSITIVE, kind::ORIGIN, 1, out);
        out.push(self.origin.octet());
        offsets.first_as = self.emit_as_path(encoding, out);
        if let Some(next_hop) = next_hop {
            emit_head(flag::TRANSITIVE, kind::NEXT_HOP, 4, out);
            offsets.next_hop = Some(out.len());
            out.extend_from_slice(&next_hop.octets());
        }
        if let Some(value) = self.multi_exit_disc {
            emit_u32s(
                flag::OPTIONAL,
                kind::MULTI_EXIT_DISC,
                [value].into_iter(),
                out,
            );
        }
        let local_pref = (!encoding.external).then(|| self.local_pref.unwrap_or(100));
        if let Some(value) = local_pref {
            emit_u32s(flag::TRANSITIVE, kind::LOCAL_PREF, [value].into_iter(), out);
        }
        if self.atomic_aggregate {
            emit_head(flag::TRANSITIVE, kind::ATOMIC_AGGREGATE, 0, out);
        }
        self.emit_aggregator(encoding, out);
        if !self.communities.is_empty() {
            let values = self.communities.iter().copied();
            emit_u32s(OPTIONAL_TRANSITIVE, kind::COMMUNITIES, values, out);
        }
        self.emit_as4_path(encoding, out);
        if !self.large_communities.is_empty() {
            let length = 12 * self.large_communities.len();
            emit_head(OPTIONAL_TRANSITIVE, kind::LARGE_COMMUNITIES, length, out);
            for value in self.large_communities.iter().flatten() {
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        for other in &self.others {
            emit_head(other.flags, other.kind, other.value.len(), out);
            out.extend_from_slice(&other.value);
        }
        offsets
    }

    /// The path with one more number in front where the peer is external. Gives where that number belongs.
    fn emit_as_path(&self, encoding: AttributeEncoding, out: &mut Vec<u8>) -> Option<usize> {
        let width = if encoding.four_octet_as { 4 } else { 2 };
        let joins = match self.as_path.first() {
            Some(AsSegment::Sequence(numbers)) => numbers.len() < SEGMENT_LEN_MAX,
            _ => false,
        };
        let segments = self.as_path.iter().map(|s| 2 + width * s.parts().1.len());
        let mut length: usize = segments.sum();
        if encoding.external {
            length += if joins { width } else { 2 + width };
        }
        emit_head(flag::TRANSITIVE, kind::AS_PATH, length, out);
        let mut first_as = None;
        if encoding.external && !joins {
            out.extend_from_slice(&[AS_SEQUENCE, 1]);
            first_as = Some(out.len());
            out.extend_from_slice(&[0; 4][..width]);
        }
        for (index, segment) in self.as_path.iter().enumerate() {
            let (segment_type, numbers) = segment.parts();
            let leads = encoding.external && joins && index == 0;
            out.extend_from_slice(&[segment_type, (numbers.len() + usize::from(leads)) as u8]);
            if leads {
                first_as = Some(out.len());
                out.extend_from_slice(&[0; 4][..width]);
            }
            for number in numbers {
                if encoding.four_octet_as {
                    out.extend_from_slice(&number.to_be_bytes());
                } else {
                    let number = u16::try_from(*number).unwrap_or(AS_TRANS);
                    out.extend_from_slice(&number.to_be_bytes());
                }
            }
        }
        first_as
    }

    fn emit_aggregator(&self, encoding: AttributeEncoding, out: &mut Vec<u8>) {
        let Some((number, router)) = self.aggregator else {
            return;
        };
        if encoding.four_octet_as {
            emit_head(OPTIONAL_TRANSITIVE, kind::AGGREGATOR, 8, out);
            out.extend_from_slice(&number.to_be_bytes());
        } else {
            emit_head(OPTIONAL_TRANSITIVE, kind::AGGREGATOR, 6, out);
            let number = u16::try_from(number).unwrap_or(AS_TRANS);
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&router.octets());
    }

    /// The path in four octets for a peer that has two, where a number of it needs them (RFC 6793 §4.2.2).
    fn emit_as4_path(&self, encoding: AttributeEncoding, out: &mut Vec<u8>) {
        let mut numbers = self.as_path.iter().flat_map(|s| s.parts().1);
        if encoding.four_octet_as || !numbers.any(|number| is_large(*number)) {
            return;
        }
        let segments = self.as_path.iter().map(|s| 2 + 4 * s.parts().1.len());
        let length = segments.sum();
        emit_head(OPTIONAL_TRANSITIVE, kind::AS4_PATH, length, out);
        for segment in &self.as_path {
            let (segment_type, numbers) = segment.parts();
            out.extend_from_slice(&[segment_type, numbers.len() as u8]);
            numbers
                .iter()
                .for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        }
    }
}

/// One attribute as it was received.
#[derive(Debug, Clone, Copy)]
pub struct RawAttribute<'a> {
    /// Its flags.
    pub flags: u8,
    /// Its type.
    pub kind: u8,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> RawAttribute<'a> {
    /// Takes the next attribute off the front; `None` where it does not end within the reader.
    pub fn parse(reader: &mut Reader<'a>) -> Option<Self> {
        let flags = reader.u8()?;
        let kind = reader.u8()?;
        let length = if flags & flag::EXTENDED_LENGTH == 0 {
            reader.u8()?.into()
        } else {
            usize::from(reader.u16()?)
        };
        let value = reader.bytes(length)?;
        Some(Self { flags, kind, value })
    }

    /// Whether the flags are those that the attribute must have; those of unknown ones are right.
    pub fn has_right_flags(&self) -> bool {
        let needed = match self.kind {
            kind::ORIGIN..=kind::NEXT_HOP | kind::LOCAL_PREF | kind::ATOMIC_AGGREGATE => {
                flag::TRANSITIVE
            }
            kind::MULTI_EXIT_DISC | kind::MP_REACH_NLRI | kind::MP_UNREACH_NLRI => flag::OPTIONAL,
            kind::AGGREGATOR | kind::COMMUNITIES | kind::LARGE_COMMUNITIES => OPTIONAL_TRANSITIVE,
            _ => return true,
        };
        self.flags & OPTIONAL_TRANSITIVE == needed
    }

    /// The value as an AS path.
    pub fn as_path(&self, four_octet_as: bool) -> Option<Vec<AsSegment>> {
        let mut reader = Reader(self.value);
        let mut segments = Vec::new();
        while !reader.is_empty() {
            let segment_type = reader.u8()?;
            let count = reader.u8().filter(|count| *count != 0)?;
            let mut numbers = Vec::with_capacity(count.into());
            for _ in 0..count {
                numbers.push(if four_octet_as {
                    reader.u32()?
                } else {
                    reader.u16()?.into()
                });
            }
            segments.push(match segment_type {
                AS_SET => AsSegment::Set(numbers),
                AS_SEQUENCE => AsSegment::Sequence(numbers),
                // Segments of confederations come from within one, and nobody is in one here.
                _ => return None,
            });
        }
        Some(segments)
    }

    /// The value as one number of four octets.
    pub fn u32(&self) -> Option<u32> {
        self.value.try_into().ok().map(u32::from_be_bytes)
    }

    /// The value as numbers of four octets, at least `multiple` and always a multiple of them.
    pub fn u32s(&self, multiple: usize) -> Option<Vec<u32>> {
        let is_whole = !self.value.is_empty() && self.value.len() % (4 * multiple) == 0;
        let octets = self.value.chunks_exact(4);
        is_whole.then(|| {
            octets
                .map(|o| u32::from_be_bytes([o[0], o[1], o[2], o[3]]))
                .collect()
        })
    }

    /// The value as AGGREGATOR.
    pub fn aggregator(&self, four_octet_as: bool) -> Option<(u32, Ipv4Addr)> {
        let mut reader = Reader(self.value);
        let number = if four_octet_as {
            reader.u32()?
        } else {
            reader.u16()?.into()
        };
        let router = reader.ipv4()?;
        reader.is_empty().then_some((number, router))
    }
}
