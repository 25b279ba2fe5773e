//! The disassembler: a compiled program as text that its author recognises.

use std::fmt::{self, Write as _};

use super::instruction::Width;
use super::program::{
    Action, Bits, Checksum, Cycle, Digit, Draw, FieldProgram, Mapping, Sequence, Variable, Walk,
    Write,
};

impl FieldProgram {
    /// The program as text, one line an operation. Ranges are shown as padded.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text)
            .expect("writing to a String does not fail");
        text
    }

    fn write_text(&self, text: &mut String) -> fmt::Result {
        let mut before = None;
        for variable in &self.variables {
            write_variable(text, variable, before)?;
            before = Some(variable);
        }
        for action in &self.actions {
            match action {
                Action::Write(write) => self.write_write(text, write)?,
                Action::Bits(bits) => self.write_bits(text, bits)?,
                Action::Checksum(checksum) => self.write_checksum(text, checksum)?,
            }
        }
        if let Some(variable) = self.trim {
            writeln!(
                text,
                "length = {}, at most {} bytes",
                self.variables[variable].name, self.template_bytes
            )?;
        }
        Ok(())
    }

    fn write_write(&self, text: &mut String, write: &Write) -> fmt::Result {
        let source = write.source;
        let end = write.offset + source.width.bytes();
        let name = &self.variables[write.variable].name;
        let order = if source.big_endian { "big" } else { "little" };
        write!(text, "bytes {}..{end} = {name}", write.offset)?;
        if source.add != 0 {
            write!(text, " + {:#x}", source.add)?;
        }
        writeln!(text, ", {order} endian")
    }

    fn write_bits(&self, text: &mut String, bits: &Bits) -> fmt::Result {
        let write = bits.write;
        let bytes = write.source.width.bytes();
        let digits = 2 * bytes;
        let half = match (bits.from.width, bits.upper_half) {
            (Width::Eight, true) => " (upper 4 bytes)",
            (Width::Eight, false) => " (lower 4 bytes)",
            _ => "",
        };
        write!(
            text,
            "bits {:0digits$x} of bytes {}..{} = {}{half}",
            write.mask,
            write.offset,
            write.offset + bytes,
            self.variables[write.variable].name,
        )?;
        if bits.from.add != 0 {
            write!(text, " + {:#x}", bits.from.add)?;
        }
        match bits.shift {
            0 => {}
            left @ 1.. => write!(text, ", {left} bits to the left")?,
            right => write!(text, ", {} bits to the right", -right)?,
        }
        let order = if write.source.big_endian {
            "big"
        } else {
            "little"
        };
        writeln!(text, ", {order} endian")
    }

    fn write_checksum(&self, text: &mut String, checksum: &Checksum) -> fmt::Result {
        let (at, (begin, bytes)) = (checksum.write.offset, checksum.covers);
        write!(text, "bytes {at}..{} = {}", at + 2, checksum.name)?;
        if checksum.varying.is_some() {
            write!(text, " of all bytes from {begin}")?;
        } else {
            write!(text, " of bytes {begin}..{}", begin + bytes)?;
        }
        write!(text, ": {:#06x}", checksum.constant)?;
        for part in &checksum.parts {
            match self.variables.get(part.variable) {
                Some(variable) => write!(text, " + {}", variable.name)?,
                None => write!(text, " + earlier checksum")?,
            }
        }
        writeln!(text)
    }
}

/// A variable of a chain says whom it follows.
fn write_variable(
    text: &mut String,
    variable: &Variable,
    before: Option<&Variable>,
) -> fmt::Result {
    write!(text, "variable {}: {} ", variable.name, variable.width)?;
    write_walk(text, variable)?;
    if let Some(before) = before.filter(|_| variable.follows) {
        write!(text, ", when {} passes its end", before.name)?;
    }
    if variable.each_core {
        write!(text, ", on each core alone")?;
    }
    writeln!(text)
}

fn write_walk(text: &mut String, variable: &Variable) -> fmt::Result {
    match (&variable.walk, &variable.values) {
        (Walk::Cycle(cycle), Mapping::Up(base)) => {
            let (first, max) = (base + cycle.start, base + cycle.last);
            write!(text, "from {first} up by {} in {base}..={max}", cycle.step)
        }
        (Walk::Cycle(cycle), Mapping::Down(base)) => {
            let (first, min) = (base - cycle.start, base - cycle.last);
            write!(
                text,
                "from {first} down by {} in {min}..={base}",
                cycle.step
            )
        }
        (Walk::Cycle(Cycle { step, .. }), Mapping::List(list)) => {
            write!(text, "{} values from {} on, by {step}", list.len(), list[0])
        }
        (Walk::Cycle(cycle), Mapping::Digit(digit)) => {
            let Digit {
                base,
                divisor,
                modulus,
            } = *digit;
            let max = base + (modulus - 1);
            write!(
                text,
                "up by 1 in {base}..={max} after every {divisor}, of {} flows",
                cycle.last + 1
            )
        }
        (Walk::Cycle(cycle), Mapping::Sequence(sequence)) => {
            let Sequence { seed, draw, base } = *sequence;
            write_draw(text, draw, base)?;
            write!(text, " from seed {seed}, repeated")?;
            match cycle.last.checked_add(1) {
                Some(length) => write!(text, " after {length}"),
                None => Ok(()),
            }
        }
        (Walk::Draw(draw), Mapping::List(list)) => {
            write!(
                text,
                "random of {} values, {} draws",
                list.len(),
                draw.draws
            )
        }
        (
            Walk::Draw(draw),
            Mapping::Up(base)
            | Mapping::Down(base)
            | Mapping::Sequence(Sequence { base, .. })
            | Mapping::Digit(Digit { base, .. }),
        ) => write_draw(text, *draw, *base),
    }
}

fn write_draw(text: &mut String, draw: Draw, base: u64) -> fmt::Result {
    write!(text, "random from {base}, ")?;
    match draw.modulus {
        u32::MAX => write!(text, "unlimited")?,
        modulus => write!(text, "one of {modulus}")?,
    }
    write!(text, ", {} draws", draw.draws)
}
