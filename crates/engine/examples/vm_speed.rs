//! How fast the field engine makes packets: nanoseconds a packet, the copy to a slot included.
//!
//! Run it with `cargo run --release -p allosaur-engine --example vm_speed`. Each case prints the
//! best of several runs, so that other work on the machine counts little. An argument limits
//! the burst sizes to that one: `-- 16`.

use std::hint::black_box;
use std::time::Instant;

use allosaur_engine::vm::{
    BURST, FieldProgram, Flows, Instruction, Layer4, Operation, Range, Sequence, Stage, State,
    Values, Width,
};

/// Packets of one run.
const PACKETS: usize = 1 << 20;
/// Runs of each case.
const RUNS: usize = 20;
/// Bytes of the ring that slots are taken from.
const RING_BYTES: usize = 256 * 1024;

#[derive(Clone)]
struct Case {
    name: &'static str,
    streams: Vec<(Vec<Instruction>, usize)>,
}

fn main() {
    let cases = [counters_and_random(), flows_and_chains()].concat();
    let wanted: Option<usize> = std::env::args().nth(1).and_then(|size| size.parse().ok());
    let bursts = wanted.map_or(vec![BURST, 16, 4, 1], |size| vec![size.clamp(1, BURST)]);
    for case in &cases {
        for &burst in &bursts {
            let best_ns = (0..RUNS).map(|_| run(case, burst)).fold(f64::MAX, f64::min);
            let mpps = 1000.0 / best_ns;
            println!(
                "{:40} bursts of {burst:2}: {best_ns:6.2} ns, {mpps:6.1} Mpps",
                case.name
            );
        }
    }
}

fn single(name: &'static str, program: Vec<Instruction>) -> Case {
    Case {
        name,
        streams: vec![(program, 60)],
    }
}

fn one(address: Instruction) -> Vec<Instruction> {
    vec![address, write("address", 26), checksum()]
}

fn checksum() -> Instruction {
    Instruction::FixChecksumIpv4 { offset: 14 }
}

fn counters_and_random() -> Vec<Case> {
    let address = |operation| variable("address", Width::Four, operation, 0x1000_0001, 0x10ff_fffe);
    let few = |operation| variable("address", Width::Four, operation, 0x1000_0001, 0x1000_000a);
    let port = variable("port", Width::Two, Operation::Random, 1025, 65_000);
    let destination = variable(
        "to",
        Width::Four,
        Operation::Increment,
        0x3000_0001,
        0x3000_00fe,
    );
    let flood = vec![
        address(Operation::Random),
        port,
        write("address", 26),
        checksum(),
        write("port", 34),
    ];
    let mix = vec![
        address(Operation::Increment),
        destination,
        write("address", 26),
        write("to", 30),
        checksum(),
    ];
    vec![
        single("constant", vec![]),
        single("one variable, checksum", one(address(Operation::Increment))),
        single(
            "one variable of 10 values, checksum",
            one(few(Operation::Increment)),
        ),
        single(
            "one random variable, checksum",
            one(address(Operation::Random)),
        ),
        single("two random variables, checksum", flood),
        single("two variables, checksum", mix.clone()),
        Case {
            name: "IMIX 7:4:1, two variables, checksum",
            streams: [vec![60; 7], vec![590; 4], vec![1514; 1]]
                .concat()
                .into_iter()
                .map(|bytes| (mix.clone(), bytes))
                .collect(),
        },
    ]
}

fn flows_and_chains() -> Vec<Case> {
    let min = 0x1000_0001;
    let address = variable(
        "address",
        Width::Four,
        Operation::Increment,
        min,
        0x10ff_fffe,
    );
    vec![
        single(
            "one variable, checksums of IPv4 and UDP",
            vec![
                address.clone(),
                write("address", 26),
                Instruction::FixChecksums {
                    l2_bytes: 14,
                    l3_bytes: 20,
                    layer4: Layer4::Udp,
                },
            ],
        ),
        single("tuple, checksum", tuple(0x10ff_fffe)),
        single("tuple of 10 addresses, checksum", tuple(0x1000_000a)),
        single(
            "chain of two variables, checksum",
            vec![
                chained("a", 0x1000_0001, Some("b")),
                chained("b", 0x3000_0001, None),
                write("a", 26),
                write("b", 30),
                checksum(),
            ],
        ),
        single("repeated random, checksum", one(repeated(10_000))),
        single("repeated random of 16, checksum", one(repeated(16))),
        single(
            "12 bits of a variable",
            vec![
                address,
                Instruction::WriteMask {
                    variable: "address".to_owned(),
                    offset: 14,
                    field: Width::Two,
                    mask: 0xfff,
                    shift: 0,
                    add: 0,
                    big_endian: true,
                },
            ],
        ),
    ]
}

fn run(case: &Case, burst: usize) -> f64 {
    let mut streams: Vec<(FieldProgram, State, Vec<u8>)> = case
        .streams
        .iter()
        .map(|(instructions, bytes)| {
            let template = template(*bytes);
            let program = FieldProgram::compile(instructions, &template).expect("a valid program");
            let state = State::new(&program, 1, 0, 1);
            (program, state, template)
        })
        .collect();
    let mut stage = Stage::default();
    let mut ring = vec![0u8; RING_BYTES];
    let mut made = 0;
    let mut at = 0;
    let begin = Instant::now();
    while made < PACKETS {
        for (program, state, template) in &mut streams {
            stage.run(program, state, template, burst);
            for i in 0..burst {
                let length = stage.length(i);
                at = if at + length > ring.len() { 0 } else { at };
                stage.write(i, template, &mut ring[at..at + length]);
                at += length.next_multiple_of(64);
            }
            made += burst;
        }
    }
    let ns = begin.elapsed().as_nanos() as f64;
    black_box(&ring);
    ns / made as f64
}

fn template(bytes: usize) -> Vec<u8> {
    let mut template: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
    template[14] = 0x45;
    template[23] = 17;
    template
}

fn variable(name: &str, width: Width, operation: Operation, min: u64, max: u64) -> Instruction {
    let range = Range {
        operation,
        init: min,
        min,
        max,
        step: 1,
    };
    Instruction::Variable {
        name: name.to_owned(),
        width,
        values: Values::Range(range),
        next: None,
        each_core: false,
    }
}

fn tuple(ip_max: u32) -> Vec<Instruction> {
    let flows = Flows {
        ip_min: 0x1000_0001,
        ip_max,
        port_min: 1025,
        port_max: 65_535,
        limit: 100_000,
    };
    let name = "flow".to_owned();
    vec![
        Instruction::Tuple { name, flows },
        write("flow.ip", 26),
        Instruction::FixChecksumIpv4 { offset: 14 },
        write("flow.port", 34),
    ]
}

fn chained(name: &str, min: u64, next: Option<&str>) -> Instruction {
    let range = Range {
        operation: Operation::Increment,
        init: min,
        min,
        max: min + 9,
        step: 1,
    };
    Instruction::Variable {
        name: name.to_owned(),
        width: Width::Four,
        values: Values::Range(range),
        next: next.map(str::to_owned),
        each_core: false,
    }
}

fn repeated(length: u64) -> Instruction {
    let sequence = Sequence {
        seed: 1,
        length,
        min: 0x1000_0001,
        max: 0x10ff_fffe,
    };
    Instruction::Variable {
        name: "address".to_owned(),
        width: Width::Four,
        values: Values::Sequence(sequence),
        next: None,
        each_core: false,
    }
}

fn write(name: &str, offset: usize) -> Instruction {
    Instruction::Write {
        variable: name.to_owned(),
        offset,
        add: 0,
        big_endian: true,
    }
}
