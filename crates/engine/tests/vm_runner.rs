//! The field engine against a naive evaluator: random programs, on any number of cores, in any
//! bursts, make the packets that a packet-by-packet reading of the program gives.

use allosaur_engine::vm::{
    BURST, Instruction, Operation, Program, Range, Stage, State, Values, Width,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// One variable of the naive evaluator.
struct NaiveVariable {
    width: Width,
    values: Values,
    /// Value of the next packet; for lists, its index.
    next: u128,
}

/// A packet-by-packet reading of a program, with no thought of speed.
struct Naive<'a> {
    instructions: &'a [Instruction],
    template: &'a [u8],
    variables: Vec<NaiveVariable>,
    seed: u32,
}

impl<'a> Naive<'a> {
    fn new(instructions: &'a [Instruction], template: &'a [u8], seed: u32) -> Naive<'a> {
        let variables = instructions
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Variable {
                    name,
                    width,
                    values,
                } => {
                    let is_length = instructions.iter().any(|other| {
                    matches!(other, Instruction::TrimPacketSize { variable } if variable == name)
                });
                    let limit = if is_length {
                        template.len() as u64
                    } else {
                        u64::MAX
                    };
                    Some(NaiveVariable::new(*width, values.clone(), limit))
                }
                _ => None,
            });
        Naive {
            instructions,
            template,
            variables: variables.collect(),
            seed: seed.max(1).wrapping_mul(514_229),
        }
    }

    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(214_013).wrapping_add(2_531_011);
        u64::from(self.seed >> 16) & 0x7fff
    }

    fn draw_twice(&mut self) -> u64 {
        let high = self.draw();
        (high << 16) | self.draw()
    }

    /// The variable's value in this packet; moves it on.
    fn advance(&mut self, index: usize) -> u64 {
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
            _ => self.variables[index].count(),
        }
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut packet = self.template.to_vec();
        let mut length = packet.len();
        let mut values: Vec<(&str, Width, u64)> = Vec::new();
        for instruction in self.instructions {
            let find = |name: &String| {
                let found = values.iter().find(|(known, ..)| known == name);
                let (_, width, value) = found.expect("declared before");
                (*width, *value)
            };
            match instruction {
                Instruction::Variable { name, width, .. } => {
                    let value = self.advance(values.len());
                    values.push((name, *width, value));
                }
                Instruction::Write {
                    variable,
                    offset,
                    add,
                    big_endian,
                } => {
                    let (width, value) = find(variable);
                    let sum = i128::from(value) + i128::from(*add);
                    let bytes = sum.to_le_bytes();
                    for (i, byte) in bytes[..width.bytes()].iter().enumerate() {
                        let at = if *big_endian {
                            width.bytes() - 1 - i
                        } else {
                            i
                        };
                        packet[offset + at] = *byte;
                    }
                }
                Instruction::FixChecksumIpv4 { offset } => fix_checksum(&mut packet, *offset),
                Instruction::TrimPacketSize { variable } => {
                    length = (find(variable).1 as usize).min(self.template.len());
                }
            }
        }
        packet.truncate(length);
        packet
    }

    fn packets(mut self, n: usize) -> Vec<Vec<u8>> {
        (0..n).map(|_| self.packet()).collect()
    }
}

impl NaiveVariable {
    fn new(width: Width, mut values: Values, limit: u64) -> NaiveVariable {
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
        };
        NaiveVariable {
            width,
            values,
            next,
        }
    }

    fn count(&mut self) -> u64 {
        let now = self.next;
        match &self.values {
            Values::Range(range) => {
                let (step, padded) = (u128::from(range.step), padded(range));
                let (min, max) = (u128::from(range.min), u128::from(range.max));
                self.next = match range.operation {
                    Operation::Increment if now + step < min + padded => now + step,
                    Operation::Increment => now + step - padded,
                    _ if now + padded > max + step => now - step,
                    _ => now + padded - step,
                };
                now as u64
            }
            Values::List {
                values,
                operation,
                step,
            } => {
                let (length, step) = (values.len() as u128, u128::from(*step));
                self.next = match operation {
                    Operation::Increment => (now + step) % length,
                    _ => (now + length - step % length) % length,
                };
                values[now as usize]
            }
        }
    }
}

fn length(range: &Range) -> u128 {
    u128::from(range.max) - u128::from(range.min) + 1
}

fn padded(range: &Range) -> u128 {
    length(range).div_ceil(u128::from(range.step)) * u128::from(range.step)
}

/// Whether a counter's range, padded to a multiple of its step, leaves its width.
fn leaves_its_width(instructions: &[Instruction]) -> bool {
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
fn cuts_a_stepped_range(case: &Case) -> bool {
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

/// What the runner makes: this core's packets, in bursts of the given sizes, again and again.
fn run(
    stage: &mut Stage,
    (program, state): (&Program, &mut State),
    template: &[u8],
    bursts: &[usize],
    n: usize,
) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for &burst in bursts.iter().cycle() {
        let burst = burst.min(n - packets.len());
        stage.run(program, state, template, burst);
        for i in 0..burst {
            let mut out = vec![0xa5; stage.length(i)];
            stage.write(i, template, &mut out);
            packets.push(out);
        }
        if packets.len() == n {
            break;
        }
    }
    packets
}

#[derive(Clone, Debug)]
struct Case {
    instructions: Vec<Instruction>,
    template: Vec<u8>,
    seed: u32,
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
    prop_oneof![3 => range, 1 => list]
}

fn variables() -> impl Strategy<Value = Vec<(Width, Values)>> {
    let variable = width().prop_flat_map(|width| (Just(width), values(width)));
    prop::collection::vec(variable, 1..6)
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
    checksum: bool,
    pick: Index,
    at: Index,
    add: i64,
    big_endian: bool,
}

fn rough() -> impl Strategy<Value = Rough> {
    let add = prop_oneof![Just(0), -300..300i64, any::<i64>()];
    let checksum = prop::bool::weighted(0.3);
    let parts = (checksum, any::<Index>(), any::<Index>(), add, any::<bool>());
    parts.prop_map(|(checksum, pick, at, add, big_endian)| Rough {
        checksum,
        pick,
        at,
        add,
        big_endian,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let template = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 60..=64),
        2 => prop::collection::vec(any::<u8>(), 65..=130),
        1 => prop::collection::vec(any::<u8>(), 131..=800),
    ];
    let headers = prop::collection::vec((0..40usize, 5..=15u8), 0..3);
    let actions = prop::collection::vec(rough(), 0..10);
    let parts = (
        template,
        headers,
        variables(),
        lengths(),
        actions,
        any::<u32>(),
    );
    parts.prop_map(
        |(mut template, headers, variables, lengths, actions, seed)| {
            let headers = plant_headers(&mut template, headers);
            let declared = variables.iter().enumerate();
            let mut instructions: Vec<Instruction> = declared
                .map(|(i, (width, values))| declare(&format!("v{i}"), *width, values.clone()))
                .collect();
            for action in &actions {
                instructions.extend(settle(action, &variables, &headers, template.len()));
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

fn declare(name: &str, width: Width, values: Values) -> Instruction {
    Instruction::Variable {
        name: name.to_owned(),
        width,
        values,
    }
}

fn write(name: &str, offset: usize, add: i64, big_endian: bool) -> Instruction {
    Instruction::Write {
        variable: name.to_owned(),
        offset,
        add,
        big_endian,
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
    variables: &[(Width, Values)],
    headers: &[(usize, usize)],
    template_bytes: usize,
) -> Option<Instruction> {
    let spares_headers = |offset: usize, bytes: usize| {
        headers
            .iter()
            .all(|&(header, _)| !(offset..offset + bytes).contains(&header))
    };
    if rough.checksum {
        let (offset, _) = *headers.get(rough.pick.index(headers.len().max(1)))?;
        return spares_headers(offset + 10, 2).then_some(Instruction::FixChecksumIpv4 { offset });
    }
    let index = rough.pick.index(variables.len());
    let bytes = variables[index].0.bytes();
    let offset = rough.at.index(template_bytes.min(512) - bytes + 1);
    spares_headers(offset, bytes)
        .then(|| write(&format!("v{index}"), offset, rough.add, rough.big_endian))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_core_makes_its_share_of_the_naive_packets(
        case in case(),
        cores in 1..6usize,
        skipped in 0..40usize,
        bursts in prop::collection::vec(1..=BURST, 1..5),
    ) {
        let Case { instructions, template, seed } = &case;
        let program = match Program::compile(instructions, template) {
            Ok(program) => program,
            Err(error) => {
                let cut = error.kind == "trim_pkt_size" && cuts_a_stepped_range(&case);
                let reason = cut || leaves_its_width(instructions);
                prop_assert!(reason, "refused without reason: {error}");
                return Ok(());
            }
        };
        prop_assert!(!leaves_its_width(instructions));
        let per_core = 150;
        let expected = Naive::new(instructions, template, *seed).packets(cores * per_core);
        let mut stage = Stage::default();
        for core in 0..cores {
            let mut state = State::new(&program, *seed, core as u64, cores as u64);
            state.skip(skipped as u64);
            let n = per_core - skipped;
            let made = run(&mut stage, (&program, &mut state), template, &bursts, n);
            let share = expected.iter().skip(core).step_by(cores).skip(skipped);
            for (i, (made, expected)) in made.iter().zip(share).enumerate() {
                prop_assert_eq!(made, expected, "packet {} of core {}", i, core);
            }
        }
    }

    #[test]
    fn skipping_is_starting_later(
        case in case(),
        first in any::<u32>(),
        stride in 1..64u64,
        skipped in any::<u32>(),
    ) {
        let Ok(program) = Program::compile(&case.instructions, &case.template) else {
            return Ok(());
        };
        let (first, skipped) = (u64::from(first), u64::from(skipped));
        let mut walked = State::new(&program, case.seed, first, stride);
        walked.skip(skipped);
        let begun = State::new(&program, case.seed, first + stride * skipped, stride);
        prop_assert_eq!(walked, begun);
    }

    #[test]
    fn streams_that_share_a_stage_do_not_mix(
        cases in prop::collection::vec(case(), 2..4),
        bursts in prop::collection::vec((any::<Index>(), 1..=BURST), 1..12),
    ) {
        let mut streams = Vec::new();
        for case in &cases {
            let Ok(program) = Program::compile(&case.instructions, &case.template) else {
                return Ok(());
            };
            let state = State::new(&program, case.seed, 0, 1);
            let naive = Naive::new(&case.instructions, &case.template, case.seed);
            streams.push((program, state, naive));
        }
        let mut stage = Stage::default();
        for (pick, burst) in bursts {
            let (program, state, naive) = &mut streams[pick.index(cases.len())];
            let template = naive.template;
            for packet in run(&mut stage, (program, state), template, &[burst], burst) {
                prop_assert_eq!(packet, naive.packet());
            }
        }
    }

    #[test]
    fn a_disassembly_names_each_variable_and_offset(case in case()) {
        let Ok(program) = Program::compile(&case.instructions, &case.template) else {
            return Ok(());
        };
        let text = program.disassemble();
        for instruction in &case.instructions {
            let expected = match instruction {
                Instruction::Variable { name, width, .. } => format!("variable {name}: {width} "),
                Instruction::Write { variable, offset, add, .. } => {
                    let begins = format!("bytes {offset}..");
                    let names = format!(" = {variable}{}", if *add == 0 { "," } else { "" });
                    let found = text
                        .lines()
                        .any(|line| line.starts_with(&begins) && line.contains(&names));
                    prop_assert!(found, "no '{}' with '{}' in:\n{}", begins, names, text);
                    continue;
                }
                Instruction::FixChecksumIpv4 { offset } => {
                    format!("IPv4 checksum of bytes {offset}..")
                }
                Instruction::TrimPacketSize { variable } => format!("length = {variable}, "),
            };
            prop_assert!(text.contains(&expected), "'{}' is not in:\n{}", expected, text);
        }
    }
}

#[test]
fn variables_may_be_declared_between_writes() {
    let variable = |name: &str| {
        let range = Range {
            operation: Operation::Random,
            init: 0,
            min: 0,
            max: 999,
            step: 1,
        };
        declare(name, Width::Two, Values::Range(range))
    };
    let instructions = [
        variable("a"),
        write("a", 0, 1, false),
        variable("b"),
        write("b", 1, 1, true),
    ];
    let template = [0x11; 60];
    let program = Program::compile(&instructions, &template).expect("a valid program");
    let mut state = State::new(&program, 0, 0, 1);
    let mut stage = Stage::default();
    let made = run(&mut stage, (&program, &mut state), &template, &[7], 100);
    assert_eq!(made, Naive::new(&instructions, &template, 1).packets(100));
}

#[test]
fn a_long_list_is_drawn_from_its_whole_length() {
    let values = Values::List {
        values: (0..65_535).collect(),
        operation: Operation::Random,
        step: 1,
    };
    let instructions = [declare("a", Width::Two, values), write("a", 0, 0, true)];
    let template = [0; 60];
    let program = Program::compile(&instructions, &template).expect("a valid program");
    let mut state = State::new(&program, 5, 0, 1);
    let mut stage = Stage::default();
    let made = run(&mut stage, (&program, &mut state), &template, &[64], 500);
    assert!(made.iter().any(|packet| packet[0] >= 0x80));
    assert_eq!(made, Naive::new(&instructions, &template, 5).packets(500));
}

#[test]
fn programs_on_the_same_template_leave_nothing_behind() {
    let values = || Values::List {
        values: vec![0xaaaa, 0xbbbb],
        operation: Operation::Increment,
        step: 1,
    };
    let template = [0x11; 60];
    let programs = [20, 30].map(|offset| {
        let instructions = [
            declare("a", Width::Two, values()),
            write("a", offset, 0, true),
        ];
        Program::compile(&instructions, &template).expect("a valid program")
    });
    let mut stage = Stage::default();
    for (program, offset) in programs.iter().zip([20, 30]) {
        let mut state = State::new(program, 0, 0, 1);
        for packet in run(
            &mut stage,
            (program, &mut state),
            &template,
            &[BURST],
            BURST,
        ) {
            let changed: Vec<usize> = (0..60).filter(|&at| packet[at] != 0x11).collect();
            assert_eq!(changed, [offset, offset + 1]);
        }
    }
}

#[test]
fn a_disassembly_reads_like_the_program() {
    let mut template = [0; 60];
    template[14] = 0x45;
    let range = |operation, min, max, step| {
        let init = if operation == Operation::Decrement {
            max
        } else {
            min
        };
        Values::Range(Range {
            operation,
            init,
            min,
            max,
            step,
        })
    };
    let instructions = [
        declare("src", Width::Four, range(Operation::Increment, 10, 15, 4)),
        declare("port", Width::Two, range(Operation::Random, 1025, 2024, 1)),
        declare("size", Width::Two, range(Operation::Decrement, 60, 9000, 1)),
        write("src", 26, 0, true),
        Instruction::FixChecksumIpv4 { offset: 14 },
        write("port", 34, -1, false),
        Instruction::TrimPacketSize {
            variable: "size".to_owned(),
        },
    ];
    let program = Program::compile(&instructions, &template).expect("a valid program");
    let expected = "\
        variable src: u32 from 10 up by 4 in 10..=17\n\
        variable port: u16 random from 1025, one of 1000, 1 draws\n\
        variable size: u16 from 60 down by 1 in 60..=60\n\
        bytes 26..30 = src, big endian\n\
        bytes 24..26 = IPv4 checksum of bytes 14..34: 0x4500 + src\n\
        bytes 34..36 = port + 0xffff, little endian\n\
        length = size, at most 60 bytes\n";
    assert_eq!(program.disassemble(), expected);
}
