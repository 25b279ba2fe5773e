//! The runner: a burst of packets, one operation at a time.
//!
//! The beginnings of up to [`BURST`] packets are staged, as far as programs may change them. A
//! stage that held packets of the same template and the same changed bytes before gets only
//! those bytes written; then a packet is a straight copy.

use super::BURST;
use super::column::{Columns, low8, low16, low32};
use super::instruction::Width;
use super::program::{Action, Checksum, FieldProgram, LINE_BYTES, Source, Varying, Write, fold};
use super::state::State;

/// The scratch of one core, for the bursts of all its streams, one after the other.
#[derive(Clone, Debug)]
pub struct Stage {
    columns: Columns,
    lengths: [u16; BURST],
    /// The beginnings of packets, each `slot_bytes` long.
    slots: Vec<u8>,
    slot_bytes: usize,
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
            for slot in self.slots[..n * self.slot_bytes]
                .chunks_exact_mut(self.slot_bytes)
                .skip(self.staged)
            {
                slot[..header.len()].copy_from_slice(header);
            }
            self.staged = n;
        }
    }

    /// Computes a checksum. From packets of different lengths it is summed up anew: how much of
    /// what was written counts, is different in each.
    fn sum(&mut self, checksum: &Checksum, n: usize) {
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

    /// Writes some bits of a column. The others are the template's or those that an instruction
    /// before put there: each bit has the same writers in every packet, in the same order.
    fn write_bits(&mut self, write: &Write, n: usize) {
        let Write {
            source,
            offset,
            mask,
            ..
        } = *write;
        let mask = low32(mask);
        let slots = self.slots.chunks_exact_mut(self.slot_bytes);
        let fields = slots.map(|slot| &mut slot[offset..]);
        let values = self.columns.narrow[source.column][..n].iter();
        let values = values.map(|value| match (source.width, source.big_endian) {
            (Width::Two, false) => value.swap_bytes() >> 16,
            (Width::Four, false) => value.swap_bytes(),
            _ => *value,
        });
        match source.width {
            Width::One => merge(fields, values.map(|v| [low8(v)]), [low8(mask)]),
            Width::Two => {
                let values = values.map(|value| low16(value).to_be_bytes());
                merge(fields, values, low16(mask).to_be_bytes());
            }
            _ => merge(fields, values.map(u32::to_be_bytes), mask.to_be_bytes()),
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

/// Puts those bits of each value that are in the mask at the beginning of each field.
#[inline(always)]
fn merge<'a, const N: usize>(
    fields: impl Iterator<Item = &'a mut [u8]>,
    values: impl Iterator<Item = [u8; N]>,
    mask: [u8; N],
) {
    for (field, value) in fields.zip(values) {
        for ((byte, new), mask) in field.iter_mut().zip(value).zip(mask) {
            *byte = (*byte & !mask) | (new & mask);
        }
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
