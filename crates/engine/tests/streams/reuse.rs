//! Queues that keep the frames of field engine programs: what they send is what others send.

use allosaur_engine::flow_stats::{Group, Rule};
use allosaur_engine::stream::{CoreShare, StreamId, StreamSpec};
use allosaur_engine::time::MILLISECOND;
use allosaur_engine::vm::{Instruction, Layer4, Operation, Range, Values, Width};
use allosaur_testkit::recording::Sent;
use proptest::prelude::*;

use super::bench::{Bench, stream};

/// A stream with a random field, by its length and what else changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) bytes: usize,
    /// Where the field is.
    pub(crate) offset: usize,
    pub(crate) trims: bool,
    pub(crate) is_measured: bool,
    /// The checksums of IPv4 and UDP are made right.
    pub(crate) is_fixed: bool,
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    let sizes = (60..1514usize, 14..480usize);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    (sizes, switches).prop_map(|((bytes, offset), (trims, is_measured, is_fixed))| Kind {
        bytes,
        // Not over what says where the headers are.
        offset: if is_fixed { offset.max(42) } else { offset }.min(bytes - 4),
        trims,
        is_measured,
        is_fixed,
    })
}

pub(crate) fn variable(
    name: &str,
    width: Width,
    operation: Operation,
    min: u64,
    max: u64,
) -> Instruction {
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

pub(crate) fn spec(id: StreamId, kind: Kind) -> StreamSpec {
    let mut packet: Vec<u8> = (0..kind.bytes).map(|at| at as u8).collect();
    // IPv4 and UDP, so that latency can be measured.
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..16].copy_from_slice(&[0x45, 0]);
    packet[16..18].copy_from_slice(&(kind.bytes as u16 - 14).to_be_bytes());
    packet[20..24].copy_from_slice(&[0, 0, 64, 17]);
    packet[38..40].copy_from_slice(&(kind.bytes as u16 - 34).to_be_bytes());
    let mut program = vec![
        variable(
            "any",
            Width::Four,
            Operation::Random,
            0,
            u64::from(u32::MAX),
        ),
        Instruction::Write {
            variable: "any".to_owned(),
            offset: kind.offset,
            add: 0,
            big_endian: true,
        },
    ];
    if kind.trims {
        let max = kind.bytes as u64;
        let length = variable("length", Width::Two, Operation::Random, 60, max);
        program.insert(0, length);
        let variable = "length".to_owned();
        program.push(Instruction::TrimPacketSize { variable });
    }
    if kind.is_fixed {
        program.push(Instruction::FixChecksums {
            l2_bytes: 14,
            l3_bytes: 20,
            layer4: Layer4::Udp,
        });
    }
    let group = Group::latency(id as u16).expect("few streams");
    let rule = Rule {
        group,
        vxlan: false,
        run: 1,
    };
    StreamSpec {
        packet,
        program,
        keep_source_mac: true,
        rule: kind.is_measured.then_some(rule),
        random_seed: id,
        ..stream(id)
    }
}

/// What is sent when the queue keeps so many frames and is often full.
fn sent(
    kinds: &[Kind],
    registered_max: usize,
    computes_checksums: bool,
    room: usize,
) -> Option<Vec<Sent>> {
    let streams = kinds.iter().enumerate();
    let streams: Vec<StreamSpec> = streams.map(|(n, kind)| spec(n as u32, *kind)).collect();
    let mut bench = Bench::new();
    bench.tx_queues.limit_registered(0, registered_max);
    if computes_checksums {
        bench.tx_queues.compute_checksums(0);
    }
    bench.start(&streams, CoreShare::ONLY, None).ok()?;
    let mut sent = Vec::new();
    for turn in 0..40 {
        bench.tx_queues.limit(0, room);
        let now = turn * 7 * MILLISECOND;
        bench.engine.poll_transmit(now, &mut bench.tx_queues);
        sent.extend(bench.tx_queues.take());
    }
    Some(sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn kept_frames_are_sent_as_written_ones(
        kinds in prop::collection::vec(kind(), 1..5),
        registered_max in 1..5usize,
        computes_checksums in any::<bool>(),
        room in 1..100usize,
    ) {
        let written = sent(&kinds, 0, false, room);
        prop_assert!(written.is_some(), "the streams are right");
        prop_assert!(sent(&kinds, registered_max, computes_checksums, room) == written);
    }
}

#[test]
fn queues_keep_the_frames_whose_end_stays() {
    let kept = |kind: Kind| {
        let mut bench = Bench::new();
        let started = bench.start(&[spec(1, kind)], CoreShare::ONLY, None);
        started.expect("the stream is right");
        bench.tx_queues.registered(0)
    };
    let kind = Kind {
        bytes: 590,
        offset: 26,
        trims: false,
        is_measured: false,
        is_fixed: false,
    };
    assert_eq!(kept(kind), 1);
    assert_eq!(kept(Kind { bytes: 60, ..kind }), 0);
    let trims = Kind {
        trims: true,
        ..kind
    };
    assert_eq!(kept(trims), 1);
    let measured = Kind {
        is_measured: true,
        ..kind
    };
    assert_eq!(kept(measured), 0);
}
