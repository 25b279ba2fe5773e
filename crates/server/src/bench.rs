//! The benchmark of one data core, on in-memory ports or others: the worker's own loop, as fast as
//! it goes.
//!
//! What lives here: the cases and the measurement, as JSON. What does not: comparing runs and
//! machines (`bench/run.py`).

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allosaur_engine::Command;
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::stream::{
    CompileError, CoreShare, DestinationMac, Mode, PortFacts, Profile, ProfileKey, Rate, StreamId,
    StreamSpec,
};
use allosaur_engine::time::SECOND;
use allosaur_engine::transmit::PortIndex;
use allosaur_engine::vm::{Checksums, Instruction, Operation, Range, Values, Width};
use allosaur_packet::checksum;
use allosaur_port::description::PortDescription;
use allosaur_port::kind;
use allosaur_port::memory::{self, LinkSettings, NOMINAL_RATE_BPS};
use allosaur_port::{PortError, QueueCounts};
use serde::Serialize;
use thiserror::Error;

use crate::clock::Clock;
use crate::counters::{Counters, Snapshot};
use crate::mailbox::{Doorbell, mailbox};
use crate::polling::Poll;
use crate::receive::Receiver;
use crate::worker::Worker;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// One stream of one 64-byte frame (FCS included, here and below).
    Constant,
    /// 64-byte frames with one counting variable and the IPv4 checksum.
    Variable,
    /// 64-byte TCP SYNs with a random source address and port, and the IPv4 checksum.
    Random,
    /// Frames of 64, 594 and 1518 bytes, 7 to 4 to 1, with two variables and the checksum.
    Imix,
    /// 1,000 constant streams of 64-byte frames.
    Streams1000,
    /// One stream of one 1518-byte frame.
    Large,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measured {
    /// Frames sent in the measured time.
    pub packets: u64,
    /// The measured time, in seconds.
    pub seconds: f64,
    /// Frames per second.
    pub rate_pps: f64,
    /// Bits per second at layer 2, with FCS.
    pub rate_bps: f64,
    /// Ticks of the time stamp counter per frame.
    pub cycles_per_packet: f64,
    /// Frames that the other port received meanwhile, when there is one.
    pub received_packets: u64,
    /// Times that the link was full.
    pub queue_full: u64,
}

/// Runs one case for `seconds` on this thread. With `receive`, the frames cross a link to a
/// second port that a second thread reads; without, they go to a sink.
pub fn run(case: Case, receive: bool, seconds: f64) -> Result<Measured, CompileError> {
    let clock = Clock::start();
    let settings = LinkSettings::default();
    let mut ports = match receive {
        true => memory::ports(&[settings, settings], 1),
        false => memory::ports(&[settings], 1),
    };
    let counters = Counters::new(ports.len(), 1);
    let doorbell = Doorbell::new().expect("the machine has a file descriptor left");
    let (mut control, mail) = mailbox(&doorbell);
    let queues = ports.iter_mut().map(|port| port.tx.remove(0));
    let worker = Worker::new(queues, mail, counters.cores[0].clone(), clock.clone());
    control.send(start(case, 0, clock.now_ns())?);
    let stop = AtomicBool::new(false);
    let receivers = ports.into_iter().map(|port| port.rx);
    let receiver = Receiver::new(receivers, counters.receive.clone(), clock.clone());
    let measured = thread::scope(|scope| {
        let stop = &stop;
        if receive {
            let bell = Doorbell::new().expect("the machine has a file descriptor left");
            scope.spawn(move || receiver.run(Poll::Busy, stop, &bell));
        }
        let measured = measure(worker, &counters, &clock, seconds);
        stop.store(true, Ordering::Relaxed);
        measured
    });
    Ok(measured)
}

/// Why there was nothing to measure.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A case that cannot be compiled.
    #[error(transparent)]
    Case(#[from] CompileError),
    /// A port that cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs one case for `seconds` on this thread, on all of these ports at once. Nobody receives.
pub fn run_on(ports: &[PortDescription], case: Case, seconds: f64) -> Result<Measured, BenchError> {
    let clock = Clock::start();
    let mut ports = kind::open(ports, QueueCounts::ONE)?;
    let counters = Counters::new(ports.len(), 1);
    let doorbell = Doorbell::new().expect("the machine has a file descriptor left");
    let (mut control, mail) = mailbox(&doorbell);
    let queues = ports.iter_mut().map(|port| port.tx.remove(0));
    let worker = Worker::new(queues, mail, counters.cores[0].clone(), clock.clone());
    for number in 0..ports.len() {
        control.send(start(case, number as u8, clock.now_ns())?);
    }
    Ok(measure(worker, &counters, &clock, seconds))
}

fn measure(mut worker: Worker, counters: &Counters, clock: &Clock, seconds: f64) -> Measured {
    let mut turn_until = |until| {
        while clock.now_ns() < until {
            for _ in 0..64 {
                worker.turn();
            }
        }
        worker.publish();
        let mut snapshot = Snapshot::default();
        counters.read(&mut snapshot);
        snapshot
    };
    // The first tenth of a second warms caches and branch predictors.
    let before = turn_until(clock.now_ns() + SECOND / 10);
    let ticks = quanta::Clock::new();
    let (from_ticks, from_ns) = (ticks.raw(), clock.now_ns());
    let after = turn_until(from_ns + (seconds * SECOND as f64) as u64);
    let ticks = (ticks.raw() - from_ticks) as f64;
    let seconds = (clock.now_ns() - from_ns) as f64 / SECOND as f64;
    let (first, last) = (sent(&before), sent(&after));
    let packets = last.sent.packets - first.sent.packets;
    let bytes = last.sent.bytes - first.sent.bytes;
    let received = |snapshot: &Snapshot| snapshot.ports.last().map_or(0, |p| p.receive.packets);
    Measured {
        packets,
        seconds,
        rate_pps: packets as f64 / seconds,
        rate_bps: bytes as f64 * 8.0 / seconds,
        cycles_per_packet: ticks / packets as f64,
        received_packets: received(&after) - received(&before),
        queue_full: last.queue_full - first.queue_full,
    }
}

/// What all ports sent.
fn sent(snapshot: &Snapshot) -> TransmitCounters {
    let mut sum = TransmitCounters::default();
    for port in &snapshot.ports {
        sum.sent.packets += port.transmit.sent.packets;
        sum.sent.bytes += port.transmit.sent.bytes;
        sum.queue_full += port.transmit.queue_full;
    }
    sum
}

/// Asks for more than any core can do.
fn start(case: Case, port: PortIndex, now: u64) -> Result<Command, CompileError> {
    let facts = PortFacts {
        line_rate_bps: NOMINAL_RATE_BPS,
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        checksums: Checksums::Complete,
        data_cores: 1,
        marking: None,
        vxlan: VxlanPorts::STANDARD,
    };
    let profile = Profile::compile(&streams(case), &facts)?;
    let factor = 1e11 / profile.rates().pps_max;
    Ok(Command::StartProfile {
        port,
        profile: ProfileKey(0),
        program: Box::new(profile.core_program(factor, CoreShare::ONLY)),
        start_at: now,
        duration: None,
    })
}

fn streams(case: Case) -> Vec<StreamSpec> {
    match case {
        Case::Constant => vec![stream(1, 60, 1.0, vec![])],
        Case::Variable => vec![stream(1, 60, 1.0, one_variable())],
        Case::Random => vec![stream(1, 60, 1.0, two_random())],
        Case::Imix => vec![
            stream(1, 60, 7.0, two_variables()),
            stream(2, 590, 4.0, two_variables()),
            stream(3, 1514, 1.0, two_variables()),
        ],
        Case::Streams1000 => (1..=1000).map(|id| stream(id, 60, 1.0, vec![])).collect(),
        Case::Large => vec![stream(1, 1514, 1.0, vec![])],
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
