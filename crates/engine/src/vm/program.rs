//! A compiled program: data that the runner goes through without a question.
//!
//! A program runs over a burst, one operation at a time: each variable is a column of values,
//! one a packet, and each write and checksum is a pass over columns. A checksum never reads the
//! packet: what is constant in the header was summed by the compiler, and what the writes before
//! it put in is a part of the sum that is made from their columns (RFC 1624 §3, with the sum of
//! the constant words in the place of the old checksum).

use std::fmt;

/// Bytes of a cache line: staged packet headers are a multiple of this long.
pub(super) const LINE_BYTES: usize = 64;

/// A field engine program, verified and compiled for one packet template.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldProgram {
    /// In the order of their declaration, which is the order of the random draws.
    pub(super) variables: Vec<Variable>,
    /// What is done to each packet, in order.
    pub(super) actions: Vec<Action>,
    /// The variable that is the packet's length.
    pub(super) trim: Option<usize>,
    /// Bytes of the template that it was compiled for.
    pub(super) template_bytes: usize,
    /// Bytes of the packet's beginning that are staged: all changed bytes and more.
    pub(super) header_bytes: usize,
    /// What is written, in order: offset, bytes, and the bits of them in network order.
    pub(super) changed: Vec<(usize, usize, u64)>,
    /// Columns of 32 bits.
    pub(super) narrow_columns: usize,
    /// Columns of 64 bits.
    pub(super) wide_columns: usize,
    /// Random draws of one packet.
    pub(super) draws: u64,
}

/// A variable: where its values come from, and the column that they go to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variable {
    /// The user's name for it.
    pub(super) name: String,
    /// Its size; 8 bytes take a wide column, less a narrow one.
    pub(super) width: Width,
    /// Its column among those of its kind.
    pub(super) column: usize,
    /// Its position, from packet to packet.
    pub(super) walk: Walk,
    /// It moves only when the variable before it passes the end of its cycle.
    pub(super) follows: bool,
    /// The variable after it follows it.
    pub(super) leads: bool,
    /// Each core walks the whole cycle; it does not follow another variable.
    pub(super) each_core: bool,
    /// The value at a position.
    pub(super) values: Mapping,
}

/// The size of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 1 byte.
    One,
    /// 2 bytes.
    Two,
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl Width {
    /// The width of so many bytes; `None` unless it is 1, 2, 4 or 8.
    pub fn from_bytes(bytes: u64) -> Option<Width> {
        match bytes {
            1 => Some(Width::One),
            2 => Some(Width::Two),
            4 => Some(Width::Four),
            8 => Some(Width::Eight),
            _ => None,
        }
    }

    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }

    /// The largest value that fits.
    pub fn max_value(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", 8 * self.bytes())
    }
}

/// How a variable's position moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// A counter.
    Cycle(Cycle),
    /// Random.
    Draw(Draw),
}

/// Positions `0..=last`: packet 0 has `start`, and each packet is `step` further, around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The highest position: one less than the length, which may be 2⁶⁴.
    pub(super) last: u64,
    /// The first packet's position.
    pub(super) start: u64,
    /// Positions from one packet to the next.
    pub(super) step: u64,
}

/// A random position in `0..modulus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Draw {
    /// 1: a number of 15 bits. 2: a number of 31 bits.
    pub(super) draws: u8,
    /// Positions; `u32::MAX` when there are more than a draw reaches.
    pub(super) modulus: u32,
    /// ⌊(2³² - 1) / modulus⌋: for any draw d, d·reciprocal / 2³² is d / modulus or one less.
    pub(super) reciprocal: u32,
}

/// The value at a position.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mapping {
    /// This much more than the position.
    Up(u64),
    /// This less the position.
    Down(u64),
    /// The list's value there.
    List(Box<[u64]>),
    /// The value drawn there from a generator of its own.
    Sequence(Sequence),
    /// A digit of the position.
    Digit(Digit),
}

/// The value `base + position / divisor % modulus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    /// The smallest value.
    pub(super) base: u64,
    /// Positions with the same digit, one after the other; at most 2³².
    pub(super) divisor: u64,
    /// Values of the digit; at most 2³².
    pub(super) modulus: u64,
}

/// Random values that repeat with the cycle of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    /// State of the generator at position 0.
    pub(super) seed: u32,
    /// How each value is drawn.
    pub(super) draw: Draw,
    /// The smallest value.
    pub(super) base: u64,
}

/// What is done to each packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// A value is written.
    Write(Write),
    /// Some bits of a value are written.
    Bits(Bits),
    /// A checksum is computed and written.
    Checksum(Checksum),
}

/// A value to write, or to sum up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The column, among those of the width's kind.
    pub(super) column: usize,
    /// Bytes of it.
    pub(super) width: Width,
    /// Added first, modulo the width.
    pub(super) add: u64,
    /// Byte order in the packet.
    pub(super) big_endian: bool,
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// What.
    pub(super) source: Source,
    /// Where.
    pub(super) offset: usize,
    /// Its bits in network order that are written; the others stay.
    pub(super) mask: u64,
    /// Whose value, as an index into the variables; none there for a checksum.
    pub(super) variable: usize,
}

/// A write of shifted bits: they get a column of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// The variable's value, with its own width, and what is added in 32 bits.
    pub(super) from: Source,
    /// Of a variable of 8 bytes it is the upper 4, otherwise the lower 4.
    pub(super) upper_half: bool,
    /// To the left; to the right when negative.
    pub(super) shift: i32,
    /// The write of the result.
    pub(super) write: Write,
}

/// A checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    /// What users call it.
    pub(super) name: &'static str,
    /// The bytes that it is of, without those of a pseudo header: offset and length.
    pub(super) covers: (usize, usize),
    /// Sum of the words that no earlier instruction changes, at most 0xffff.
    pub(super) constant: u32,
    /// What the others add.
    pub(super) parts: Vec<Part>,
    /// What is summed up anew for each packet, when their lengths differ.
    pub(super) varying: Option<Varying>,
    /// What becomes of the sum.
    pub(super) ending: Ending,
    /// The result and where it is written.
    pub(super) write: Write,
}

/// What becomes of the sum of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its complement is written.
    Complement,
    /// Its complement is written, and all ones for zero, which means none (RFC 768).
    ComplementOrOnes,
    /// It is written as it is.
    Sum,
}

/// A checksum of packets of different lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Varying {
    /// The addresses: offset and length.
    pub(super) addresses: (usize, usize),
    /// Offset of the header whose checksum it is; the checksum is of all from there on.
    pub(super) segment: usize,
    /// The segment's bytes count, and not only its length and the addresses.
    pub(super) whole: bool,
    /// Sums of the template's bytes behind those that are staged: of the first byte, of the
    /// first two, ...
    pub(super) tail: Box<[u16]>,
}

/// What one earlier write adds to a checksum's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The value that was written.
    pub(super) source: Source,
    /// Whose value, as an index into the variables; none there for an earlier checksum.
    pub(super) variable: usize,
    /// Those of its bits (in network order) that are still there and count.
    pub(super) mask: u64,
    /// Its last byte is the upper one of its word: the sum counts 256-fold.
    pub(super) upper: bool,
}

impl FieldProgram {
    /// Whether packets differ from the template at all.
    pub fn changes_packets(&self) -> bool {
        !self.actions.is_empty() || self.trim.is_some()
    }

    /// The length that every packet has, without FCS; `None` when it changes.
    pub fn fixed_length(&self) -> Option<usize> {
        self.trim.is_none().then_some(self.template_bytes)
    }

    /// Bytes at the end of the template that no packet changes.
    pub fn constant_end_bytes(&self) -> usize {
        self.template_bytes.saturating_sub(self.header_bytes)
    }

    /// The length of packets, without FCS, in the middle of the shortest and the longest.
    pub fn mean_length(&self) -> f64 {
        let Some(trim) = self.trim else {
            return self.template_bytes as f64;
        };
        let variable = &self.variables[trim];
        let positions = match variable.walk {
            Walk::Cycle(cycle) => cycle.last as f64,
            Walk::Draw(draw) => f64::from(draw.modulus) - 1.0,
        };
        match &variable.values {
            Mapping::Up(base) => *base as f64 + positions / 2.0,
            Mapping::Down(base) => *base as f64 - positions / 2.0,
            Mapping::Digit(digit) => digit.base as f64 + (digit.modulus as f64 - 1.0) / 2.0,
            Mapping::Sequence(sequence) => {
                sequence.base as f64 + (f64::from(sequence.draw.modulus) - 1.0) / 2.0
            }
            Mapping::List(values) => {
                let (min, max) = (values.iter().min(), values.iter().max());
                min.zip(max)
                    .map_or(0.0, |(min, max)| (min + max) as f64 / 2.0)
            }
        }
    }
}

impl Action {
    /// The bytes that it changes.
    pub(super) fn write(&self) -> &Write {
        match self {
            Action::Write(write) => write,
            Action::Bits(bits) => &bits.write,
            Action::Checksum(checksum) => &checksum.write,
        }
    }
}

impl Draw {
    /// One of `positions` (0 stands for 2⁶⁴) at random, from a number of 15 or of 31 bits.
    pub(super) fn new(draws: u8, positions: u64) -> Draw {
        let modulus = match u32::try_from(positions) {
            Ok(positions) if positions > 0 => positions,
            _ => u32::MAX,
        };
        Draw {
            draws,
            modulus,
            reciprocal: u32::MAX / modulus,
        }
    }
}

/// Draws that make a value of this width.
pub(super) fn draws_of(width: Width) -> u8 {
    match width {
        Width::One | Width::Two => 1,
        Width::Four | Width::Eight => 2,
    }
}

/// A sum of words as one word: the carries are added back in (RFC 1071 §1).
#[inline(always)]
pub(super) fn fold(sum: u32) -> u32 {
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}
