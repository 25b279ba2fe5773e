//! What must hold for values that are not a plain range: lists, sequences, chains and tuples; for
//! single bits, and for lengths of packets.

use super::{InstructionError, Verifier};
use crate::vm::instruction::{
    Counter, Flows, Instruction, LENGTH_MIN, Operation, Range, SHIFT_MAX, Sequence, VALUE_LIST_MAX,
    Values, Width,
};

impl Verifier<'_> {
    pub(super) fn check_sequence(
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
    pub(super) fn check_next(
        &self,
        name: &str,
        values: &Values,
        next: &str,
    ) -> Result<(), InstructionError> {
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

    pub(super) fn check_list(
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

    pub(super) fn check_tuple(&self, name: &str, flows: &Flows) -> Result<(), InstructionError> {
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

    pub(super) fn check_bits(
        &self,
        field: Width,
        mask: u32,
        shift: i64,
    ) -> Result<(), InstructionError> {
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

    pub(super) fn check_trim(&self, name: &str) -> Result<(), InstructionError> {
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
}
