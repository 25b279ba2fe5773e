//! Random programs and templates.

use allosaur_engine::vm::{Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width};
use proptest::prelude::*;
use proptest::sample::Index;

use super::naive::padded;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) template: Vec<u8>,
    pub(crate) seed: u32,
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![
        Just(Width::One),
        Just(Width::Two),
        Just(Width::Four),
        Just(Width::Eight)
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::Increment),
        Just(Operation::Decrement),
        Just(Operation::Random)
    ]
}

fn values(width: Width) -> impl Strategy<Value = Values> {
    let most = width.max_value();
    let bound = prop_oneof![0..=most, Just(0), Just(most), 0..=most.min(300)];
    let step = prop_oneof![1..=5u64, 1..=most, Just(1)];
    let bounds = [bound.clone(), bound.clone(), bound];
    let range = (operation(), bounds, step.clone()).prop_map(|(operation, mut bounds, step)| {
        bounds.sort_unstable();
        let [min, init, max] = bounds;
        Values::Range(Range {
            operation,
            init,
            min,
            max,
            step,
        })
    });
    let list = prop::collection::vec(0..=most, 1..100);
    let list = (operation(), list, step).prop_map(|(operation, values, step)| Values::List {
        values,
        operation,
        step,
    });
    let bounds = [0..=most, 0..=most.min(300)];
    let sequence = (any::<u32>(), 1..200u64, bounds);
    let sequence = sequence.prop_map(|(seed, length, mut bounds)| {
        bounds.sort_unstable();
        let [min, max] = bounds;
        Values::Sequence(Sequence {
            seed,
            length,
            min,
            max,
        })
    });
    prop_oneof![4 => range, 1 => list, 1 => sequence]
}

/// Variables, whether the next one follows each, and whether each core counts alone.
fn variables() -> impl Strategy<Value = Vec<(Width, Values, bool, bool)>> {
    let small = Just(Width::Two).prop_flat_map(|width| (Just(width), small_values()));
    let variable = width().prop_flat_map(|width| (Just(width), values(width)));
    let variable = (prop_oneof![variable, small], any::<bool>(), any::<bool>());
    let variables = prop::collection::vec(variable, 1..6);
    variables.prop_map(|variables| {
        let may_chain: Vec<bool> = variables
            .iter()
            .map(|((_, values), ..)| may_chain(values))
            .collect();
        let variables = variables.into_iter().enumerate();
        let link = |(i, variable): (usize, ((Width, Values), bool, bool))| {
            let ((width, values), leads, each_core) = variable;
            let both = may_chain[i] && may_chain.get(i + 1) == Some(&true);
            (width, values, leads && both, each_core)
        };
        variables.map(link).collect()
    })
}

/// Values whose end is near, so that chains move in all their members.
fn small_values() -> impl Strategy<Value = Values> {
    let down = any::<bool>().prop_map(|down| match down {
        true => Operation::Decrement,
        false => Operation::Increment,
    });
    let range = (down.clone(), 0..4u64, 1..4u64, 0..4u64, 1..4u64);
    let range = range.prop_map(|(operation, min, steps, init, step)| {
        let last = steps * step - 1;
        Values::Range(Range {
            operation,
            init: 100 + min + init % (last + 1),
            min: 100 + min,
            max: 100 + min + last,
            step,
        })
    });
    let list = (down, prop::collection::vec(0..99u64, 1..5), 1..5u64);
    let list = list.prop_map(|(operation, values, step)| Values::List {
        step: step.min(values.len() as u64),
        values,
        operation,
    });
    let sequence = (any::<u32>(), 1..5u64).prop_map(|(seed, length)| {
        Values::Sequence(Sequence {
            seed,
            length,
            min: 0,
            max: 99,
        })
    });
    prop_oneof![2 => range, 1 => list, 1 => sequence]
}

fn may_chain(values: &Values) -> bool {
    match values {
        Values::List { values, step, .. } if *step > values.len() as u64 => false,
        values => !values.is_random(),
    }
}

/// Values of a 2-byte variable that may be a packet's length, the range a multiple of the step.
fn lengths() -> impl Strategy<Value = Option<Values>> {
    let range = (operation(), 60..=60u64, 0..200u64, 0..200u64, 1..9u64);
    let range = range.prop_map(|(operation, min, init, steps, step)| {
        let last = (steps + 1) * step - 1;
        let start = init % (steps + 1) * step;
        let down = operation == Operation::Decrement;
        Values::Range(Range {
            operation,
            init: min + if down { last - start } else { start },
            min,
            max: min + last,
            step,
        })
    });
    let list = (operation(), prop::collection::vec(60..900u64, 1..50));
    let list = list.prop_map(|(operation, values)| Values::List {
        values,
        operation,
        step: 1,
    });
    prop::option::of(prop_oneof![range, list])
}

/// What becomes a write or a checksum once the variables and the template are known.
#[derive(Clone, Debug)]
struct Rough {
    kind: RoughKind,
    pick: Index,
    at: Index,
    add: i64,
    big_endian: bool,
}

#[derive(Clone, Copy, Debug)]
enum RoughKind {
    Write,
    Checksum,
    Bits { field: Width, mask: u32, shift: i64 },
}

fn rough_kind() -> impl Strategy<Value = RoughKind> {
    let field = prop_oneof![Just(Width::One), Just(Width::Two), Just(Width::Four)];
    let mask = prop_oneof![any::<u32>(), Just(0xff), Just(0x0fff), Just(u32::MAX)];
    let bits = (field, mask, prop_oneof![Just(0), -31..=31i64]);
    let bits = bits.prop_map(|(field, mask, shift)| RoughKind::Bits {
        field,
        mask: mask | 1,
        shift,
    });
    prop_oneof![
        4 => Just(RoughKind::Write),
        3 => Just(RoughKind::Checksum),
        3 => bits
    ]
}

/// An IP header and what follows, whose checksums are fixed.
#[derive(Clone, Copy, Debug)]
struct Stack {
    l3: usize,
    l3_bytes: usize,
    ipv6: bool,
    layer4: Option<Layer4>,
}

fn stack() -> impl Strategy<Value = Stack> {
    let layer4 = prop_oneof![
        Just(Some(Layer4::Udp)),
        Just(Some(Layer4::Tcp)),
        Just(Some(Layer4::Any)),
        Just(None)
    ];
    (14..=18usize, 0..=1usize, any::<bool>(), layer4).prop_map(|(l3, more, ipv6, layer4)| Stack {
        l3,
        l3_bytes: if ipv6 { 40 + 8 * more } else { 20 + 4 * more },
        ipv6,
        layer4,
    })
}

impl Stack {
    /// Writes the headers into the template; `None` when they do not fit.
    fn plant(self, template: &mut [u8]) -> Option<Instruction> {
        let (l2_bytes, l3_bytes) = (self.l3, self.l3_bytes);
        let bytes = u16::try_from(template.len() - l2_bytes).expect("templates are short");
        let fixed = match (self.layer4, self.ipv6) {
            (Some(Layer4::Any), true) | (None, false) => return None,
            (Some(layer4), _) => Instruction::FixChecksums {
                l2_bytes,
                l3_bytes,
                layer4,
            },
            (None, true) => Instruction::FixChecksumIcmpv6 { l2_bytes, l3_bytes },
        };
        let protocol = match self.layer4 {
            Some(Layer4::Udp) => 17,
            Some(Layer4::Tcp) => 6,
            Some(Layer4::Any) => 99,
            None => 58,
        };
        let header = template.get_mut(l2_bytes..)?;
        if header.len() < l3_bytes + 18 {
            return None;
        }
        if self.ipv6 {
            header[0] = 0x60;
            header[4..6].copy_from_slice(&(bytes - 40).to_be_bytes());
            header[6] = protocol;
        } else {
            header[0] = 0x40 | u8::try_from(l3_bytes / 4).expect("a few words");
            header[2..4].copy_from_slice(&bytes.to_be_bytes());
            header[9] = protocol;
        }
        Some(fixed)
    }
}

fn flows() -> impl Strategy<Value = Flows> {
    let ips = prop_oneof![
        any::<[u32; 2]>(),
        any::<u32>().prop_map(|ip| [ip, ip.saturating_add(9)])
    ];
    let ports = prop_oneof![any::<[u16; 2]>(), Just([1025, 1030])];
    let limit = prop_oneof![Just(0), 1..100u32, any::<u32>()];
    (ips, ports, limit).prop_map(|(mut ips, mut ports, limit)| {
        ips.sort_unstable();
        ports.sort_unstable();
        Flows {
            ip_min: ips[0],
            ip_max: ips[1],
            port_min: ports[0],
            port_max: ports[1],
            limit,
        }
    })
}

fn rough() -> impl Strategy<Value = Rough> {
    let add = prop_oneof![Just(0), -300..300i64, any::<i64>()];
    let parts = (
        rough_kind(),
        any::<Index>(),
        any::<Index>(),
        add,
        any::<bool>(),
    );
    parts.prop_map(|(kind, pick, at, add, big_endian)| Rough {
        kind,
        pick,
        at,
        add,
        big_endian,
    })
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let template = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 60..=64),
        2 => prop::collection::vec(any::<u8>(), 65..=130),
        1 => prop::collection::vec(any::<u8>(), 131..=800),
    ];
    let headers = prop::collection::vec((0..40usize, 5..=15u8), 0..3);
    let actions = prop::collection::vec(rough(), 0..10);
    let parts = (
        template,
        (headers, prop::option::of(stack())),
        (variables(), prop::option::of(flows())),
        lengths(),
        actions,
        any::<u32>(),
    );
    parts.prop_map(
        |(mut template, (headers, stack), (variables, flows), lengths, actions, seed)| {
            let fix = stack.and_then(|stack| stack.plant(&mut template).map(|fix| (stack, fix)));
            let headers = match &fix {
                Some((stack, _)) => vec![(stack.l3, stack.l3_bytes)],
                None => plant_headers(&mut template, headers),
            };
            let fix = fix.map(|(_, fix)| fix);
            let declared = variables.iter().enumerate();
            let mut instructions: Vec<Instruction> = declared
                .map(
                    |(i, (width, values, leads, each_core))| Instruction::Variable {
                        name: format!("v{i}"),
                        width: *width,
                        values: values.clone(),
                        next: leads.then(|| format!("v{}", i + 1)),
                        each_core: *each_core,
                    },
                )
                .collect();
            let mut names: Vec<(String, Width)> = instructions
                .iter()
                .flat_map(Instruction::declared)
                .collect();
            if let Some(flows) = flows {
                let name = "flow".to_owned();
                let tuple = Instruction::Tuple { name, flows };
                names.extend(tuple.declared());
                instructions.push(tuple);
            }
            for action in &actions {
                instructions.extend(settle(action, &names, (&headers, &fix), template.len()));
            }
            if let Some(values) = lengths {
                instructions.push(declare("length", Width::Two, values));
                if headers
                    .iter()
                    .all(|&(header, _)| !(16..18).contains(&header))
                {
                    instructions.push(write("length", 16, -14, true));
                }
                let variable = "length".to_owned();
                instructions.push(Instruction::TrimPacketSize { variable });
            }
            Case {
                instructions,
                template,
                seed,
            }
        },
    )
}

pub(crate) fn declare(name: &str, width: Width, values: Values) -> Instruction {
    Instruction::Variable {
        name: name.to_owned(),
        width,
        values,
        next: None,
        each_core: false,
    }
}

pub(crate) fn write(name: &str, offset: usize, add: i64, big_endian: bool) -> Instruction {
    Instruction::Write {
        variable: name.to_owned(),
        offset,
        add,
        big_endian,
    }
}

pub(crate) fn write_mask(
    name: &str,
    offset: usize,
    field: Width,
    mask: u32,
    shift: i64,
) -> Instruction {
    Instruction::WriteMask {
        variable: name.to_owned(),
        offset,
        field,
        mask,
        shift,
        add: 0,
        big_endian: true,
    }
}

/// Puts first bytes of IPv4 headers into the template; gives the offsets of those that fit.
fn plant_headers(template: &mut [u8], headers: Vec<(usize, u8)>) -> Vec<(usize, usize)> {
    let mut planted: Vec<(usize, usize)> = Vec::new();
    for (offset, words) in headers {
        let bytes = usize::from(words) * 4;
        if offset + bytes <= template.len() {
            template[offset] = 0x40 | words;
            planted.retain(|&(other, _)| other != offset);
            planted.push((offset, bytes));
        }
    }
    planted
}

/// No write changes the first byte of a header: its length is the template's.
fn settle(
    rough: &Rough,
    names: &[(String, Width)],
    (headers, fix): (&[(usize, usize)], &Option<Instruction>),
    template_bytes: usize,
) -> Option<Instruction> {
    let spares_headers = |offset: usize, bytes: usize| {
        headers
            .iter()
            .all(|&(header, _)| !(offset..offset + bytes).contains(&header))
    };
    let (name, width) = &names[rough.pick.index(names.len())];
    let place = |bytes: usize| {
        let offset = rough.at.index(template_bytes.min(512) - bytes + 1);
        spares_headers(offset, bytes).then_some(offset)
    };
    match rough.kind {
        RoughKind::Checksum if fix.is_some() => fix.clone(),
        RoughKind::Checksum => {
            let (offset, _) = *headers.get(rough.pick.index(headers.len().max(1)))?;
            spares_headers(offset + 10, 2).then_some(Instruction::FixChecksumIpv4 { offset })
        }
        RoughKind::Write => {
            let offset = place(width.bytes())?;
            Some(write(name, offset, rough.add, rough.big_endian))
        }
        RoughKind::Bits { field, mask, shift } => Some(Instruction::WriteMask {
            variable: name.clone(),
            offset: place(field.bytes())?,
            field,
            mask,
            shift,
            add: rough.add,
            big_endian: rough.big_endian,
        }),
    }
}

/// Whether a counter's range, padded to a multiple of its step, leaves its width.
pub(crate) fn leaves_its_width(instructions: &[Instruction]) -> bool {
    instructions.iter().any(|instruction| match instruction {
        Instruction::Variable {
            width,
            values: Values::Range(range),
            ..
        } => match range.operation {
            Operation::Increment => {
                u128::from(range.min) + padded(range) > u128::from(width.max_value()) + 1
            }
            Operation::Decrement => padded(range) > u128::from(range.max) + 1,
            Operation::Random => false,
        },
        _ => false,
    })
}

/// Whether the template cuts a range of lengths, whose padding may then begin too low.
pub(crate) fn cuts_a_stepped_range(case: &Case) -> bool {
    case.instructions
        .iter()
        .any(|instruction| match instruction {
            Instruction::Variable {
                name,
                values: Values::Range(range),
                ..
            } => name == "length" && range.step > 1 && range.max > case.template.len() as u64,
            _ => false,
        })
}
