//! The compiler: from the user's instructions to columns, writes and checksums with every
//! offset, width and constant known.
//!
//! `verify` has proven before what is compiled here.

use std::cmp::Reverse;

use super::checksum::Field;
use super::header::ipv4_header_bytes;
use super::instruction::{
    Checksums, Counter, Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width,
};
use super::program::{
    self, Action, Cycle, Digit, Draw, FieldProgram, LINE_BYTES, Mapping, Source, Variable, Walk,
    Write, draws_of,
};
use super::verify::{self, InstructionError};

impl FieldProgram {
    /// Checks `instructions` and compiles them for the packet `template`, which is the whole
    /// frame as it would be sent without them: padded, with its MAC addresses, without FCS.
    ///
    /// # Errors
    /// The first instruction that breaks a rule, with the field and the remedy.
    pub fn compile(
        instructions: &[Instruction],
        template: &[u8],
    ) -> Result<FieldProgram, InstructionError> {
        FieldProgram::compile_for(Checksums::Complete, instructions, template)
    }

    /// As [`FieldProgram::compile`], for a port that computes checksums or does not.
    ///
    /// # Errors
    /// As [`FieldProgram::compile`].
    pub fn compile_for(
        checksums: Checksums,
        instructions: &[Instruction],
        template: &[u8],
    ) -> Result<FieldProgram, InstructionError> {
        verify::verify(instructions, template)?;
        Ok(Compiler::new(checksums, instructions, template).compile())
    }

    /// As [`FieldProgram::compile`], for a template with so many bytes of headers, of a tunnel, in front of
    /// what a user may change.
    ///
    /// # Errors
    /// As [`FieldProgram::compile`].
    pub(crate) fn compile_behind(
        headers_bytes: usize,
        instructions: &[Instruction],
        template: &[u8],
    ) -> Result<FieldProgram, InstructionError> {
        verify::verify_behind(headers_bytes, instructions, template)?;
        Ok(Compiler::new(Checksums::Complete, instructions, template).compile())
    }
}

/// A program in the making.
pub(super) struct Compiler<'a> {
    checksums: Checksums,
    instructions: &'a [Instruction],
    template: &'a [u8],
    pub(super) program: FieldProgram,
}

impl<'a> Compiler<'a> {
    fn new(
        checksums: Checksums,
        instructions: &'a [Instruction],
        template: &'a [u8],
    ) -> Compiler<'a> {
        let program = FieldProgram {
            variables: Vec::new(),
            actions: Vec::new(),
            trim: None,
            template_bytes: template.len(),
            header_bytes: LINE_BYTES,
            changed: Vec::new(),
            narrow_columns: 0,
            wide_columns: 0,
            draws: 0,
        };
        Compiler {
            checksums,
            instructions,
            template,
            program,
        }
    }

    fn compile(mut self) -> FieldProgram {
        for instruction in self.instructions {
            self.add(instruction);
        }
        self.add_last();
        self.finish()
    }

    fn add(&mut self, instruction: &Instruction) {
        match instruction {
            Instruction::Variable {
                name,
                width,
                values,
                next,
                each_core,
            } => {
                self.add_variable(name, *width, values);
                self.link(next.is_some(), *each_core);
            }
            Instruction::Tuple { name, flows } => self.add_tuple(name, flows),
            Instruction::WriteMask { .. } => {
                let bits = self.bits(instruction);
                self.program.actions.push(Action::Bits(bits));
            }
            Instruction::Write {
                variable,
                offset,
                add,
                big_endian,
            } => {
                let write = self.write(variable, *offset, *add, *big_endian);
                self.program.actions.push(Action::Write(write));
            }
            Instruction::FixChecksumIpv4 { offset } => {
                self.add_checksum(Field::of_header(self.template, *offset));
            }
            Instruction::FixChecksums {
                l2_bytes,
                l3_bytes,
                layer4,
            } => {
                if self.fixes_in_place() {
                    self.add_checksums(*l2_bytes, *l3_bytes, *layer4);
                }
            }
            Instruction::FixChecksumIcmpv6 { .. } => {}
            Instruction::TrimPacketSize { variable } => {
                self.program.trim = Some(self.variable_index(variable));
            }
        }
    }

    fn add_variable(&mut self, name: &str, width: Width, values: &Values) {
        let limit = self.length_limit(name);
        let (walk, values) = match values {
            Values::Range(range) => compile_range(&range.clamped_to(limit), width),
            Values::List {
                values,
                operation,
                step,
            } => {
                let values = values.iter().map(|&value| value.min(limit)).collect();
                compile_list(values, *operation, *step)
            }
            Values::Sequence(sequence) => compile_sequence(&sequence.clamped_to(limit), width),
        };
        self.push_variable(name.to_owned(), width, walk, values);
    }

    fn add_tuple(&mut self, name: &str, flows: &Flows) {
        let ips = u64::from(flows.ip_max - flows.ip_min) + 1;
        let ports = u64::from(flows.port_max - flows.port_min) + 1;
        let count = match flows.limit {
            0 => ips * ports,
            limit => u64::from(limit),
        };
        let walk = Walk::Cycle(Cycle {
            last: count - 1,
            start: 0,
            step: 1,
        });
        let digit = |base, divisor, modulus| {
            Mapping::Digit(Digit {
                base,
                divisor,
                modulus,
            })
        };
        let ip = digit(flows.ip_min.into(), 1, ips);
        let port = digit(flows.port_min.into(), ips, ports);
        self.push_variable(format!("{name}.ip"), Width::Four, walk, ip);
        self.link(false, false);
        self.push_variable(format!("{name}.port"), Width::Two, walk, port);
        self.link(false, false);
    }

    fn push_variable(&mut self, name: String, width: Width, walk: Walk, values: Mapping) {
        if let Walk::Draw(draw) = walk {
            self.program.draws += u64::from(draw.draws);
        }
        let column = self.new_column(width);
        self.program.variables.push(Variable {
            name,
            width,
            column,
            walk,
            follows: false,
            leads: false,
            each_core: false,
            values,
        });
    }

    /// Links the last variable to the one before it, when that one leads.
    fn link(&mut self, leads: bool, each_core: bool) {
        if let [.., before, last] = &mut self.program.variables[..] {
            last.follows = before.leads;
        }
        if let Some(last) = self.program.variables.last_mut() {
            last.leads = leads;
            last.each_core = each_core && !last.follows;
        }
    }

    /// The largest value that a variable may take: a packet length ends at the template's.
    fn length_limit(&self, name: &str) -> u64 {
        let is_length = self.instructions.iter().any(|instruction| {
            matches!(instruction, Instruction::TrimPacketSize { variable } if variable == name)
        });
        if is_length {
            self.template.len() as u64
        } else {
            u64::MAX
        }
    }

    pub(super) fn new_column(&mut self, width: Width) -> usize {
        let columns = match width {
            Width::Eight => &mut self.program.wide_columns,
            Width::One | Width::Two | Width::Four => &mut self.program.narrow_columns,
        };
        *columns += 1;
        *columns - 1
    }

    pub(super) fn variable_index(&self, name: &str) -> usize {
        self.program
            .variables
            .iter()
            .position(|variable| variable.name == name)
            .expect("the verifier knows every name")
    }

    fn write(&self, name: &str, offset: usize, add: i64, big_endian: bool) -> Write {
        let index = self.variable_index(name);
        let variable = &self.program.variables[index];
        Write {
            source: Source {
                column: variable.column,
                width: variable.width,
                add: (add as u64) & variable.width.max_value(),
                big_endian,
            },
            offset,
            mask: variable.width.max_value(),
            variable: index,
        }
    }

    /// Adds a checksum of what the packet holds after all actions up to here.
    fn add_checksum(&mut self, field: Field) {
        let column = self.new_column(Width::Two);
        let checksum = field.compile(self.template, &self.program.actions, column);
        self.program.actions.push(Action::Checksum(checksum));
    }

    fn add_checksums(&mut self, l2_bytes: usize, l3_bytes: usize, layer4: Layer4) {
        let varies = self.varies();
        let place = (l2_bytes, l3_bytes);
        if ipv4_header_bytes(self.template, l2_bytes).is_some() {
            self.add_checksum(match self.checksums {
                Checksums::Complete => Field::of_header(self.template, l2_bytes),
                Checksums::LeftToPort => Field::zero(l2_bytes),
            });
        }
        let field = match layer4 {
            Layer4::Udp => Field::udp(self.template, place, varies),
            Layer4::Tcp => Field::tcp(self.template, place, varies),
            Layer4::Any => return,
        };
        self.add_checksum(match self.checksums {
            Checksums::Complete => field,
            Checksums::LeftToPort => field.left_to_port(),
        });
    }

    /// Whether packets differ in length.
    fn varies(&self) -> bool {
        let trims = |i: &Instruction| matches!(i, Instruction::TrimPacketSize { .. });
        self.instructions.iter().any(trims)
    }

    /// What is left to the port is prepared where the program says so, as users of captures
    /// expect. Sums of packets of different lengths read what was written, so they come last.
    fn fixes_in_place(&self) -> bool {
        self.checksums == Checksums::LeftToPort && !self.varies()
    }

    /// Checksums of whole segments, after all that may change them. The inner ones first: an
    /// outer checksum counts them.
    fn add_last(&mut self) {
        let mut fixes: Vec<(usize, &'a Instruction)> = self
            .instructions
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::FixChecksums { .. } if self.fixes_in_place() => None,
                Instruction::FixChecksums { l2_bytes, .. }
                | Instruction::FixChecksumIcmpv6 { l2_bytes, .. } => Some((*l2_bytes, instruction)),
                _ => None,
            })
            .collect();
        fixes.sort_by_key(|&(l2_bytes, _)| Reverse(l2_bytes));
        for (l2_bytes, instruction) in fixes {
            match *instruction {
                Instruction::FixChecksums {
                    l3_bytes, layer4, ..
                } => self.add_checksums(l2_bytes, l3_bytes, layer4),
                Instruction::FixChecksumIcmpv6 { l3_bytes, .. } => {
                    let place = (l2_bytes, l3_bytes);
                    self.add_checksum(Field::icmpv6(self.template, place, self.varies()));
                }
                _ => {}
            }
        }
    }

    fn finish(mut self) -> FieldProgram {
        let mut changed: Vec<(usize, usize, u64)> = self
            .program
            .actions
            .iter()
            .map(|action| {
                let write = action.write();
                (write.offset, write.source.width.bytes(), write.mask)
            })
            .collect();
        changed.sort_unstable();
        changed.dedup();
        let end = changed
            .iter()
            .map(|&(at, bytes, _)| at + bytes)
            .max()
            .unwrap_or(0);
        let header_bytes = end.next_multiple_of(LINE_BYTES).max(LINE_BYTES);
        for action in &mut self.program.actions {
            if let Action::Checksum(checksum) = action {
                checksum.add_tail(self.template, header_bytes);
            }
        }
        self.program.header_bytes = header_bytes;
        self.program.changed = changed;
        self.program
    }
}

fn compile_range(range: &Range, width: Width) -> (Walk, Mapping) {
    if range.operation == Operation::Random {
        let positions = (range.max - range.min).wrapping_add(1);
        let draw = Draw::new(draws_of(width), positions);
        return (Walk::Draw(draw), Mapping::Up(range.min));
    }
    let counter = Counter::of_range(range, width).expect("the verifier padded this range");
    let values = if counter.downwards {
        Mapping::Down(counter.base)
    } else {
        Mapping::Up(counter.base)
    };
    (Walk::Cycle(counter.cycle), values)
}

fn compile_sequence(sequence: &Sequence, width: Width) -> (Walk, Mapping) {
    let positions = (sequence.max - sequence.min).wrapping_add(1);
    let values = program::Sequence {
        seed: sequence.seed,
        draw: Draw::new(draws_of(width), positions),
        base: sequence.min,
    };
    let cycle = Cycle {
        last: sequence.length - 1,
        start: 0,
        step: 1,
    };
    (Walk::Cycle(cycle), Mapping::Sequence(values))
}

/// A list walked backwards is the reversed list walked forwards. A random position in a list
/// takes one draw; two when the list is longer than one draw reaches.
fn compile_list(mut values: Vec<u64>, operation: Operation, step: u64) -> (Walk, Mapping) {
    let length = values.len() as u64;
    let walk = match operation {
        Operation::Random => {
            let draws = if length <= 1 << 15 { 1 } else { 2 };
            Walk::Draw(Draw::new(draws, length))
        }
        Operation::Increment | Operation::Decrement => Walk::Cycle(Cycle {
            last: length - 1,
            start: 0,
            step,
        }),
    };
    if operation == Operation::Decrement {
        values.reverse();
    }
    (walk, Mapping::List(values.into_boxed_slice()))
}
