//! What the benchmark sends.

use std::net::Ipv4Addr;

use allosaur_engine::flow_stats::{Group, Rule};
use allosaur_engine::stream::{DestinationMac, Mode, Rate, StreamId, StreamSpec};
use allosaur_engine::vm::{Flows, Instruction, Operation, Range, Values, Width};
use allosaur_packet::network::checksum;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// One stream of one 64-byte frame (FCS included, here and below).
    Constant,
    /// 64-byte frames with one counting variable and the IPv4 checksum.
    Variable,
    /// 64-byte frames of a tuple generator's flows, with the IPv4 checksum.
    Tuple,
    /// 64-byte TCP SYNs with a random source address and port, and the IPv4 checksum.
    Random,
    /// Frames of 64, 594 and 1518 bytes, 7 to 4 to 1, with two variables and the checksum.
    Imix,
    /// 1,000 constant streams of 64-byte frames.
    Streams1000,
    /// As `constant`, counted in a packet group.
    Statistics,
    /// As `variable`, counted in a packet group.
    StatisticsVariable,
    /// One stream of one 1518-byte frame.
    Large,
}

impl Case {
    /// Its streams; how fast they are is only their share of the whole.
    pub(super) fn streams(self) -> Vec<StreamSpec> {
        match self {
            Case::Constant => vec![stream(1, 60, 1.0, vec![])],
            Case::Variable => vec![stream(1, 60, 1.0, one_variable())],
            Case::Tuple => vec![stream(1, 60, 1.0, tuple())],
            Case::Random => vec![stream(1, 60, 1.0, two_random())],
            Case::Imix => vec![
                stream(1, 60, 7.0, two_variables()),
                stream(2, 590, 4.0, two_variables()),
                stream(3, 1514, 1.0, two_variables()),
            ],
            Case::Streams1000 => (1..=1000).map(|id| stream(id, 60, 1.0, vec![])).collect(),
            Case::Statistics => vec![counted(stream(1, 60, 1.0, vec![]))],
            Case::StatisticsVariable => vec![counted(stream(1, 60, 1.0, one_variable()))],
            Case::Large => vec![stream(1, 1514, 1.0, vec![])],
        }
    }
}

/// The same stream, its packets counted by themselves.
fn counted(stream: StreamSpec) -> StreamSpec {
    let group = Group::flow(0).expect("there are more groups than one");
    StreamSpec {
        rule: Some(Rule {
            group,
            vxlan: false,
            run: 0,
        }),
        ..stream
    }
}

fn stream(
    id: StreamId,
    frame_bytes: usize,
    rate_pps: f64,
    program: Vec<Instruction>,
) -> StreamSpec {
    StreamSpec {
        id,
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode: Mode::Continuous,
        rate: Rate::PacketsPerSecond(rate_pps),
        packet: tcp_frame(frame_bytes),
        keep_source_mac: false,
        destination_mac: DestinationMac::Port,
        dummy: false,
        start_paused: false,
        random_seed: 1,
        core: None,
        rule: None,
        program,
    }
}

const IPV4_OFFSET: usize = 14;
const SOURCE_ADDRESS_OFFSET: usize = 26;
const SOURCE_PORT_OFFSET: usize = 34;

fn tcp_frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let total_length = (bytes - IPV4_OFFSET) as u16;
    frame[14..16].copy_from_slice(&[0x45, 0]);
    frame[16..18].copy_from_slice(&total_length.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..30].copy_from_slice(&Ipv4Addr::new(16, 0, 0, 1).octets());
    frame[30..34].copy_from_slice(&Ipv4Addr::new(48, 0, 0, 1).octets());
    let sum = checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    // Ports 1025 to 80; a SYN of 20 bytes.
    frame[34..38].copy_from_slice(&[4, 1, 0, 80]);
    frame[46..48].copy_from_slice(&[0x50, 0x02]);
    frame
}

fn one_variable() -> Vec<Instruction> {
    vec![
        counting_address(),
        write("src", SOURCE_ADDRESS_OFFSET),
        fix(),
    ]
}

fn tuple() -> Vec<Instruction> {
    let flows = Flows {
        ip_min: 0x1000_0001,
        ip_max: 0x1000_00fe,
        port_min: 1025,
        port_max: 65_000,
        limit: 0,
    };
    let name = "flow".to_owned();
    vec![
        Instruction::Tuple { name, flows },
        write("flow.ip", SOURCE_ADDRESS_OFFSET),
        write("flow.port", SOURCE_PORT_OFFSET),
        fix(),
    ]
}

fn two_variables() -> Vec<Instruction> {
    let port = variable("port", Width::Two, Operation::Increment, 1025, 65_000);
    let writes = [
        write("src", SOURCE_ADDRESS_OFFSET),
        write("port", SOURCE_PORT_OFFSET),
        fix(),
    ];
    [counting_address(), port]
        .into_iter()
        .chain(writes)
        .collect()
}

fn counting_address() -> Instruction {
    variable(
        "src",
        Width::Four,
        Operation::Increment,
        0x1000_0001,
        0x1000_00fe,
    )
}

fn two_random() -> Vec<Instruction> {
    let address = variable(
        "src",
        Width::Four,
        Operation::Random,
        0x1000_0000,
        0xd000_00fe,
    );
    let port = variable("port", Width::Two, Operation::Random, 1025, 65_000);
    let writes = [
        write("src", SOURCE_ADDRESS_OFFSET),
        fix(),
        write("port", SOURCE_PORT_OFFSET),
    ];
    [address, port].into_iter().chain(writes).collect()
}

fn variable(name: &str, width: Width, operation: Operation, min: u64, max: u64) -> Instruction {
    let values = Values::Range(Range {
        operation,
        init: min,
        min,
        max,
        step: 1,
    });
    Instruction::Variable {
        name: name.to_owned(),
        width,
        values,
        next: None,
        each_core: false,
    }
}

fn write(variable: &str, offset: usize) -> Instruction {
    Instruction::Write {
        variable: variable.to_owned(),
        offset,
        add: 0,
        big_endian: true,
    }
}

fn fix() -> Instruction {
    Instruction::FixChecksumIpv4 {
        offset: IPV4_OFFSET,
    }
}
