//! The field engine against a naive evaluator: random programs, on any number of cores, in any
//! bursts, make the packets that a packet-by-packet reading of the program gives.

mod cases;
mod naive;

use allosaur_engine::vm::{
    BURST, Checksums, FieldProgram, Flows, Instruction, Layer4, Operation, Range, Sequence, Stage,
    State, Values, Width,
};
use proptest::prelude::*;
use proptest::sample::Index;

use cases::{Case, case, cuts_a_stepped_range, declare, leaves_its_width, write, write_mask};
use naive::Naive;

/// Buffers that keep the template and are written again and again.
const KEPT: usize = 3;

/// What the runner makes: this core's packets, in bursts of the given sizes, again and again. Where
/// the template is in its place already, writing the beginning makes the same packets.
fn run(
    stage: &mut Stage,
    (program, state): (&FieldProgram, &mut State),
    template: &[u8],
    bursts: &[usize],
    n: usize,
) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut kept = [(); KEPT].map(|()| template.to_vec());
    for &burst in bursts.iter().cycle() {
        let burst = burst.min(n - packets.len());
        stage.run(program, state, template, burst);
        for i in 0..burst {
            let mut out = vec![0xa5; stage.length(i)];
            stage.write(i, template, &mut out);
            let kept = &mut kept[packets.len() % KEPT];
            stage.write_beginning(i, &mut kept[..out.len()]);
            assert_eq!(kept[..out.len()], out, "a beginning is all that is new");
            let end = template.len() - program.constant_end_bytes();
            assert_eq!(kept[end..], template[end..], "the end stays");
            packets.push(out);
        }
        if packets.len() == n {
            break;
        }
    }
    packets
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
        let program = match FieldProgram::compile(instructions, template) {
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
        let naive = Naive::new(instructions, template, *seed).on_cores(cores as u64);
        let expected = naive.packets(cores * per_core);
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
        let Ok(program) = FieldProgram::compile(&case.instructions, &case.template) else {
            return Ok(());
        };
        let (first, skipped) = (u64::from(first), u64::from(skipped));
        let mut walked = State::new(&program, case.seed, first, stride);
        walked.skip(skipped);
        let begun = State::new(&program, case.seed, first + stride * skipped, stride);
        prop_assert_eq!(walked, begun);
    }

    #[test]
    fn rewinding_takes_back_what_was_skipped(
        case in case(),
        first in any::<u32>(),
        stride in 1..64u64,
        skipped in any::<u32>(),
    ) {
        let Ok(program) = FieldProgram::compile(&case.instructions, &case.template) else {
            return Ok(());
        };
        let begun = State::new(&program, case.seed, u64::from(first), stride);
        let mut walked = begun.clone();
        walked.skip(u64::from(skipped));
        walked.rewind(u64::from(skipped));
        prop_assert_eq!(walked, begun);
    }

    #[test]
    fn streams_that_share_a_stage_do_not_mix(
        cases in prop::collection::vec(case(), 2..4),
        bursts in prop::collection::vec((any::<Index>(), 1..=BURST), 1..12),
    ) {
        let mut streams = Vec::new();
        for case in &cases {
            let Ok(program) = FieldProgram::compile(&case.instructions, &case.template) else {
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
        let Ok(program) = FieldProgram::compile(&case.instructions, &case.template) else {
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
                Instruction::Tuple { name, .. } => format!("variable {name}.port: u16 up "),
                Instruction::WriteMask { variable, offset, field, .. } => {
                    format!("of bytes {offset}..{} = {variable}", offset + field.bytes())
                }
                Instruction::FixChecksumIpv4 { offset } => {
                    format!("IPv4 checksum of bytes {offset}..")
                }
                Instruction::FixChecksums { layer4: Layer4::Any, l2_bytes, .. } => {
                    format!("IPv4 checksum of bytes {l2_bytes}..")
                }
                Instruction::FixChecksums { l2_bytes, l3_bytes, .. }
                | Instruction::FixChecksumIcmpv6 { l2_bytes, l3_bytes } => {
                    let l4 = l2_bytes + l3_bytes;
                    let begins = [format!(" of bytes {l4}.."), format!(" of all bytes from {l4}:")];
                    prop_assert!(begins.iter().any(|text_of| text.contains(text_of)), "{}", text);
                    continue;
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
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
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
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
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
        FieldProgram::compile(&instructions, &template).expect("a valid program")
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
fn bits_that_a_program_leaves_are_not_those_of_another() {
    let values = Values::List {
        values: vec![0xaa, 0xbb],
        operation: Operation::Increment,
        step: 1,
    };
    let template = [0x11; 60];
    let declared = || declare("a", Width::One, values.clone());
    let whole = [declared(), write("a", 20, 0, true)];
    let half = [declared(), write_mask("a", 20, Width::One, 0x0f, 0)];
    let mut stage = Stage::default();
    let mut make = |instructions: &[Instruction]| {
        let program = FieldProgram::compile(instructions, &template).expect("a valid program");
        let mut state = State::new(&program, 0, 0, 1);
        let packets = run(&mut stage, (&program, &mut state), &template, &[2], 2);
        packets.iter().map(|packet| packet[20]).collect::<Vec<u8>>()
    };
    assert_eq!(make(&whole), [0xaa, 0xbb]);
    assert_eq!(make(&half), [0x1a, 0x1b]);
    assert_eq!(make(&whole), [0xaa, 0xbb]);
}

#[test]
fn a_list_in_a_chain_may_pass_its_end_twice_at_once() {
    let list = |name: &str, values: Vec<u64>, step, next: Option<&str>| Instruction::Variable {
        name: name.to_owned(),
        width: Width::One,
        values: Values::List {
            values,
            operation: Operation::Increment,
            step,
        },
        next: next.map(str::to_owned),
        each_core: false,
    };
    let instructions = [
        list("a", vec![1, 2], 1, Some("b")),
        list("b", vec![1, 2, 3], 2, Some("c")),
        list("c", (0..50).collect(), 1, None),
        write("a", 20, 0, true),
        write("b", 21, 0, true),
        write("c", 22, 0, true),
    ];
    let template = [0; 60];
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
    let expected = Naive::new(&instructions, &template, 0).packets(300);
    let mut stage = Stage::default();
    for core in 0..3 {
        let mut state = State::new(&program, 0, core, 3);
        let made = run(&mut stage, (&program, &mut state), &template, &[64], 100);
        let share = expected.iter().skip(core as usize).step_by(3);
        assert!(made.iter().eq(share), "core {core}");
    }
}

#[test]
fn each_core_counts_alone_where_that_is_wanted() {
    let range = |init, max| {
        Values::Range(Range {
            operation: Operation::Increment,
            init,
            min: 1,
            max,
            step: 1,
        })
    };
    let sequence = Values::Sequence(Sequence {
        seed: 3,
        length: 4,
        min: 0,
        max: 255,
    });
    let variable = |name: &str, values, next: Option<&str>, each_core| Instruction::Variable {
        name: name.to_owned(),
        width: Width::One,
        values,
        next: next.map(str::to_owned),
        each_core,
    };
    let instructions = [
        variable("shared", range(5, 9), None, false),
        variable("alone", range(5, 9), None, true),
        variable("drawn", sequence, None, true),
        variable("digit", range(1, 2), Some("tens"), true),
        variable("tens", range(1, 9), None, false),
        write("shared", 20, 0, true),
        write("alone", 21, 0, true),
        write("drawn", 22, 0, true),
        write("digit", 23, 0, true),
        write("tens", 24, 0, true),
    ];
    let template = [0; 60];
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
    assert!(
        program
            .disassemble()
            .contains("variable alone: u8 from 5 up by 1 in 1..=9, on each core alone\n")
    );
    let mut stage = Stage::default();
    for cores in 1..=3 {
        let mut made = |core| {
            let mut state = State::new(&program, 0, core, cores);
            run(&mut stage, (&program, &mut state), &template, &[4], 8)
        };
        let one: Vec<Vec<u8>> = (0..cores).flat_map(&mut made).collect();
        let column = |at: usize| one.iter().map(|packet| packet[at]).collect::<Vec<u8>>();
        let alone = [5, 6, 7, 8, 9, 1, 2, 3].repeat(cores as usize);
        assert_eq!(column(21), alone, "{cores} cores");
        assert_eq!(column(23), [1, 2].repeat(4 * cores as usize));
        assert_eq!(column(24), [1, 1, 2, 2, 3, 3, 4, 4].repeat(cores as usize));
        let drawn = column(22);
        assert!(drawn.chunks(4).all(|chunk| chunk == &drawn[..4]));
        let shared: Vec<u8> = (0..cores)
            .flat_map(|core| (0..8).map(move |i| u8::try_from((4 + core + i * cores) % 9 + 1)))
            .map(|value| value.expect("a digit"))
            .collect();
        assert_eq!(column(20), shared);
    }
}

#[test]
fn inner_checksums_are_computed_before_outer_ones() {
    let mut template = vec![0x33; 100];
    for (l3, bytes) in [(14, 86_u8), (50, 50)] {
        template[l3..l3 + 4].copy_from_slice(&[0x45, 0, 0, bytes]);
        template[l3 + 9] = 17;
    }
    let fix = |l2_bytes| Instruction::FixChecksums {
        l2_bytes,
        l3_bytes: 20,
        layer4: Layer4::Udp,
    };
    let values = Values::List {
        values: vec![1, 2, 3],
        operation: Operation::Increment,
        step: 1,
    };
    let instructions = [
        declare("a", Width::Four, values),
        write("a", 62, 0, true),
        fix(14),
        fix(50),
    ];
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
    let mut state = State::new(&program, 0, 0, 1);
    let mut stage = Stage::default();
    let made = run(&mut stage, (&program, &mut state), &template, &[2], 6);
    assert_eq!(made, Naive::new(&instructions, &template, 0).packets(6));
}

/// A UDP packet over IPv4 with one variable of 2 bytes in its payload.
fn udp_template() -> [u8; 60] {
    let mut template = [0; 60];
    template[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    template[26..34].copy_from_slice(&[16, 0, 0, 1, 48, 0, 0, 1]);
    template[34..42].copy_from_slice(&[0x04, 0x01, 0, 53, 0, 26, 0, 0]);
    template
}

fn udp_packets(checksums: Checksums, values: Vec<u64>) -> Vec<Vec<u8>> {
    let n = values.len();
    let values = Values::List {
        values,
        operation: Operation::Increment,
        step: 1,
    };
    let fix = Instruction::FixChecksums {
        l2_bytes: 14,
        l3_bytes: 20,
        layer4: Layer4::Udp,
    };
    // It comes first and counts what is written after it.
    let instructions = [
        declare("a", Width::Two, values),
        fix,
        write("a", 42, 0, true),
    ];
    let template = udp_template();
    let program = FieldProgram::compile_for(checksums, &instructions, &template);
    let program = program.expect("a valid program");
    let mut state = State::new(&program, 0, 0, 1);
    let mut stage = Stage::default();
    run(&mut stage, (&program, &mut state), &template, &[64], n)
}

#[test]
fn a_udp_checksum_is_never_zero() {
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let [zero] = &udp_packets(Checksums::Complete, vec![0])[..] else {
        panic!("one packet");
    };
    // Adding its checksum to the payload makes the sum that stands for none.
    let checksum = word(zero, 40);
    let [ones] = &udp_packets(Checksums::Complete, vec![u64::from(checksum)])[..] else {
        panic!("one packet");
    };
    assert_ne!(checksum, 0);
    assert_eq!(word(ones, 40), 0xffff);
}

#[test]
fn every_value_has_its_checksum() {
    for packet in udp_packets(Checksums::Complete, (0..65_535).collect()) {
        let sum = |bytes: &[u8], more: u32| {
            let words = bytes.chunks_exact(2);
            let words = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
            let sum = words.sum::<u32>() + more;
            (sum & 0xffff) + (sum >> 16)
        };
        assert_eq!(sum(&packet[14..34], 0), 0xffff);
        assert_eq!(sum(&packet[26..60], 17 + 26), 0xffff);
    }
}

#[test]
fn a_port_that_computes_checksums_gets_the_pseudo_header() {
    for packet in udp_packets(Checksums::LeftToPort, vec![1, 2]) {
        assert_eq!(packet[24..26], [0, 0]);
        let sum = 0x1000 + 1 + 0x3000 + 1 + 17 + 26_u16;
        assert_eq!(packet[40..42], sum.to_be_bytes());
    }
}

#[test]
fn bits_are_computed_in_32_bits() {
    let values = |value| Values::List {
        values: vec![value],
        operation: Operation::Increment,
        step: 1,
    };
    let template = [0x11; 60];
    let make = |value, add, mask, shift| {
        let instructions = [
            declare("a", Width::Two, values(value)),
            Instruction::WriteMask {
                variable: "a".to_owned(),
                offset: 20,
                field: Width::Four,
                mask,
                shift,
                add,
                big_endian: true,
            },
        ];
        let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
        let mut state = State::new(&program, 0, 0, 1);
        let mut stage = Stage::default();
        let packets = run(&mut stage, (&program, &mut state), &template, &[1], 1);
        u32::from_be_bytes([20, 21, 22, 23].map(|at| packets[0][at]))
    };
    assert_eq!(make(0xffff, 1, 0xffff_ffff, 0), 0x0001_0000);
    assert_eq!(make(0xffff, 1, 0xffff_ffff, -4), 0x1000);
    assert_eq!(make(0x0001, -2, 0xffff_ffff, 0), 0xffff_ffff);
    assert_eq!(make(0x00ab, 0, 0x0ff0_0000, 20), 0x1ab1_1111);
}

/// TRex reads the upper half in network order, and users of it count on that for MAC addresses.
#[test]
fn of_a_variable_of_8_bytes_the_byte_order_says_which_half_is_written() {
    let values = Values::List {
        values: vec![0x1122_3344_5566_7788],
        operation: Operation::Increment,
        step: 1,
    };
    let template = [0; 60];
    let make = |big_endian, add| {
        let instructions = [
            declare("mac", Width::Eight, values.clone()),
            Instruction::WriteMask {
                variable: "mac".to_owned(),
                offset: 20,
                field: Width::Four,
                mask: u32::MAX,
                shift: 0,
                add,
                big_endian,
            },
        ];
        let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
        let mut state = State::new(&program, 0, 0, 1);
        let mut stage = Stage::default();
        let packets = run(&mut stage, (&program, &mut state), &template, &[1], 1);
        let field = packets[0][20..24].to_vec();
        (field, program.disassemble())
    };
    let (field, text) = make(true, 1);
    assert_eq!(field, [0x11, 0x22, 0x33, 0x45]);
    assert!(text.contains("= mac (upper 4 bytes) + 0x1"), "{text}");
    let (field, text) = make(false, 0);
    assert_eq!(field, [0x88, 0x77, 0x66, 0x55]);
    assert!(text.contains("= mac (lower 4 bytes),"), "{text}");
}

#[test]
fn a_disassembly_reads_like_the_program() {
    let mut template = [0; 60];
    template[14] = 0x45;
    template[23] = 6;
    let instructions = one_of_each();
    let program = FieldProgram::compile(&instructions, &template).expect("a valid program");
    let expected = "\
        variable src: u32 from 10 up by 4 in 10..=17\n\
        variable seq: u8 random from 5, one of 5, 1 draws from seed 7, repeated after 20, when \
        src passes its end\n\
        variable port: u16 random from 1025, one of 1000, 1 draws\n\
        variable size: u16 from 60 down by 1 in 60..=60\n\
        variable flow.ip: u32 up by 1 in 1..=10 after every 1, of 99 flows\n\
        variable flow.port: u16 up by 1 in 1025..=65535 after every 10, of 99 flows\n\
        bytes 26..30 = src, big endian\n\
        bytes 24..26 = IPv4 checksum of bytes 14..34: 0x4506 + src\n\
        bytes 34..36 = port + 0xffff, little endian\n\
        bits 0ff0 of bytes 36..38 = port, 4 bits to the right, big endian\n\
        bytes 38..40 = flow.port, big endian\n\
        bytes 24..26 = IPv4 checksum of bytes 14..34: 0x4506 + src\n\
        bytes 50..52 = TCP checksum of all bytes from 34: 0x0006\n\
        length = size, at most 60 bytes\n";
    assert_eq!(program.disassemble(), expected);
}

fn one_of_each() -> Vec<Instruction> {
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
    vec![
        Instruction::Variable {
            name: "src".to_owned(),
            width: Width::Four,
            values: range(Operation::Increment, 10, 15, 4),
            next: Some("seq".to_owned()),
            each_core: false,
        },
        declare(
            "seq",
            Width::One,
            Values::Sequence(Sequence {
                seed: 7,
                length: 20,
                min: 5,
                max: 9,
            }),
        ),
        declare("port", Width::Two, range(Operation::Random, 1025, 2024, 1)),
        declare("size", Width::Two, range(Operation::Decrement, 60, 9000, 1)),
        Instruction::Tuple {
            name: "flow".to_owned(),
            flows: Flows {
                ip_min: 1,
                ip_max: 10,
                port_min: 1025,
                port_max: 65_535,
                limit: 99,
            },
        },
        write("src", 26, 0, true),
        Instruction::FixChecksumIpv4 { offset: 14 },
        write("port", 34, -1, false),
        write_mask("port", 36, Width::Two, 0x0ff0, -4),
        write("flow.port", 38, 0, true),
        Instruction::FixChecksums {
            l2_bytes: 14,
            l3_bytes: 20,
            layer4: Layer4::Tcp,
        },
        Instruction::TrimPacketSize {
            variable: "size".to_owned(),
        },
    ]
}
