//! Writes of some bits of a field: how they are compiled, and how they are written.

use super::compile::Compiler;
use super::instruction::{Instruction, Width};
use super::program::{Bits, Source, Variable, Write};
use super::run::{Columns, Stage};
use super::{low8, low16, low32};

impl Compiler<'_> {
    /// Compiles a write of some bits.
    pub(super) fn bits(&mut self, instruction: &Instruction) -> Bits {
        let Instruction::WriteMask {
            variable,
            offset,
            field,
            mask,
            shift,
            add,
            big_endian,
        } = instruction
        else {
            unreachable!("called for masked writes only");
        };
        let index = self.variable_index(variable);
        let Variable { column, width, .. } = self.program.variables[index];
        let from = Source {
            column,
            width,
            add: *add as u64 & Width::Four.max_value(),
            big_endian: *big_endian,
        };
        let source = Source {
            column: self.new_column(*field),
            width: *field,
            add: 0,
            big_endian: *big_endian,
        };
        let mask = u64::from(*mask) & field.max_value();
        let mask = if *big_endian {
            mask
        } else {
            mask.swap_bytes() >> (64 - 8 * field.bytes())
        };
        Bits {
            from,
            upper_half: width == Width::Eight && *big_endian,
            shift: i32::try_from(*shift).expect("the verifier bounds shifts"),
            write: Write {
                source,
                offset: *offset,
                mask,
                variable: index,
            },
        }
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

impl Stage {
    /// Writes some bits of a column. The others are the template's or those that an instruction
    /// before put there: each bit has the same writers in every packet, in the same order.
    pub(super) fn write_bits(&mut self, write: &Write, n: usize) {
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
