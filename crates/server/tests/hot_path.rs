//! The data thread's loop and the receive thread's allocate nothing while traffic runs.
//!
//! Alone in its file: the count is of the whole process.

use std::alloc::System;

use allosaur_engine::StatelessCommand;
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::stream::recording::{Pace, one_way};
use allosaur_engine::stream::replay::Macs;
use allosaur_engine::stream::{
    CoreShare, DestinationMac, Mode, Profile, ProfileKey, Rate, Replay, StreamId, StreamPortInfo,
    StreamSpec,
};
use allosaur_engine::vm::{Checksums, Instruction, Operation, Range, Values, Width};
use allosaur_packet::file::Resolution;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_port::memory::{self, LinkSettings};
use allosaur_server::counters::Counters;
use allosaur_server::threads::clock::Clock;
use allosaur_server::threads::data::DataThread;
use allosaur_server::threads::mailbox::mailbox;
use allosaur_server::threads::receive::Receiver;
use allosaur_server::threads::waker::{Notify, Waker};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn stream(id: StreamId, mode: Mode, rate_pps: f64, program: Vec<Instruction>) -> StreamSpec {
    StreamSpec {
        id,
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode,
        rate: Rate::PacketsPerSecond(rate_pps),
        packet: vec![0; 60 + 100 * id as usize],
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

fn random() -> Vec<Instruction> {
    let name = "n".to_owned();
    let values = Values::Range(Range {
        operation: Operation::Random,
        init: 0,
        min: 0,
        max: 999,
        step: 1,
    });
    vec![
        Instruction::Variable {
            name: name.clone(),
            width: Width::Four,
            values,
            next: None,
            each_core: false,
        },
        Instruction::Write {
            variable: name,
            offset: 30,
            add: 0,
            big_endian: true,
        },
    ]
}

/// One stream of every kind, at rates from slow to more than the core can do.
fn streams() -> Vec<StreamSpec> {
    let bursts = Mode::MultiBurst {
        packets_per_burst: 3,
        gap: 50_000,
        bursts: u64::MAX / 8,
    };
    let again = StreamSpec {
        next: Some(6),
        start_delay: 10_000,
        ..stream(5, Mode::SingleBurst { packets: 2 }, 1e6, vec![])
    };
    let back = StreamSpec {
        next: Some(5),
        self_start: false,
        ..stream(6, Mode::SingleBurst { packets: 2 }, 1e6, random())
    };
    vec![
        stream(1, Mode::Continuous, 1e9, vec![]),
        stream(2, Mode::Continuous, 1e6, random()),
        stream(3, Mode::Continuous, 1e3, vec![]),
        stream(4, bursts, 1e5, vec![]),
        again,
        back,
    ]
}

/// Three packets without end, a million a second.
fn capture() -> Replay {
    let mut writer = PcapWriter::new(Resolution::Nanoseconds);
    for at in 0..3 {
        writer.write_frame(at, &[2; 100]).expect("a small time");
    }
    let pace = Pace {
        gap_ns: Some(1e3),
        gap_min_ns: 0.0,
        speedup: 1.0,
        rounds: None,
    };
    one_way(writer.bytes(), &pace, Macs::default()).expect("the capture is right")
}

#[test]
fn threads_that_send_and_receive_allocate_nothing() {
    let clock = Clock::start();
    let (a, b) = memory::pair(1, 1, &LinkSettings::default());
    let mut ports = [a, b];
    let counters = Counters::new(2, 1);
    let waker = Waker::new().expect("an eventfd");
    let (mut control, mail) = mailbox(&Notify::new().expect("an eventfd"), &waker);
    let tx_queues = ports.iter_mut().map(|port| Some(port.tx.remove(0).into()));
    let block = counters.cores[0].clone();
    let mut thread = DataThread::new(tx_queues.collect(), mail, block, clock.clone());
    let receivers = ports.into_iter().map(|port| Some(port.rx.into()));
    let mut receiver = Receiver::new(receivers, counters.receive.clone(), clock.clone());
    let facts = StreamPortInfo {
        line_rate_bps: 100e9,
        source_mac: [2; 6],
        destination_mac: [4; 6],
        checksums: Checksums::Complete,
        data_cores: 1,
        marking: None,
        vxlan: VxlanPorts::STANDARD,
        tunnel: None,
    };
    let profile = Profile::compile(&streams(), &facts).expect("the streams are right");
    control.send(StatelessCommand::StartProfile {
        port: 0,
        profile: ProfileKey(1),
        program: Box::new(profile.core_program(1.0, CoreShare::ONLY)),
        start_at: clock.now_ns(),
        duration: None,
    });
    control.send(StatelessCommand::StartProfile {
        port: 1,
        profile: ProfileKey(2),
        program: Box::new(capture().into()),
        start_at: clock.now_ns(),
        duration: None,
    });
    let mut turns =
        |n: u32| -> u64 { (0..n).map(|_| thread.turn() + receiver.turn() as u64).sum() };
    let warming_up = Region::new(ALLOCATOR);
    turns(2_000);
    assert_ne!(
        warming_up.change().allocations,
        0,
        "allocations are not counted"
    );
    let region = Region::new(ALLOCATOR);
    let moved = turns(20_000);
    let change = region.change();
    assert!(moved > 20_000, "only {moved} packets moved");
    assert_eq!(
        (change.allocations, change.reallocations),
        (0, 0),
        "{change:?}"
    );
}
