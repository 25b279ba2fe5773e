//! The naive evaluator: a packet-by-packet reading of a program, with no thought of speed.

use allosaur_engine::vm::{Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width};

/// One variable of the naive evaluator.
struct NaiveVariable {
    width: Width,
    values: Values,
    /// Value of the next packet; for lists and sequences, its index.
    next: u128,
    /// Moves only when the variable before passes its end.
    follows: bool,
    /// Moves only once all cores have sent a packet.
    each_core: bool,
}

/// A packet-by-packet reading of a program, with no thought of speed.
pub(crate) struct Naive<'a> {
    instructions: &'a [Instruction],
    pub(crate) template: &'a [u8],
    variables: Vec<NaiveVariable>,
    seed: u32,
    /// Number of the next packet.
    packet: u64,
    /// Cores that send it, one packet each in turn.
    cores: u64,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(instructions: &'a [Instruction], template: &'a [u8], seed: u32) -> Naive<'a> {
        let mut follows = false;
        let variables = instructions
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Variable {
                    name,
                    width,
                    values,
                    next,
                    each_core,
                } => {
                    let is_length = instructions.iter().any(|other| {
                    matches!(other, Instruction::TrimPacketSize { variable } if variable == name)
                });
                    let limit = if is_length {
                        template.len() as u64
                    } else {
                        u64::MAX
                    };
                    let follows = std::mem::replace(&mut follows, next.is_some());
                    let mut variable = NaiveVariable::new(*width, values.clone(), limit, follows);
                    variable.each_core = *each_core && !follows;
                    Some(variable)
                }
                _ => None,
            });
        Naive {
            instructions,
            template,
            variables: variables.collect(),
            seed: seed.max(1).wrapping_mul(514_229),
            packet: 0,
            cores: 1,
        }
    }

    /// The same packets as so many cores send in turn.
    pub(crate) fn on_cores(self, cores: u64) -> Naive<'a> {
        Naive { cores, ..self }
    }

    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(214_013).wrapping_add(2_531_011);
        u64::from(self.seed >> 16) & 0x7fff
    }

    fn draw_twice(&mut self) -> u64 {
        let high = self.draw();
        (high << 16) | self.draw()
    }

    /// The variable's value in this packet.
    fn value(&mut self, index: usize) -> u64 {
        let variable = &self.variables[index];
        let width = variable.width;
        match variable.values.clone() {
            Values::Range(range) if range.operation == Operation::Random => {
                let drawn = match width {
                    Width::One | Width::Two => self.draw(),
                    Width::Four | Width::Eight => self.draw_twice(),
                };
                range.min + (u128::from(drawn) % length(&range)) as u64
            }
            Values::List {
                values,
                operation: Operation::Random,
                ..
            } => {
                let drawn = match values.len() {
                    0..=32_768 => self.draw(),
                    _ => self.draw_twice(),
                };
                values[(drawn % values.len() as u64) as usize]
            }
            _ => self.variables[index].value(),
        }
    }

    pub(crate) fn packet(&mut self) -> Vec<u8> {
        let mut packet = self.template.to_vec();
        let mut length = packet.len();
        let mut values: Vec<(String, Width, u64)> = Vec::new();
        let mut index = 0;
        for instruction in self.instructions {
            let find = |name: &String| {
                let found = values.iter().find(|(known, ..)| known == name);
                let (_, width, value) = found.expect("declared before");
                (*width, *value)
            };
            match instruction {
                Instruction::Variable { name, width, .. } => {
                    let value = self.value(index);
                    index += 1;
                    values.push((name.clone(), *width, value));
                }
                Instruction::Tuple { name, flows } => {
                    let (ip, port) = flow(flows, self.packet);
                    values.push((format!("{name}.ip"), Width::Four, ip));
                    values.push((format!("{name}.port"), Width::Two, port));
                }
                Instruction::WriteMask {
                    variable,
                    offset,
                    field,
                    mask,
                    shift,
                    add,
                    big_endian,
                } => {
                    let value = half(find(variable), *big_endian).wrapping_add(*add as u32);
                    let field = &mut packet[*offset..offset + field.bytes()];
                    merge(field, value, (*mask, *shift), *big_endian);
                }
                Instruction::Write {
                    variable,
                    offset,
                    add,
                    big_endian,
                } => {
                    let (width, value) = find(variable);
                    let sum = i128::from(value) + i128::from(*add);
                    put(
                        &mut packet[*offset..offset + width.bytes()],
                        sum as u64,
                        *big_endian,
                    );
                }
                Instruction::FixChecksumIpv4 { offset } => fix_checksum(&mut packet, *offset),
                Instruction::FixChecksums { .. } | Instruction::FixChecksumIcmpv6 { .. } => {}
                Instruction::TrimPacketSize { variable } => {
                    length = (find(variable).1 as usize).min(self.template.len());
                }
            }
        }
        packet.truncate(length);
        self.fix_last(&mut packet);
        self.packet += 1;
        let mut passed = false;
        for variable in &mut self.variables {
            let turn = !variable.each_core || self.packet % self.cores == 0;
            let moves = if variable.follows { passed } else { turn };
            passed = moves && variable.step();
        }
        packet
    }

    /// The checksums that come last, the inner ones first.
    fn fix_last(&self, packet: &mut [u8]) {
        let mut fixes: Vec<(usize, usize, Option<Layer4>)> = self
            .instructions
            .iter()
            .filter_map(|instruction| match *instruction {
                Instruction::FixChecksums {
                    l2_bytes,
                    l3_bytes,
                    layer4,
                } => Some((l2_bytes, l3_bytes, Some(layer4))),
                Instruction::FixChecksumIcmpv6 { l2_bytes, l3_bytes } => {
                    Some((l2_bytes, l3_bytes, None))
                }
                _ => None,
            })
            .collect();
        fixes.sort_by_key(|&(l2_bytes, ..)| usize::MAX - l2_bytes);
        for (l3, l3_bytes, layer4) in fixes {
            if packet[l3] >> 4 == 4 {
                fix_checksum(packet, l3);
            }
            let place = (l3, l3 + l3_bytes);
            match layer4 {
                Some(Layer4::Udp) => fix_segment(packet, place, (6, 17)),
                Some(Layer4::Tcp) => fix_segment(packet, place, (16, 6)),
                Some(Layer4::Any) => {}
                None => fix_segment(packet, place, (2, 58)),
            }
        }
    }

    pub(crate) fn packets(mut self, n: usize) -> Vec<Vec<u8>> {
        (0..n).map(|_| self.packet()).collect()
    }
}

/// The checksum of what is behind an IP header, to the packet's end: RFC 9293 §3.1 and RFC 8200
/// §8.1 word for word. Packets may end before the field or in it.
fn fix_segment(packet: &mut [u8], (l3, l4): (usize, usize), (offset, protocol): (usize, u8)) {
    let end = packet.len().min(l4 + offset + 2);
    if end <= l4 + offset {
        return;
    }
    packet[l4 + offset..end].fill(0);
    let addresses = match packet[l3] >> 4 {
        4 => l3 + 12..l3 + 20,
        _ => l3 + 8..l3 + 40,
    };
    let mut bytes = packet[addresses].to_vec();
    bytes.extend(((packet.len() - l4) as u32).to_be_bytes());
    bytes.extend([0, protocol]);
    bytes.extend(&packet[l4..]);
    let mut sum = 0u32;
    for word in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = match !(sum as u16) {
        0 if protocol == 17 => 0xffff,
        sum => sum,
    };
    let field = &mut packet[l4 + offset..end];
    let bytes = sum.to_be_bytes();
    field.copy_from_slice(&bytes[..field.len()]);
}

/// The address and the port of a flow: addresses first, then the next port.
fn flow(flows: &Flows, packet: u64) -> (u64, u64) {
    let number = match flows.limit {
        0 => packet,
        limit => packet % u64::from(limit),
    };
    let ips = u64::from(flows.ip_max) - u64::from(flows.ip_min) + 1;
    let ports = u64::from(flows.port_max) - u64::from(flows.port_min) + 1;
    let (ip, port) = (number % ips, number / ips % ports);
    (
        u64::from(flows.ip_min) + ip,
        u64::from(flows.port_min) + port,
    )
}

/// What a masked write takes of a variable, as TRex does.
fn half((width, value): (Width, u64), big_endian: bool) -> u32 {
    let is_upper = width == Width::Eight && big_endian;
    (if is_upper { value >> 32 } else { value }) as u32
}

/// Writes the bits of `mask` of the shifted value; the others stay.
fn merge(field: &mut [u8], value: u32, (mask, shift): (u32, i64), big_endian: bool) {
    let bits = if shift < 0 {
        value >> -shift
    } else {
        value << shift
    };
    let add = |number: u32, byte: &u8| (number << 8) | u32::from(*byte);
    let old = if big_endian {
        field.iter().fold(0, add)
    } else {
        field.iter().rev().fold(0, add)
    };
    put(field, u64::from((old & !mask) | (bits & mask)), big_endian);
}

fn put(field: &mut [u8], number: u64, big_endian: bool) {
    let bytes = number.to_le_bytes();
    field.copy_from_slice(&bytes[..field.len()]);
    if big_endian {
        field.reverse();
    }
}

impl NaiveVariable {
    fn new(width: Width, mut values: Values, limit: u64, follows: bool) -> NaiveVariable {
        let next = match &mut values {
            Values::Range(range) => {
                range.max = range.max.min(limit);
                range.init = range.init.min(range.max);
                u128::from(range.init)
            }
            Values::List {
                values, operation, ..
            } => {
                values
                    .iter_mut()
                    .for_each(|value| *value = (*value).min(limit));
                match operation {
                    Operation::Decrement => values.len() as u128 - 1,
                    Operation::Increment | Operation::Random => 0,
                }
            }
            Values::Sequence(sequence) => {
                sequence.max = sequence.max.min(limit);
                0
            }
        };
        NaiveVariable {
            width,
            values,
            next,
            follows,
            each_core: false,
        }
    }

    fn value(&self) -> u64 {
        match &self.values {
            Values::Range(_) => self.next as u64,
            Values::List { values, .. } => values[self.next as usize],
            Values::Sequence(sequence) => drawn(sequence, self.width, self.next),
        }
    }

    /// Moves on by one step; says whether that passed the end.
    fn step(&mut self) -> bool {
        let now = self.next;
        let passed;
        (self.next, passed) = match &self.values {
            Values::Range(range) => {
                let (step, padded) = (u128::from(range.step), padded(range));
                let (min, max) = (u128::from(range.min), u128::from(range.max));
                match range.operation {
                    Operation::Increment if now + step < min + padded => (now + step, false),
                    Operation::Increment => (now + step - padded, true),
                    Operation::Decrement if now + padded > max + step => (now - step, false),
                    Operation::Decrement => (now + padded - step, true),
                    Operation::Random => (now, false),
                }
            }
            Values::List {
                values,
                operation,
                step,
            } => {
                let (length, step) = (values.len() as u128, u128::from(*step));
                match operation {
                    Operation::Increment => ((now + step) % length, now + step >= length),
                    _ => ((now + length - step % length) % length, step > now),
                }
            }
            Values::Sequence(sequence) => {
                let next = (now + 1) % u128::from(sequence.length);
                (next, next == 0)
            }
        };
        passed
    }
}

/// The value at an index of a sequence, drawn from its beginning.
fn drawn(sequence: &Sequence, width: Width, index: u128) -> u64 {
    let mut seed = sequence.seed;
    let mut draw = || {
        seed = seed.wrapping_mul(214_013).wrapping_add(2_531_011);
        u128::from(seed >> 16) & 0x7fff
    };
    let mut value = 0;
    for _ in 0..=index {
        value = match width {
            Width::One | Width::Two => draw(),
            Width::Four | Width::Eight => (draw() << 16) | draw(),
        };
    }
    let positions = u128::from(sequence.max) - u128::from(sequence.min) + 1;
    sequence.min + (value % positions) as u64
}

fn length(range: &Range) -> u128 {
    u128::from(range.max) - u128::from(range.min) + 1
}

pub(crate) fn padded(range: &Range) -> u128 {
    length(range).div_ceil(u128::from(range.step)) * u128::from(range.step)
}

/// RFC 791 and RFC 1071 word for word.
fn fix_checksum(packet: &mut [u8], header: usize) {
    let bytes = usize::from(packet[header] & 0x0f) * 4;
    packet[header + 10..header + 12].fill(0);
    let mut sum = 0u32;
    for word in packet[header..header + bytes].chunks(2) {
        sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = !(sum as u16);
    packet[header + 10..header + 12].copy_from_slice(&sum.to_be_bytes());
}
