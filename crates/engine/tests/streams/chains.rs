//! When each packet of each mode leaves, and how streams follow each other.

use allosaur_engine::ProfileEvent;
use allosaur_engine::stream::{CoreShare, Mode, StreamSpec};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, SECOND};

use crate::bench::{Bench, KEY, burst, sent_by, stream};

#[test]
fn a_continuous_stream_sends_from_its_start_delay_to_the_end_of_the_run() {
    let delayed = StreamSpec {
        start_delay: 1500 * MICROSECOND,
        ..stream(1)
    };
    let sent = sent_by(&[delayed], Some(5 * MILLISECOND));
    assert_eq!(sent, [(1500, 1), (2500, 1), (3500, 1), (4500, 1)]);
}

#[test]
fn the_packet_due_at_the_very_end_is_not_sent() {
    assert_eq!(sent_by(&[stream(1)], Some(3 * MILLISECOND)).len(), 3);
}

#[test]
fn bursts_are_apart_by_their_gap_counted_from_the_last_packet() {
    let mode = Mode::MultiBurst {
        packets_per_burst: 2,
        gap: 10 * MILLISECOND,
        bursts: 3,
    };
    let sent = sent_by(&[StreamSpec { mode, ..stream(1) }], None);
    let times: Vec<u64> = sent.iter().map(|sent| sent.0).collect();
    assert_eq!(times, [0, 1000, 11_000, 12_000, 22_000, 23_000]);
}

#[test]
fn the_next_stream_starts_its_own_delay_after_the_last_packet() {
    let first = StreamSpec {
        next: Some(2),
        ..burst(1, 2)
    };
    let second = StreamSpec {
        self_start: false,
        start_delay: 5 * MICROSECOND,
        ..burst(2, 2)
    };
    assert_eq!(
        sent_by(&[first, second], None),
        [(0, 1), (1000, 1), (1005, 2), (2005, 2)]
    );
}

#[test]
fn a_loop_ends_when_a_stream_has_run_action_count_times() {
    let first = StreamSpec {
        next: Some(2),
        ..burst(1, 1)
    };
    let second = StreamSpec {
        self_start: false,
        start_delay: MILLISECOND,
        next: Some(1),
        action_count: 3,
        ..burst(2, 1)
    };
    let sent = sent_by(&[first, second], None);
    assert_eq!(
        sent,
        [
            (0, 1),
            (1000, 2),
            (1000, 1),
            (2000, 2),
            (2000, 1),
            (3000, 2)
        ]
    );
}

#[test]
fn a_stream_may_follow_itself() {
    let again = StreamSpec {
        next: Some(1),
        action_count: 4,
        ..burst(1, 2)
    };
    assert_eq!(sent_by(&[again], None).len(), 8);
}

#[test]
fn a_dummy_stream_takes_its_time_and_sends_nothing() {
    let delay = StreamSpec {
        dummy: true,
        next: Some(2),
        ..burst(1, 8)
    };
    let after = StreamSpec {
        self_start: false,
        ..burst(2, 1)
    };
    assert_eq!(sent_by(&[delay, after], None), [(7000, 2)]);
}

#[test]
fn a_stream_that_runs_is_not_started_again_by_another_chain() {
    let one = StreamSpec {
        next: Some(3),
        ..burst(1, 1)
    };
    let two = StreamSpec {
        next: Some(3),
        start_delay: MILLISECOND,
        ..burst(2, 1)
    };
    let shared = StreamSpec {
        self_start: false,
        start_delay: 10,
        ..burst(3, 5)
    };
    let sent = sent_by(&[one, two, shared], None);
    assert_eq!(sent.iter().filter(|sent| sent.1 == 3).count(), 5);
}

#[test]
fn a_disabled_stream_is_left_out() {
    let disabled = StreamSpec {
        enabled: false,
        ..stream(2)
    };
    assert_eq!(sent_by(&[burst(1, 1), disabled], None), [(0, 1)]);
}

#[test]
fn the_end_is_told_once_when_the_last_stream_is_done() {
    let mut bench = Bench::new();
    bench
        .start(&[burst(1, 3), burst(2, 5)], CoreShare::ONLY, None)
        .expect("right");
    bench.run_until(SECOND);
    let at = 4 * MILLISECOND;
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileDone {
            port: 0,
            profile: KEY,
            at
        }]
    );
    assert!(bench.engine.is_idle() && bench.engine.poll_timeout().is_none());
}

#[test]
fn a_run_that_its_duration_cuts_ends_when_the_duration_does() {
    let mut bench = Bench::new();
    let duration = Some(2500 * MICROSECOND);
    bench
        .start(&[stream(1)], CoreShare::ONLY, duration)
        .expect("right");
    bench.run_until(SECOND);
    let at = 2500 * MICROSECOND;
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileDone {
            port: 0,
            profile: KEY,
            at
        }]
    );
}

#[test]
fn a_profile_without_streams_for_this_core_is_done_at_once() {
    let mut bench = Bench::new();
    let share = CoreShare {
        core: 1,
        rank: 1,
        cores: 2,
    };
    let pinned = StreamSpec {
        core: Some(0),
        ..stream(1)
    };
    bench.start(&[pinned], share, None).expect("right");
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileDone {
            port: 0,
            profile: KEY,
            at: 0
        }]
    );
}

#[test]
fn a_stream_that_would_start_after_the_end_does_not_hold_the_run_up() {
    let late = StreamSpec {
        start_delay: 10 * SECOND,
        ..stream(1)
    };
    let chained = StreamSpec {
        next: Some(3),
        ..burst(2, 1)
    };
    let after = StreamSpec {
        self_start: false,
        start_delay: 10 * SECOND,
        ..burst(3, 1)
    };
    for streams in [
        vec![late.clone()],
        vec![chained, after],
        vec![late, stream(4)],
    ] {
        let mut bench = Bench::new();
        let duration = Some(2 * MILLISECOND);
        bench
            .start(&streams, CoreShare::ONLY, duration)
            .expect("right");
        bench.run_until(SECOND);
        let at = 2 * MILLISECOND;
        let done = ProfileEvent::ProfileDone {
            port: 0,
            profile: KEY,
            at,
        };
        assert_eq!(bench.events(), [done]);
    }
}
