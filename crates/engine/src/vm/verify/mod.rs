//! The verifier: what a program may do, proven once, before it is compiled.
//!
//! Here are names, ranges and writes; `values` has what else a variable may take, `checksums` those
//! of whole segments.

mod checksums;
mod values;

use thiserror::Error;

use super::header::{IPV4_CHECKSUM_OFFSET, ipv4_header_bytes};
use super::instruction::{
    Counter, Instruction, Operation, Range, VARIABLE_BYTES_MAX, Values, WRITE_OFFSET_MAX, Width,
};

/// A program that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("field engine instruction {number} ({kind}), field '{field}': {problem}; {remedy}")]
pub struct InstructionError {
    /// The instruction, counted from 1.
    pub number: usize,
    /// The instruction's type, as the user writes it.
    pub kind: &'static str,
    /// The field, as the user writes it.
    pub field: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// Checks all instructions for a template of these bytes. What passes compiles.
///
/// # Errors
/// The first instruction that breaks a rule, with the field and the remedy.
pub fn verify(instructions: &[Instruction], template: &[u8]) -> Result<(), InstructionError> {
    verify_behind(0, instructions, template)
}

/// The same for a template with so many bytes of headers in front of what the user may change.
pub(super) fn verify_behind(
    headers_bytes: usize,
    instructions: &[Instruction],
    template: &[u8],
) -> Result<(), InstructionError> {
    let mut verifier = Verifier {
        template,
        write_end_max: headers_bytes + WRITE_OFFSET_MAX,
        instructions,
        number: 0,
    };
    for number in 1..=instructions.len() {
        verifier.number = number;
        verifier.check()?;
    }
    Ok(())
}

/// The check of one instruction among the others.
struct Verifier<'a> {
    template: &'a [u8],
    /// Where writes end at the latest.
    write_end_max: usize,
    instructions: &'a [Instruction],
    number: usize,
}

impl Verifier<'_> {
    fn check(&self) -> Result<(), InstructionError> {
        match &self.instructions[self.number - 1] {
            Instruction::Variable {
                name,
                width,
                values,
                next,
                ..
            } => {
                self.check_name(name)?;
                match values {
                    Values::Range(range) => self.check_range(name, *width, range)?,
                    Values::List { values, step, .. } => {
                        self.check_list(name, *width, values, *step)?;
                    }
                    Values::Sequence(sequence) => self.check_sequence(name, *width, sequence)?,
                }
                match next {
                    Some(next) => self.check_next(name, values, next),
                    None => Ok(()),
                }
            }
            Instruction::Write {
                variable, offset, ..
            } => {
                let (width, _) = self.variable(variable)?;
                self.check_write(*offset, width.bytes())
            }
            Instruction::Tuple { name, flows } => self.check_tuple(name, flows),
            Instruction::WriteMask {
                variable,
                offset,
                field,
                mask,
                shift,
                ..
            } => {
                self.variable(variable)?;
                self.check_bits(*field, *mask, *shift)?;
                self.check_write(*offset, field.bytes())
            }
            Instruction::FixChecksumIpv4 { offset } => self.check_header(*offset),
            Instruction::FixChecksums {
                l2_bytes,
                l3_bytes,
                layer4,
            } => self.check_checksums(*l2_bytes, *l3_bytes, *layer4),
            Instruction::FixChecksumIcmpv6 { l2_bytes, l3_bytes } => {
                self.check_icmpv6(*l2_bytes, *l3_bytes)
            }
            Instruction::TrimPacketSize { variable } => self.check_trim(variable),
        }
    }

    fn check_name(&self, name: &str) -> Result<(), InstructionError> {
        if name.is_empty() {
            return self.refuse("name", "the name is empty", "give the variable a name");
        }
        if self.find(name).is_some() {
            return self.refuse(
                "name",
                format!("another variable is named '{name}' already"),
                "give each variable a name of its own",
            );
        }
        let bytes: usize = self.instructions[..self.number]
            .iter()
            .flat_map(Instruction::declared)
            .map(|(_, width)| width.bytes())
            .sum();
        if bytes > VARIABLE_BYTES_MAX {
            return self.refuse(
                "size",
                format!("with '{name}' the variables take {bytes} bytes"),
                format!("use at most {VARIABLE_BYTES_MAX} bytes of variables in one program"),
            );
        }
        Ok(())
    }

    fn check_range(&self, name: &str, width: Width, range: &Range) -> Result<(), InstructionError> {
        self.check_step(name, range.step)?;
        let Range { init, min, max, .. } = *range;
        self.check_bounds(name, width, min, max)?;
        if !(min..=max).contains(&init) {
            return self.refuse(
                "init_value",
                format!("{init} of '{name}' is outside of {min} to {max}"),
                "begin between min_value and max_value",
            );
        }
        if range.operation != Operation::Random && Counter::of_range(range, width).is_none() {
            return self.refuse(
                "step",
                format!(
                    "the range {min} to {max} of '{name}' is not a multiple of the step {}, and \
                     made longer it leaves {} bytes",
                    range.step,
                    width.bytes()
                ),
                "choose a step that divides max_value - min_value + 1, or a smaller range",
            );
        }
        Ok(())
    }

    fn check_bounds(
        &self,
        name: &str,
        width: Width,
        min: u64,
        max: u64,
    ) -> Result<(), InstructionError> {
        if max > width.max_value() {
            return self.refuse(
                "max_value",
                format!(
                    "{max} does not fit into the {} bytes of '{name}'",
                    width.bytes()
                ),
                format!("use at most {}, or a larger size", width.max_value()),
            );
        }
        if min > max {
            return self.refuse(
                "min_value",
                format!("{min} is above the max_value {max} of '{name}'"),
                "let min_value be at most max_value",
            );
        }
        Ok(())
    }

    fn check_step(&self, name: &str, step: u64) -> Result<(), InstructionError> {
        if step == 0 {
            return self.refuse(
                "step",
                format!("the step of '{name}' is 0"),
                "use a step of at least 1; min_value equal to max_value makes a constant",
            );
        }
        Ok(())
    }

    fn check_write(&self, offset: usize, bytes: usize) -> Result<(), InstructionError> {
        self.check_field("pkt_offset", offset, bytes)
    }

    fn check_field(
        &self,
        field: &'static str,
        offset: usize,
        bytes: usize,
    ) -> Result<(), InstructionError> {
        let end = offset.saturating_add(bytes);
        let limit = self.template.len().min(self.write_end_max);
        if end > limit {
            let what = if limit == self.write_end_max {
                format!("past the first {limit} bytes, which a program may change")
            } else {
                format!("past the packet of {limit} bytes")
            };
            return self.refuse(
                field,
                format!("{bytes} bytes at offset {offset} end {what}"),
                format!("use an offset of at most {}", limit.saturating_sub(bytes)),
            );
        }
        Ok(())
    }

    fn check_header(&self, offset: usize) -> Result<(), InstructionError> {
        self.check_write(offset.saturating_add(IPV4_CHECKSUM_OFFSET), 2)?;
        if ipv4_header_bytes(self.template, offset).is_none() {
            return self.refuse(
                "pkt_offset",
                format!(
                    "there is no whole IPv4 header at offset {offset} of the packet of {} bytes",
                    self.template.len()
                ),
                "give the offset of the IPv4 header, 14 after an untagged Ethernet header",
            );
        }
        Ok(())
    }

    /// The variable of this name, declared before this instruction.
    fn variable(&self, name: &str) -> Result<(Width, Option<&Values>), InstructionError> {
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let known: Vec<String> = self.instructions[..self.number]
            .iter()
            .flat_map(Instruction::declared)
            .map(|(name, _)| name)
            .collect();
        let remedy = if known.is_empty() {
            "declare it with a flow_var before this instruction".to_owned()
        } else {
            format!(
                "declare it with a flow_var before this instruction, or use one of: {}",
                known.join(", ")
            )
        };
        self.refuse("name", format!("no variable is named '{name}'"), remedy)
    }

    /// A variable's size, and its values unless it is of a tuple.
    fn find(&self, name: &str) -> Option<(Width, Option<&Values>)> {
        let before = &self.instructions[..self.number - 1];
        before.iter().find_map(|instruction| {
            let mut declared = instruction.declared().into_iter();
            let (_, width) = declared.find(|(declared, _)| declared == name)?;
            match instruction {
                Instruction::Variable { values, .. } => Some((width, Some(values))),
                _ => Some((width, None)),
            }
        })
    }

    fn refuse<T>(
        &self,
        field: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Result<T, InstructionError> {
        Err(InstructionError {
            number: self.number,
            kind: self.instructions[self.number - 1].kind(),
            field,
            problem: problem.into(),
            remedy: remedy.into(),
        })
    }
}
