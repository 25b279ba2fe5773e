//! The verifier: what a program may do, proven once, before it is compiled.

use thiserror::Error;

use super::cycle::Counter;
use super::header::{
    ICMPV6_CHECKSUM_OFFSET, IPV4_CHECKSUM_OFFSET, IPV4_PROTOCOL_OFFSET, IPV6_HEADER_BYTES,
    IPV6_NEXT_HEADER_OFFSET, TCP_CHECKSUM_OFFSET, UDP_CHECKSUM_OFFSET, ipv4_header_bytes,
};
use super::instruction::{
    Flows, Instruction, LENGTH_MIN, Layer4, Operation, Range, SHIFT_MAX, Sequence, VALUE_LIST_MAX,
    VARIABLE_BYTES_MAX, Values, WRITE_OFFSET_MAX, Width,
};

/// Bytes of an untagged Ethernet header.
const ETHERNET_HEADER_BYTES: usize = 14;

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
    let mut verifier = Verifier {
        template,
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
                self.check_layers(*l2_bytes, *l3_bytes)?;
                if ipv4_header_bytes(self.template, *l2_bytes).is_some() {
                    return self.refuse(
                        "l2_len",
                        format!("the header at offset {l2_bytes} is of IPv4"),
                        "use it for packets of ICMPv6, which is IPv6's",
                    );
                }
                self.check_protocol(*l2_bytes, *l3_bytes, 58, "ICMPv6")?;
                self.check_field(
                    "l3_len",
                    l3_bytes.saturating_add(l2_bytes + ICMPV6_CHECKSUM_OFFSET),
                    2,
                )
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

    fn check_sequence(
        &self,
        name: &str,
        width: Width,
        sequence: &Sequence,
    ) -> Result<(), InstructionError> {
        if sequence.length == 0 {
            return self.refuse(
                "limit",
                format!("the limit of '{name}' is 0"),
                "let it repeat after at least 1 value",
            );
        }
        self.check_bounds(name, width, sequence.min, sequence.max)
    }

    /// The rules of a chain: each variable passes its end at most once with each step, and what
    /// follows it is declared right after it.
    fn check_next(&self, name: &str, values: &Values, next: &str) -> Result<(), InstructionError> {
        let follower = match self.instructions.get(self.number) {
            Some(Instruction::Variable { name, values, .. }) if name == next => values,
            _ => {
                return self.refuse(
                    "next_var",
                    format!("the instruction after '{name}' does not declare '{next}'"),
                    format!("declare '{next}' right after '{name}', or set next_var to null"),
                );
            }
        };
        let members = [(name, values), (next, follower)];
        for (member, values) in members {
            if values.is_random() {
                return self.refuse(
                    "next_var",
                    format!("'{member}' is random, and so never comes to its end"),
                    "use inc, dec or flow_var_rand_limit for all variables that next_var joins",
                );
            }
            match values {
                Values::List { values, step, .. } if *step > values.len() as u64 => {
                    return self.refuse(
                        "next_var",
                        format!(
                            "the step {step} of '{member}' is longer than its list of {} values",
                            values.len()
                        ),
                        "use a step of at most the number of values",
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_list(
        &self,
        name: &str,
        width: Width,
        values: &[u64],
        step: u64,
    ) -> Result<(), InstructionError> {
        self.check_step(name, step)?;
        if values.is_empty() || values.len() > VALUE_LIST_MAX {
            return self.refuse(
                "value_list",
                format!("'{name}' lists {} values", values.len()),
                format!("list 1 to {VALUE_LIST_MAX} values"),
            );
        }
        if let Some(value) = values.iter().find(|&&value| value > width.max_value()) {
            return self.refuse(
                "value_list",
                format!(
                    "{value} does not fit into the {} bytes of '{name}'",
                    width.bytes()
                ),
                format!("use at most {}, or a larger size", width.max_value()),
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

    fn check_tuple(&self, name: &str, flows: &Flows) -> Result<(), InstructionError> {
        if name.is_empty() {
            return self.refuse("name", "the name is empty", "give the tuple a name");
        }
        for (declared, _) in self.instructions[self.number - 1].declared() {
            self.check_name(&declared)?;
        }
        let Flows {
            ip_min,
            ip_max,
            port_min,
            port_max,
            ..
        } = *flows;
        if ip_min > ip_max {
            return self.refuse(
                "ip_min",
                format!("{ip_min} is above the ip_max {ip_max} of '{name}'"),
                "let ip_min be at most ip_max",
            );
        }
        if port_min > port_max {
            return self.refuse(
                "port_min",
                format!("{port_min} is above the port_max {port_max} of '{name}'"),
                "let port_min be at most port_max",
            );
        }
        Ok(())
    }

    fn check_bits(&self, field: Width, mask: u32, shift: i64) -> Result<(), InstructionError> {
        if field == Width::Eight {
            return self.refuse(
                "pkt_cast_size",
                "a field of 8 bytes is too long",
                "use a field of 1, 2 or 4 bytes",
            );
        }
        if u64::from(mask) & field.max_value() == 0 {
            return self.refuse(
                "mask",
                format!("{mask:#x} has no bit of a field of {} bytes", field.bytes()),
                "set the bits that shall be written",
            );
        }
        if !(-SHIFT_MAX..=SHIFT_MAX).contains(&shift) {
            return self.refuse(
                "shift",
                format!("{shift} shifts all 32 bits away"),
                format!("shift by -{SHIFT_MAX} to {SHIFT_MAX} bits"),
            );
        }
        Ok(())
    }

    fn check_checksums(
        &self,
        l2_bytes: usize,
        l3_bytes: usize,
        layer4: Layer4,
    ) -> Result<(), InstructionError> {
        self.check_layers(l2_bytes, l3_bytes)?;
        let ipv4 = ipv4_header_bytes(self.template, l2_bytes).is_some();
        if ipv4 {
            self.check_field("l2_len", l2_bytes + IPV4_CHECKSUM_OFFSET, 2)?;
        }
        let (protocol, name, offset) = match layer4 {
            Layer4::Udp => (17, "UDP", UDP_CHECKSUM_OFFSET),
            Layer4::Tcp => (6, "TCP", TCP_CHECKSUM_OFFSET),
            Layer4::Any if ipv4 => return Ok(()),
            Layer4::Any => {
                return self.refuse(
                    "l4_type",
                    "17 is the IPv4 header alone, and the packet has IPv6, which has no checksum",
                    "use 11 for UDP or 13 for TCP, or leave the instruction out",
                );
            }
        };
        self.check_protocol(l2_bytes, l3_bytes, protocol, name)?;
        self.check_field("l3_len", l3_bytes.saturating_add(l2_bytes + offset), 2)
    }

    /// There is an IP header of `l3_bytes` after `l2_bytes`.
    fn check_layers(&self, l2_bytes: usize, l3_bytes: usize) -> Result<(), InstructionError> {
        if l2_bytes < ETHERNET_HEADER_BYTES {
            return self.refuse(
                "l2_len",
                format!("{l2_bytes} bytes are less than an Ethernet header"),
                format!("give the offset of the IP header, {ETHERNET_HEADER_BYTES} or more"),
            );
        }
        if let Some(bytes) = ipv4_header_bytes(self.template, l2_bytes) {
            if l3_bytes != bytes {
                return self.refuse(
                    "l3_len",
                    format!("it is {l3_bytes}, and the IPv4 header has {bytes} bytes"),
                    format!("use {bytes}"),
                );
            }
            return Ok(());
        }
        let version = self.template.get(l2_bytes).map(|byte| byte >> 4);
        if version != Some(6) || l2_bytes + IPV6_HEADER_BYTES > self.template.len() {
            return self.refuse(
                "l2_len",
                format!(
                    "there is no whole IPv4 or IPv6 header at offset {l2_bytes} of the packet of \
                     {} bytes",
                    self.template.len()
                ),
                "give the offset of the IP header, 14 after an untagged Ethernet header",
            );
        }
        if l3_bytes < IPV6_HEADER_BYTES {
            return self.refuse(
                "l3_len",
                format!("it is {l3_bytes}, and an IPv6 header has {IPV6_HEADER_BYTES} bytes"),
                format!("use {IPV6_HEADER_BYTES}, and more with extension headers"),
            );
        }
        Ok(())
    }

    /// The IP header names this protocol, unless extension headers of IPv6 come between.
    fn check_protocol(
        &self,
        l2_bytes: usize,
        l3_bytes: usize,
        protocol: u8,
        name: &str,
    ) -> Result<(), InstructionError> {
        let ipv4 = ipv4_header_bytes(self.template, l2_bytes).is_some();
        let found = match (ipv4, l3_bytes) {
            (true, _) => self.template[l2_bytes + IPV4_PROTOCOL_OFFSET],
            (false, IPV6_HEADER_BYTES) => self.template[l2_bytes + IPV6_NEXT_HEADER_OFFSET],
            _ => return Ok(()),
        };
        if found != protocol {
            let field = if protocol == 58 { "l2_len" } else { "l4_type" };
            return self.refuse(
                field,
                format!("it says {name}, and the IP header says protocol {found}"),
                format!("use it for packets of {name}, protocol {protocol}"),
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
        let limit = self.template.len().min(WRITE_OFFSET_MAX);
        if end > limit {
            let what = if limit == WRITE_OFFSET_MAX {
                format!("past the first {WRITE_OFFSET_MAX} bytes, which a program may change")
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

    fn check_trim(&self, name: &str) -> Result<(), InstructionError> {
        let (width, values) = self.variable(name)?;
        if width != Width::Two {
            return self.refuse(
                "name",
                format!(
                    "'{name}' has {} bytes, and a packet length has 2",
                    width.bytes()
                ),
                format!("declare '{name}' with size 2"),
            );
        }
        let Some(values) = values else {
            return self.refuse(
                "name",
                format!("'{name}' is a port, and not a packet's length"),
                "declare a flow_var of size 2 for the length",
            );
        };
        let shortest = match values {
            Values::Range(Range { min, .. }) | Values::Sequence(Sequence { min, .. })
                if *min > self.template.len() as u64 =>
            {
                return self.refuse(
                    "name",
                    format!(
                        "the lengths of '{name}' begin at {min}, and the packet has {} bytes",
                        self.template.len()
                    ),
                    "use a longer packet or a smaller min_value",
                );
            }
            Values::Range(range) if range.operation == Operation::Random => range.min,
            Values::Range(range) => {
                let range = range.clamped_to(self.template.len() as u64);
                let lowest = Counter::of_range(&range, width).map(|counter| counter.bounds().0);
                range.min.min(lowest.unwrap_or(0))
            }
            Values::List { values, .. } => values.iter().copied().min().unwrap_or(0),
            Values::Sequence(sequence) => sequence.min,
        };
        if shortest < LENGTH_MIN as u64 {
            return self.refuse(
                "name",
                format!("'{name}' makes packets of {shortest} bytes"),
                format!("let it make packets of at least {LENGTH_MIN} bytes (without FCS)"),
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
