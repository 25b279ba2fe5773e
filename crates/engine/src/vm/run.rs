//! The runner: a burst of packets, one operation at a time.
//!
//! The beginnings of up to [`BURST`] packets are staged, as far as programs may change them. A
//! stage that held packets of the same template and the same changed bytes before gets only
//! those bytes written; then a packet is a straight copy.
//!
//! What is written are columns: one value of each packet of the burst, computed together. The loops
//! over them have no branch and no division inside, so that they compile to vector instructions.
//! Those of checksums are in `checksum`, those of single bits in `masked`.

use super::program::{
    Action, Draw, FieldProgram, LINE_BYTES, Mapping, Sequence, Source, Variable, Walk, Width,
};
use super::sequence::Reader;
use super::state::{
    CounterState, State, Turns, count, count_chained, count_digits, count_straight,
};
use super::{BURST, low8, low16, low32};
use crate::rng::{Jump, draw15};

/// The scratch of one core, for the bursts of all its streams, one after the other.
#[derive(Clone, Debug)]
pub struct Stage {
    pub(super) columns: Columns,
    pub(super) lengths: [u16; BURST],
    /// The beginnings of packets, each `slot_bytes` long.
    pub(super) slots: Vec<u8>,
    pub(super) slot_bytes: usize,
    /// How many slots hold `header`, but for the bytes in `changed`.
    staged: usize,
    header: Vec<u8>,
    changed: Vec<(usize, usize, u64)>,
}

impl Default for Stage {
    fn default() -> Stage {
        Stage {
            columns: Columns::default(),
            lengths: [0; BURST],
            slots: Vec::new(),
            slot_bytes: 0,
            staged: 0,
            header: Vec::new(),
            changed: Vec::new(),
        }
    }
}

impl Stage {
    /// Prepares the stream's next `n` packets, at most [`BURST`], and moves `state` on by them.
    /// `template` is the one that `program` was compiled for, and `state` was made for `program`.
    pub fn run(&mut self, program: &FieldProgram, state: &mut State, template: &[u8], n: usize) {
        assert!(n <= BURST, "a burst has at most {BURST} packets, not {n}");
        debug_assert_eq!(template.len(), program.template_bytes);
        self.prepare_slots(program, template, n);
        self.columns.fill(program, state, n);
        self.set_lengths(program, template.len(), n);
        for action in &program.actions {
            match action {
                Action::Write(_) => {}
                Action::Bits(bits) => self.columns.shift(bits, n),
                Action::Checksum(checksum) => self.sum(checksum, n),
            }
            let write = action.write();
            if write.mask == write.source.width.max_value() {
                self.write_column(&write.source, write.offset, n);
            } else {
                self.write_bits(write, n);
            }
        }
    }

    /// Bytes of packet `i` of the burst, without FCS.
    #[inline(always)]
    pub fn length(&self, i: usize) -> usize {
        usize::from(self.lengths[i])
    }

    /// Writes packet `i` of the burst into `out`, which has [`Stage::length`] bytes. `template`
    /// is that of the burst.
    #[inline(always)]
    pub fn write(&self, i: usize, template: &[u8], out: &mut [u8]) {
        let slot = &self.slots[i * self.slot_bytes..(i + 1) * self.slot_bytes];
        match slot.first_chunk() {
            Some(line) if out.len() <= LINE_BYTES => copy_short(line, out),
            _ => copy_long(slot, template, out),
        }
    }

    /// As [`Stage::write`], where the other bytes of the template are in their place already: of
    /// what packet `i` has of it, all but the last [`FieldProgram::constant_end_bytes`] of the template.
    #[inline(always)]
    pub fn write_beginning(&self, i: usize, out: &mut [u8]) {
        let slot = &self.slots[i * self.slot_bytes..(i + 1) * self.slot_bytes];
        match (slot.first_chunk::<LINE_BYTES>(), out.first_chunk_mut()) {
            (Some(line), Some(out)) if slot.len() == LINE_BYTES => *out = *line,
            _ => {
                let staged = slot.len().min(out.len());
                out[..staged].copy_from_slice(&slot[..staged]);
            }
        }
    }

    /// Makes `n` slots hold the template's beginning, but for the bytes that the program writes.
    fn prepare_slots(&mut self, program: &FieldProgram, template: &[u8], n: usize) {
        let header = &template[..template.len().min(program.header_bytes)];
        let reusable = self.slot_bytes == program.header_bytes
            && self.header == header
            && self.changed == program.changed;
        if !reusable {
            self.staged = 0;
            self.slot_bytes = program.header_bytes;
            header.clone_into(&mut self.header);
            program.changed.clone_into(&mut self.changed);
            self.slots.resize(BURST * self.slot_bytes, 0);
        }
        if self.staged < n {
            let fresh = &mut self.slots[self.staged * self.slot_bytes..n * self.slot_bytes];
            stage_header(header, self.slot_bytes, fresh);
            self.staged = n;
        }
    }

    fn write_column(&mut self, source: &Source, offset: usize, n: usize) {
        let slots = self.slots.chunks_exact_mut(self.slot_bytes);
        let fields = slots.map(|slot| &mut slot[offset..]);
        if source.width == Width::Eight {
            let values = self.columns.wide[source.column][..n].iter();
            let values = values.map(|value| value.wrapping_add(source.add));
            if source.big_endian {
                put(fields, values, u64::to_be_bytes);
            } else {
                put(fields, values, u64::to_le_bytes);
            }
            return;
        }
        let add = low32(source.add);
        let values = self.columns.narrow[source.column][..n].iter();
        let values = values.map(|value| value.wrapping_add(add));
        match (source.width, source.big_endian) {
            (Width::One, _) => put(fields, values, |value| [low8(value)]),
            (Width::Two, true) => put(fields, values, |value| low16(value).to_be_bytes()),
            (Width::Two, false) => put(fields, values, |value| low16(value).to_le_bytes()),
            (_, true) => put(fields, values, u32::to_be_bytes),
            (_, false) => put(fields, values, u32::to_le_bytes),
        }
    }

    fn set_lengths(&mut self, program: &FieldProgram, template_bytes: usize, n: usize) {
        let template_bytes = u16::try_from(template_bytes).unwrap_or(u16::MAX);
        let lengths = &mut self.lengths[..n];
        let Some(variable) = program.trim else {
            lengths.fill(template_bytes);
            return;
        };
        let values = &self.columns.narrow[program.variables[variable].column];
        for (length, &value) in lengths.iter_mut().zip(values) {
            *length = low16(value).min(template_bytes);
        }
    }
}

/// Writes the beginning of the template into slots, each `slot_bytes` long. Streams that take turns
/// write it for each burst, and most beginnings fit a line: these are copied by a constant size.
#[inline(never)]
fn stage_header(header: &[u8], slot_bytes: usize, slots: &mut [u8]) {
    let mut line = [0; LINE_BYTES];
    if slot_bytes == LINE_BYTES {
        line[..header.len()].copy_from_slice(header);
    }
    for slot in slots.chunks_exact_mut(slot_bytes) {
        match slot.first_chunk_mut() {
            Some(slot) if slot_bytes == LINE_BYTES => *slot = line,
            _ => slot[..header.len()].copy_from_slice(header),
        }
    }
}

/// Puts the bytes of each value at the beginning of each field.
#[inline(always)]
fn put<'a, T, const N: usize>(
    fields: impl Iterator<Item = &'a mut [u8]>,
    values: impl Iterator<Item = T>,
    bytes: impl Fn(T) -> [u8; N],
) {
    for (field, value) in fields.zip(values) {
        field[..N].copy_from_slice(&bytes(value));
    }
}

/// Copies the beginning of a line to a packet of at most its length: from half a line up in two
/// copies of constant size, which overlap.
#[inline(always)]
fn copy_short(line: &[u8; LINE_BYTES], out: &mut [u8]) {
    const HALF: usize = LINE_BYTES / 2;
    let used = &line[..out.len()];
    if let (Some(head), Some(tail)) = (used.first_chunk::<HALF>(), used.last_chunk::<HALF>()) {
        out[..HALF].copy_from_slice(head);
        let tail_at = out.len() - HALF;
        out[tail_at..].copy_from_slice(tail);
    } else {
        out.copy_from_slice(used);
    }
}

/// Copies a packet that is longer than a line: its beginning from the slot, the rest from the
/// template.
#[inline(always)]
fn copy_long(slot: &[u8], template: &[u8], out: &mut [u8]) {
    let staged = slot.len().min(out.len());
    let (head, tail) = out.split_at_mut(staged);
    head.copy_from_slice(&slot[..staged]);
    tail.copy_from_slice(&template[staged..staged + tail.len()]);
}

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
    pub(super) sums: [u32; BURST],
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
    fn fill(&mut self, program: &FieldProgram, state: &mut State, n: usize) {
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
