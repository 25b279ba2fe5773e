//! The field engine's instruction set, as the user writes it.

use super::program::Cycle;
pub use super::program::Width;

/// Longest packet template region that a program may change: writes end below this offset.
pub const WRITE_OFFSET_MAX: usize = 512;
/// Most bytes of variables in one program.
pub const VARIABLE_BYTES_MAX: usize = 64;
/// Most bits that `write_mask_flow_var` shifts by.
pub const SHIFT_MAX: i64 = 31;
/// Most values of a value list.
pub const VALUE_LIST_MAX: usize = 65_535;
/// Shortest packet that `trim_pkt_size` may make, in bytes without FCS.
pub const LENGTH_MIN: usize = 60;

/// One instruction of a field engine program.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// `flow_var` or `flow_var_rand_limit`: declares a variable that takes a new value with each
    /// packet.
    Variable {
        /// Its name, unique in the program.
        name: String,
        /// Its size.
        width: Width,
        /// The values that it takes, and their order.
        values: Values,
        /// The variable that moves only when this one comes to its end, as the digits of an
        /// odometer do. It is declared by the next instruction.
        next: Option<String>,
        /// Each core counts alone, from the first value: N cores send each value N times. Otherwise
        /// all cores together count as one would. Random values and variables that follow another
        /// have no choice: the former are the stream's, the latter move with the one before.
        each_core: bool,
    },
    /// `tuple_flow_var`: declares the variables `name.ip` of 4 bytes and `name.port` of 2 bytes,
    /// the source of a flow, another one with each packet.
    Tuple {
        /// What the names of both variables begin with.
        name: String,
        /// The flows.
        flows: Flows,
    },
    /// `write_flow_var`: writes `variable + add` into the packet.
    Write {
        /// The variable's name.
        variable: String,
        /// Offset of the first byte, from the start of the frame.
        offset: usize,
        /// Added before the write, modulo the variable's size.
        add: i64,
        /// Network byte order; otherwise little endian.
        big_endian: bool,
    },
    /// `write_mask_flow_var`: writes some bits of `(variable + add) << shift`, computed in 32
    /// bits, and leaves the other bits of the field as they are.
    WriteMask {
        /// The variable's name. Of one of 8 bytes it is the upper 4 when `big_endian`, and the
        /// lower 4 otherwise, as in TRex.
        variable: String,
        /// Offset of the field's first byte, from the start of the frame.
        offset: usize,
        /// Size of the field; not 8 bytes.
        field: Width,
        /// The bits that are written, of the field's value. Bits that it does not have count
        /// for nothing.
        mask: u32,
        /// Bits to the left; to the right when negative. At most [`SHIFT_MAX`].
        shift: i64,
        /// Added before the shift.
        add: i64,
        /// Network byte order; otherwise little endian.
        big_endian: bool,
    },
    /// `fix_checksum_ipv4`: makes the IPv4 header's checksum right again.
    FixChecksumIpv4 {
        /// Offset of the IPv4 header.
        offset: usize,
    },
    /// `fix_checksum_hw`: makes the checksums of the IPv4 header and of TCP or UDP right, as a
    /// network card does: after all other instructions, inner headers first.
    FixChecksums {
        /// Offset of the IPv4 or IPv6 header.
        l2_bytes: usize,
        /// Bytes from there to the TCP or UDP header.
        l3_bytes: usize,
        /// What comes then.
        layer4: Layer4,
    },
    /// `fix_checksum_icmpv6`: makes the ICMPv6 checksum right, after all other instructions.
    FixChecksumIcmpv6 {
        /// Offset of the IPv6 header.
        l2_bytes: usize,
        /// Bytes from there to the ICMPv6 header.
        l3_bytes: usize,
    },
    /// `trim_pkt_size`: the packet's length, in bytes without FCS, is a variable's value.
    TrimPacketSize {
        /// The variable's name; it is 2 bytes wide.
        variable: String,
    },
}

impl Instruction {
    /// The instruction's type, as the user writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Instruction::Variable {
                values: Values::Sequence(_),
                ..
            } => "flow_var_rand_limit",
            Instruction::Variable { .. } => "flow_var",
            Instruction::Tuple { .. } => "tuple_flow_var",
            Instruction::Write { .. } => "write_flow_var",
            Instruction::WriteMask { .. } => "write_mask_flow_var",
            Instruction::FixChecksumIpv4 { .. } => "fix_checksum_ipv4",
            Instruction::FixChecksums { .. } => "fix_checksum_hw",
            Instruction::FixChecksumIcmpv6 { .. } => "fix_checksum_icmpv6",
            Instruction::TrimPacketSize { .. } => "trim_pkt_size",
        }
    }

    /// The variables that this declares: names and sizes.
    pub fn declared(&self) -> Vec<(String, Width)> {
        match self {
            Instruction::Variable { name, width, .. } => vec![(name.clone(), *width)],
            Instruction::Tuple { name, .. } => vec![
                (format!("{name}.ip"), Width::Four),
                (format!("{name}.port"), Width::Two),
            ],
            _ => Vec::new(),
        }
    }
}

/// What `fix_checksum_hw` finds behind the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer4 {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// Anything: only the IPv4 header's checksum is made right.
    Any,
}

/// Who computes the checksums of `fix_checksum_hw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// The field engine does: frames leave it ready for the wire.
    #[default]
    Complete,
    /// The port does, from what network cards want to find: zero in the IPv4 header, and the
    /// sum of the pseudo header (RFC 9293 §3.1) in that of TCP or UDP.
    LeftToPort,
}

/// The flows of a tuple: all addresses with the first port, then all with the next port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flows {
    /// First address.
    pub ip_min: u32,
    /// Last address.
    pub ip_max: u32,
    /// First port.
    pub port_min: u16,
    /// Last port.
    pub port_max: u16,
    /// How many flows; then the first one comes again. 0 is all of them.
    pub limit: u32,
}

/// The values that a variable takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A range of numbers.
    Range(Range),
    /// The values of a list, one after the other from the first (or from the last, backwards).
    List {
        /// The values; at least one, at most [`VALUE_LIST_MAX`].
        values: Vec<u64>,
        /// How the list is walked.
        operation: Operation,
        /// Entries to advance with each packet; at least 1.
        step: u64,
    },
    /// Random values of a generator of its own, again and again the same.
    Sequence(Sequence),
}

impl Values {
    /// Whether each value is drawn from the stream's random generator.
    pub fn is_random(&self) -> bool {
        match self {
            Values::Range(range) => range.operation == Operation::Random,
            Values::List { operation, .. } => *operation == Operation::Random,
            Values::Sequence(_) => false,
        }
    }
}

/// Random values that repeat: `length` values from a seed, then the same from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// State of the generator before the first value.
    pub seed: u32,
    /// Values until the first one comes again; at least 1.
    pub length: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

/// A range of numbers that a variable walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// How it is walked.
    pub operation: Operation,
    /// The first packet's value.
    pub init: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Added or subtracted with each packet; at least 1.
    pub step: u64,
}

impl Range {
    /// This range with its end at most at `limit`, and its beginning within it.
    pub(super) fn clamped_to(self, limit: u64) -> Range {
        let max = self.max.min(limit);
        Range {
            init: self.init.min(max),
            max,
            ..self
        }
    }
}

impl Sequence {
    /// This sequence with its values at most `limit`.
    pub(super) fn clamped_to(self, limit: u64) -> Sequence {
        Sequence {
            max: self.max.min(limit),
            ..self
        }
    }
}

/// How a variable moves from one packet to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Upwards, from the end back to the start.
    Increment,
    /// Downwards, from the start back to the end.
    Decrement,
    /// At random, in the documented sequence.
    Random,
}

/// What a counter over a range walks: a cycle and the value at its position 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// The positions.
    pub(super) cycle: Cycle,
    /// The value at position 0.
    pub(super) base: u64,
    /// Values fall as positions rise.
    pub(super) downwards: bool,
}

impl Counter {
    /// The counter of a range that was checked, padded so that its length is a multiple of the
    /// step: upwards the maximum is raised, downwards the minimum is lowered. `None` when that
    /// leaves the width. Random ranges are not for counters.
    pub(super) fn of_range(range: &Range, width: Width) -> Option<Counter> {
        let downwards = range.operation == Operation::Decrement;
        let length = u128::from(range.max - range.min) + 1;
        let last = length.next_multiple_of(u128::from(range.step)) - 1;
        let last = u64::try_from(last).ok()?;
        let (base, start) = if downwards {
            range.max.checked_sub(last)?;
            (range.max, range.max - range.init)
        } else {
            range
                .min
                .checked_add(last)
                .filter(|&max| max <= width.max_value())?;
            (range.min, range.init - range.min)
        };
        let step = range.step;
        let cycle = Cycle { last, start, step };
        Some(Counter {
            cycle,
            base,
            downwards,
        })
    }

    /// The smallest and the largest value that any packet has.
    pub(super) fn bounds(&self) -> (u64, u64) {
        let Cycle { last, start, step } = self.cycle;
        let first = start % step;
        let distance = first + (last - (step - 1));
        if self.downwards {
            (self.base - distance, self.base - first)
        } else {
            (self.base + first, self.base + distance)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A range, its members in the order of their declaration.
    pub(in crate::vm) fn range(
        operation: Operation,
        init: u64,
        min: u64,
        max: u64,
        step: u64,
    ) -> Range {
        Range {
            operation,
            init,
            min,
            max,
            step,
        }
    }

    #[test]
    fn a_range_is_padded_in_the_direction_of_travel() {
        let up = range(Operation::Increment, 5, 5, 11, 3);
        let up = Counter::of_range(&up, Width::One).unwrap();
        assert_eq!((up.base, up.cycle.last), (5, 8));
        assert_eq!(up.bounds(), (5, 11));
        let down = range(Operation::Decrement, 11, 5, 11, 3);
        let down = Counter::of_range(&down, Width::One).unwrap();
        assert_eq!((down.base, down.cycle.last), (11, 8));
        assert_eq!(down.bounds(), (5, 11));
    }

    #[test]
    fn padding_must_stay_within_the_width() {
        let up = range(Operation::Increment, 250, 250, 255, 4);
        assert_eq!(Counter::of_range(&up, Width::One), None);
        assert!(Counter::of_range(&up, Width::Two).is_some());
        let down = range(Operation::Decrement, 5, 0, 5, 4);
        assert_eq!(Counter::of_range(&down, Width::One), None);
        let full = range(Operation::Increment, 0, 0, u64::MAX, 3);
        assert_eq!(Counter::of_range(&full, Width::Eight), None);
    }
}
