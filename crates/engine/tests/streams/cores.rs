//! Many cores behave as one.

use allosaur_engine::stream::{CoreShare, Mode, Rate, StreamSpec};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::{Instruction, Operation, Range, Values, Width};
use allosaur_testkit::recording::Sent;
use proptest::prelude::*;

use crate::bench::{Bench, burst, sorted, stream};

fn sent_by_cores(streams: &[StreamSpec], cores: usize) -> Vec<Sent> {
    let mut sent = Vec::new();
    for rank in 0..cores {
        let mut bench = Bench::new();
        let share = CoreShare {
            core: rank,
            rank,
            cores,
        };
        bench
            .start(streams, share, Some(SECOND))
            .expect("the streams are right");
        bench.run_until(2 * SECOND);
        assert_eq!(
            bench.events().len(),
            1,
            "core {rank} of {cores} does not end"
        );
        sent.extend(bench.outlets.take());
    }
    sorted(sent)
}

fn counting(operation: Operation) -> Vec<Instruction> {
    let range = Range {
        operation,
        init: 3,
        min: 1,
        max: 200,
        step: 1,
    };
    let name = "n".to_owned();
    vec![
        Instruction::Variable {
            name: name.clone(),
            width: Width::One,
            values: Values::Range(range),
        },
        Instruction::Write {
            variable: name,
            offset: 58,
            add: 0,
            big_endian: true,
        },
    ]
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Continuous),
        (1u64..20).prop_map(|packets| Mode::SingleBurst { packets }),
        (1u64..7, 0u64..40, 1u64..5).prop_map(|(packets_per_burst, gap, bursts)| {
            Mode::MultiBurst {
                packets_per_burst,
                gap: gap * MILLISECOND,
                bursts,
            }
        }),
    ]
}

fn programs() -> impl Strategy<Value = Vec<Instruction>> {
    prop_oneof![
        Just(Vec::new()),
        Just(counting(Operation::Increment)),
        Just(counting(Operation::Decrement)),
        Just(counting(Operation::Random)),
    ]
}

/// A chain of streams that ends where it began, or does not.
fn chains() -> impl Strategy<Value = Vec<StreamSpec>> {
    let one = (modes(), programs(), 1u32..400, 0u64..30);
    (proptest::collection::vec(one, 1..5), any::<bool>()).prop_map(|(parts, closed)| {
        let count = parts.len() as u32;
        let streams = (1..)
            .zip(parts)
            .map(|(id, (mode, program, pps, delay))| StreamSpec {
                mode,
                program,
                rate: Rate::PacketsPerSecond(f64::from(pps)),
                start_delay: 1 + delay * MILLISECOND,
                self_start: id == 1 || mode == Mode::Continuous,
                next: match id {
                    _ if mode == Mode::Continuous => None,
                    id if id < count => Some(id + 1),
                    _ => closed.then_some(1),
                },
                action_count: 3,
                ..stream(id)
            });
        let mut streams: Vec<StreamSpec> = streams.collect();
        // Behind a stream without end nothing would start.
        for i in 1..streams.len() {
            streams[i].self_start |= streams[i - 1].next.is_none();
        }
        streams
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_number_of_cores_sends_what_one_would(streams in chains(), cores in 2usize..6) {
        prop_assert_eq!(sent_by_cores(&streams, cores), sent_by_cores(&streams, 1));
    }

    #[test]
    fn a_core_that_looks_seldom_sends_the_same(streams in chains(), step_ms in 1u64..95) {
        let mut bench = Bench::new();
        bench.start(&streams, CoreShare::ONLY, Some(SECOND)).expect("the streams are right");
        for step in 1..=2000 / step_ms + 1 {
            bench.catch_up(step * step_ms * MILLISECOND);
        }
        let missed = bench.engine.counters()[0].missed_packets;
        let late = sorted(bench.outlets.take());
        let on_time = sent_by_cores(&streams, 1);
        prop_assert_eq!(late.len() as u64 + missed, on_time.len() as u64);
        // Only what is missed at the very end is missing.
        prop_assert_eq!(&late[..], &on_time[..late.len()]);
    }
}

#[test]
fn a_burst_smaller_than_the_cores_is_sent_once() {
    assert_eq!(sent_by_cores(&[burst(1, 2)], 16).len(), 2);
}

#[test]
fn a_pinned_stream_is_sent_by_its_core_alone() {
    let pinned = StreamSpec {
        core: Some(1),
        ..stream(1)
    };
    let sent_by = |core| -> usize {
        let mut bench = Bench::new();
        let share = CoreShare {
            core,
            rank: core,
            cores: 2,
        };
        let streams = std::slice::from_ref(&pinned);
        bench
            .start(streams, share, Some(100 * MILLISECOND))
            .expect("right");
        bench.run_until(SECOND);
        bench.outlets.take().len()
    };
    assert_eq!((sent_by(0), sent_by(1)), (0, 100));
}

#[test]
fn a_fast_stream_keeps_its_rate_over_cores() {
    let rate = Rate::PacketsPerSecond(333_333.3);
    let fast = [StreamSpec { rate, ..stream(1) }];
    let one = sent_by_cores(&fast, 1);
    assert_eq!(one.len(), 333_334);
    let last: Nanos = one[333_333].at;
    assert!(
        last.abs_diff(SECOND - 900) <= 1,
        "the last packet is due at {last}"
    );
}
