//! Columns: one value of each packet of a burst, computed together.
//!
//! The loops have no branch and no division inside, so that they compile to vector instructions.

use crate::rng::{Jump, draw15};

use super::BURST;
use super::digit::count_digits;
use super::instruction::Width;
use super::odometer::{Turns, count_chained};
use super::program::{
    Bits, Checksum, Draw, Ending, FieldProgram, Mapping, Part, Sequence, Source, Variable, Walk,
    fold,
};
use super::sequence::Reader;
use super::state::{CounterState, State};

/// The columns of one burst.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Values of 1, 2 and 4 bytes; of the smaller ones the upper bits mean nothing.
    pub(super) narrow: Vec<[u32; BURST]>,
    /// Values of 8 bytes.
    pub(super) wide: Vec<[u64; BURST]>,
    /// The random generator, before each packet's next draw.
    seeds: [u32; BURST],
    /// How the variables of a chain move one another.
    turns: Turns,
    /// The sums of a checksum in the making.
    sums: [u32; BURST],
}

impl Default for Columns {
    fn default() -> Columns {
        Columns {
            narrow: Vec::new(),
            wide: Vec::new(),
            seeds: [0; BURST],
            turns: [0; BURST],
            sums: [0; BURST],
        }
    }
}

impl Columns {
    /// Computes all variables of the next `n` packets, and moves `state` on.
    pub(super) fn fill(&mut self, program: &FieldProgram, state: &mut State, n: usize) {
        if self.narrow.len() < program.narrow_columns {
            self.narrow.resize(program.narrow_columns, [0; BURST]);
        }
        if self.wide.len() < program.wide_columns {
            self.wide.resize(program.wide_columns, [0; BURST]);
        }
        let seeds = &mut self.seeds[..n];
        if let Some(random) = &mut state.random {
            random.fill(seeds);
        }
        for (variable, counter) in program.variables.iter().zip(&mut state.counters) {
            if variable.leads && !variable.follows {
                self.turns[..n].fill(0);
            }
            let feed = Feed {
                variable,
                counter,
                seeds,
                turns: &mut self.turns[..n],
            };
            if variable.width == Width::Eight {
                fill_wide(feed, &mut self.wide[variable.column][..n]);
            } else {
                fill_narrow(feed, &mut self.narrow[variable.column][..n]);
            }
        }
    }

    /// The sums that a checksum of `n` packets begins with.
    pub(super) fn sums(&mut self, checksum: &Checksum, n: usize) -> &mut [u32] {
        let sums = &mut self.sums[..n];
        sums.fill(checksum.constant);
        sums
    }

    /// Computes a checksum of the next `n` packets: adds the columns that it depends on to
    /// [`Columns::sums`].
    pub(super) fn finish_sums(&mut self, checksum: &Checksum, n: usize) {
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

/// What the values of one variable are made from.
struct Feed<'a> {
    variable: &'a Variable,
    counter: &'a mut CounterState,
    seeds: &'a mut [u32],
    turns: &'a mut [u32],
}

impl Feed<'_> {
    fn in_chain(&self) -> bool {
        self.variable.follows || self.variable.leads
    }

    fn reader(&self, sequence: Sequence) -> Reader {
        let CounterState { position, hop, .. } = *self.counter;
        Reader::new(sequence, low32(position), low32(hop))
    }
}

impl Columns {
    /// Makes the column that a write of some bits takes its value from.
    pub(super) fn shift(&mut self, bits: &Bits, n: usize) {
        let Source {
            width, column, add, ..
        } = bits.from;
        let (add, own) = (low32(add), low32(width.max_value()));
        let shift = bits.shift.unsigned_abs();
        let shifted = |value: u32| {
            let value = (value & own).wrapping_add(add);
            if bits.shift < 0 {
                value >> shift
            } else {
                value << shift
            }
        };
        let to = bits.write.source.column;
        if width == Width::Eight {
            let half = if bits.upper_half { 32 } else { 0 };
            let results = &mut self.narrow[to][..n];
            for (result, &value) in results.iter_mut().zip(&self.wide[column]) {
                *result = shifted(low32(value >> half));
            }
            return;
        }
        // The new column comes after that of its variable.
        let (before, after) = self.narrow.split_at_mut(to);
        for (result, &value) in after[0][..n].iter_mut().zip(&before[column]) {
            *result = shifted(value);
        }
    }
}

fn fill_narrow(feed: Feed<'_>, values: &mut [u32]) {
    match &feed.variable.values {
        Mapping::Up(base) => {
            let base = low32(*base);
            walk_narrow(feed, values, |at| base.wrapping_add(at));
        }
        Mapping::Down(base) => {
            let base = low32(*base);
            walk_narrow(feed, values, |at| base.wrapping_sub(at));
        }
        Mapping::List(list) => walk_narrow(feed, values, |at| low32(list[at as usize])),
        Mapping::Sequence(sequence) => {
            let (base, mut reader) = (low32(sequence.base), feed.reader(*sequence));
            walk_narrow(feed, values, |at| base.wrapping_add(reader.read(at)));
        }
        Mapping::Digit(digit) => {
            let base = low32(digit.base);
            count_digits(feed.counter, *digit, values, |at| {
                base.wrapping_add(low32(at))
            });
        }
    }
}

#[inline(always)]
fn walk_narrow(feed: Feed<'_>, values: &mut [u32], mut value: impl FnMut(u32) -> u32) {
    let in_chain = feed.in_chain();
    match &feed.variable.walk {
        Walk::Draw(draw) => draw_column(*draw, feed.seeds, values, value),
        Walk::Cycle(_) if in_chain => {
            count_chained(feed.counter, feed.turns, values, |at| value(low32(at)));
        }
        Walk::Cycle(_) if feed.counter.wraps_once_at_most() => {
            count_straight(feed.counter, values, value);
        }
        Walk::Cycle(_) => count(feed.counter, values, |at| value(low32(at))),
    }
}

fn fill_wide(feed: Feed<'_>, values: &mut [u64]) {
    match &feed.variable.values {
        Mapping::Up(base) => walk_wide(feed, values, |at| base.wrapping_add(at)),
        Mapping::Down(base) => walk_wide(feed, values, |at| base.wrapping_sub(at)),
        Mapping::List(list) => walk_wide(feed, values, |at| list[low32(at) as usize]),
        Mapping::Sequence(sequence) => {
            let (base, mut reader) = (sequence.base, feed.reader(*sequence));
            walk_wide(feed, values, |at| {
                base.wrapping_add(u64::from(reader.read(low32(at))))
            });
        }
        Mapping::Digit(digit) => {
            count_digits(feed.counter, *digit, values, |at| digit.base + at);
        }
    }
}

#[inline(always)]
fn walk_wide(feed: Feed<'_>, values: &mut [u64], mut value: impl FnMut(u64) -> u64) {
    let in_chain = feed.in_chain();
    match &feed.variable.walk {
        Walk::Draw(draw) => draw_column(*draw, feed.seeds, values, |at| value(u64::from(at))),
        Walk::Cycle(_) if in_chain => count_chained(feed.counter, feed.turns, values, value),
        Walk::Cycle(_) => count(feed.counter, values, value),
    }
}

impl CounterState {
    /// Whether a whole burst passes the end of the cycle once at most, and 32 bits suffice.
    #[inline(always)]
    fn wraps_once_at_most(&self) -> bool {
        self.last <= u64::from(u32::MAX) && self.hop <= self.last / BURST as u64
    }
}

/// Positions of a counter, when [`CounterState::wraps_once_at_most`].
#[inline(always)]
fn count_straight(
    counter: &mut CounterState,
    values: &mut [u32],
    mut value: impl FnMut(u32) -> u32,
) {
    let (start, hop, last) = (
        low32(counter.position),
        low32(counter.hop),
        low32(counter.last),
    );
    let length = last.wrapping_add(1);
    let mut offset = 0u32;
    for slot in values.iter_mut() {
        let around = if start > last - offset { length } else { 0 };
        *slot = value(start.wrapping_add(offset).wrapping_sub(around));
        offset = offset.wrapping_add(hop);
    }
    let next = u64::from(start) + u64::from(offset);
    counter.position = if next > counter.last {
        next - counter.last - 1
    } else {
        next
    };
}

/// Positions of any counter.
#[inline(always)]
fn count<T>(counter: &mut CounterState, values: &mut [T], mut value: impl FnMut(u64) -> T) {
    let CounterState { hop, last, .. } = *counter;
    let mut position = counter.position;
    for slot in values {
        *slot = value(position);
        let room = last - position;
        position = if hop > room {
            hop - room - 1
        } else {
            position + hop
        };
    }
    counter.position = position;
}

/// Random positions; the seeds move on by the draws.
#[inline(always)]
fn draw_column<T>(
    draw: Draw,
    seeds: &mut [u32],
    values: &mut [T],
    mut value: impl FnMut(u32) -> T,
) {
    if draw.draws == 1 {
        for (slot, seed) in values.iter_mut().zip(seeds) {
            *seed = Jump::ONE.apply(*seed);
            *slot = value(draw.reduce(draw15(*seed)));
        }
    } else {
        for (slot, seed) in values.iter_mut().zip(seeds) {
            let first = Jump::ONE.apply(*seed);
            *seed = Jump::ONE.apply(first);
            *slot = value(draw.reduce((draw15(first) << 16) | draw15(*seed)));
        }
    }
}

impl Draw {
    /// `drawn % modulus`, for a number of at most 31 bits.
    #[inline(always)]
    pub(super) fn reduce(self, drawn: u32) -> u32 {
        let quotient = low32((u64::from(drawn) * u64::from(self.reciprocal)) >> 32);
        let rest = drawn - quotient * self.modulus;
        if rest >= self.modulus {
            rest - self.modulus
        } else {
            rest
        }
    }
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

/// The lower 32 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
pub(super) fn low32(value: u64) -> u32 {
    value as u32
}

/// The lower 16 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
pub(super) fn low16(value: u32) -> u16 {
    value as u16
}

/// The lower 8 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
pub(super) fn low8(value: u32) -> u8 {
    value as u8
}
