//! Many cores behave as one.

use allosaur_engine::ProfileEvent;
use allosaur_engine::stateless::Change;
use allosaur_engine::stream::{CoreShare, Mode, Rate, StreamId, StreamSpec};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::{Instruction, Operation, Range, Values, Width};
use allosaur_testkit::recording::Sent;
use proptest::prelude::*;

use crate::bench::{Bench, burst, sorted, stream};

fn sent_by_cores(streams: &[StreamSpec], cores: usize) -> Vec<Sent> {
    sent_with_changes(streams, cores, &[])
}

/// How long before its time a core hears of a change.
const LEAD: Nanos = MILLISECOND;

fn sent_with_changes(
    streams: &[StreamSpec],
    cores: usize,
    changes: &[(Nanos, Change)],
) -> Vec<Sent> {
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
        for (at, change) in changes {
            let heard = at.saturating_sub(LEAD);
            bench.run_until(heard);
            bench.change(heard, *at, change.clone());
        }
        bench.run_until(2 * SECOND);
        let events = bench.events();
        let done = |event: &&ProfileEvent| matches!(event, ProfileEvent::ProfileDone { .. });
        let ends = events.iter().filter(done).count();
        assert_eq!(ends, 1, "core {rank} of {cores} does not end");
        sent.extend(bench.tx_queues.take());
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
            next: None,
            each_core: false,
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

fn some_streams() -> impl Strategy<Value = Box<[StreamId]>> {
    proptest::collection::btree_set(1u32..5, 0..3).prop_map(|ids| ids.into_iter().collect())
}

fn change() -> impl Strategy<Value = Change> {
    let factor = prop_oneof![0.01f64..8.0, Just(1.0), Just(0.5)];
    let factors = (some_streams(), 0.01f64..8.0)
        .prop_map(|(ids, factor)| ids.iter().map(|id| (*id, factor)).collect());
    prop_oneof![
        Just(Change::Pause),
        Just(Change::Resume),
        factor.prop_map(Change::Update),
        some_streams().prop_map(Change::PauseStreams),
        some_streams().prop_map(Change::ResumeStreams),
        factors.prop_map(Change::UpdateStreams),
    ]
}

/// Changes in the order of time, most of them within the run.
fn changes() -> impl Strategy<Value = Vec<(Nanos, Change)>> {
    let one = (0u64..1_100_000, change());
    proptest::collection::vec(one, 0..8).prop_map(|mut changes| {
        changes.sort_by_key(|(at_us, _)| *at_us);
        let changes = changes.into_iter();
        changes
            .map(|(at_us, change)| (at_us * 1000, change))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_number_of_cores_sends_what_one_would(streams in chains(), cores in 2usize..6) {
        prop_assert_eq!(sent_by_cores(&streams, cores), sent_by_cores(&streams, 1));
    }

    #[test]
    fn all_cores_change_alike(
        streams in chains(),
        paused in proptest::collection::vec(any::<bool>(), 4),
        changes in changes(),
        cores in 2usize..6,
    ) {
        let mut streams = streams;
        for (stream, paused) in streams.iter_mut().zip(paused) {
            stream.start_paused = paused;
        }
        let one = sent_with_changes(&streams, 1, &changes);
        prop_assert_eq!(sent_with_changes(&streams, cores, &changes), one);
    }

    #[test]
    fn a_late_core_changes_at_the_planned_time(
        streams in chains(),
        changes in changes(),
        step_ms in 1u64..90,
    ) {
        let mut bench = Bench::new();
        bench.start(&streams, CoreShare::ONLY, Some(SECOND)).expect("the streams are right");
        let step = step_ms * MILLISECOND;
        let mut coming = changes.iter().peekable();
        for now in (0..=2000 / step_ms + 1).map(|n| n * step) {
            // It hears of what is planned until it looks again, and not a moment before.
            while let Some((at, change)) = coming.next_if(|(at, _)| *at <= now + step) {
                bench.change(now, *at, change.clone());
            }
            bench.catch_up(now);
        }
        let missed = bench.engine.counters()[0].missed_packets;
        let late = sorted(bench.tx_queues.take());
        let on_time = sent_with_changes(&streams, 1, &changes);
        prop_assert_eq!(late.len() as u64 + missed, on_time.len() as u64);
        prop_assert_eq!(&late[..], &on_time[..late.len()]);
    }

    #[test]
    fn a_core_that_looks_seldom_sends_the_same(streams in chains(), step_ms in 1u64..95) {
        let mut bench = Bench::new();
        bench.start(&streams, CoreShare::ONLY, Some(SECOND)).expect("the streams are right");
        for step in 1..=2000 / step_ms + 1 {
            bench.catch_up(step * step_ms * MILLISECOND);
        }
        let missed = bench.engine.counters()[0].missed_packets;
        let late = sorted(bench.tx_queues.take());
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
        bench.tx_queues.take().len()
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
