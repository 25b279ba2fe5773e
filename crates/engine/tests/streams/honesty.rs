//! Cores that are held up, queues that are full: what is sent late, what is missed, and that
//! both are counted.

use allosaur_engine::flow_stats::{Group, Rule};
use allosaur_engine::stateless::{DRAIN_MAX, LATE_MAX};
use allosaur_engine::stream::{CoreShare, Mode, Rate, StreamSpec};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_engine::vm::{Instruction, Operation, Range, Values, Width};
use allosaur_engine::{ProfileEvent, StatelessCommand};

use crate::bench::{Bench, KEY, burst, stream};

fn started(streams: &[StreamSpec], duration: Option<u64>) -> Bench {
    let mut bench = Bench::new();
    bench
        .start(streams, CoreShare::ONLY, duration)
        .expect("the streams are right");
    bench
}

#[test]
fn a_short_delay_is_made_up_for() {
    let mut bench = started(&[stream(1)], Some(SECOND));
    bench.run_until(100 * MILLISECOND);
    bench.catch_up(100 * MILLISECOND + LATE_MAX);
    bench.run_until(2 * SECOND);
    let counters = bench.engine.counters()[0];
    assert_eq!((counters.sent.packets, counters.missed_packets), (1000, 0));
}

#[test]
fn what_a_long_delay_costs_is_counted_as_missed() {
    let mut bench = started(&[stream(1)], Some(SECOND));
    bench.run_until(100 * MILLISECOND);
    bench.catch_up(100 * MILLISECOND + LATE_MAX + 300 * MILLISECOND);
    bench.run_until(2 * SECOND);
    let counters = bench.engine.counters()[0];
    assert_eq!((counters.sent.packets, counters.missed_packets), (700, 300));
}

#[test]
fn what_is_missed_is_counted_for_its_group() {
    let group = |n| Group::flow(n).expect("a group");
    let mut packet = vec![0; 60];
    // UDP over IPv4.
    packet[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
    packet[23] = 17;
    let counted = |id, n| StreamSpec {
        packet: packet.clone(),
        rule: Some(Rule {
            group: group(n),
            vxlan: false,
            run: 0,
        }),
        ..stream(id)
    };
    let mut bench = started(&[counted(1, 5), counted(2, 6), counted(3, 6)], Some(SECOND));
    bench.run_until(100 * MILLISECOND);
    bench.catch_up(100 * MILLISECOND + LATE_MAX + 300 * MILLISECOND);
    bench.run_until(2 * SECOND);
    let table = bench.engine.groups_mut().next().expect("port 0");
    let missed = [5, 6].map(|n| table.counters(group(n)).missed_packets);
    assert_eq!(missed, [300, 600]);
    assert_eq!(bench.engine.counters()[0].missed_packets, 900);
}

#[test]
fn packets_keep_their_time_and_number_over_what_is_missed() {
    let range = Range {
        operation: Operation::Increment,
        init: 0,
        min: 0,
        max: 255,
        step: 1,
    };
    let program = vec![
        Instruction::Variable {
            name: "n".to_owned(),
            width: Width::One,
            values: Values::Range(range),
            next: None,
            each_core: false,
        },
        Instruction::Write {
            variable: "n".to_owned(),
            offset: 58,
            add: 0,
            big_endian: true,
        },
    ];
    let mut bench = started(
        &[StreamSpec {
            program,
            ..stream(1)
        }],
        None,
    );
    bench.run_until(10 * MILLISECOND);
    bench.catch_up(240 * MILLISECOND);
    for sent in bench.tx_queues.sent() {
        assert_eq!(u64::from(sent.bytes[58]), sent.at / MILLISECOND);
    }
    assert!(bench.engine.counters()[0].missed_packets > 0);
}

#[test]
fn a_burst_is_sent_whole_however_late() {
    let mut bench = started(&[burst(1, 500)], None);
    bench.catch_up(100 * SECOND);
    let counters = bench.engine.counters()[0];
    assert_eq!((counters.sent.packets, counters.missed_packets), (500, 0));
}

#[test]
fn after_the_end_what_was_due_before_may_leave_for_a_while() {
    let mut bench = started(&[stream(1)], Some(50 * MILLISECOND));
    bench.catch_up(50 * MILLISECOND + DRAIN_MAX - 1);
    let counters = bench.engine.counters()[0];
    assert_eq!((counters.sent.packets, counters.missed_packets), (50, 0));
}

#[test]
fn then_the_rest_of_streams_and_bursts_is_missed_and_the_run_ends() {
    let slow = Mode::MultiBurst {
        packets_per_burst: 5,
        gap: MILLISECOND,
        bursts: 4,
    };
    let slow = StreamSpec {
        mode: slow,
        ..stream(2)
    };
    let mut bench = started(&[stream(1), slow], Some(50 * MILLISECOND));
    bench.catch_up(50 * MILLISECOND + DRAIN_MAX);
    let counters = bench.engine.counters()[0];
    assert_eq!(
        (counters.sent.packets, counters.missed_packets),
        (0, 50 + 20)
    );
    assert_eq!(bench.events().len(), 1);
    assert!(bench.engine.is_idle());
}

#[test]
fn what_a_full_queue_refuses_is_sent_later_and_the_same() {
    let values = Values::List {
        values: vec![7, 1, 3],
        operation: Operation::Random,
        step: 1,
    };
    let program = vec![
        Instruction::Variable {
            name: "n".to_owned(),
            width: Width::One,
            values,
            next: None,
            each_core: false,
        },
        Instruction::Write {
            variable: "n".to_owned(),
            offset: 58,
            add: 0,
            big_endian: true,
        },
    ];
    let streams = [
        StreamSpec {
            program,
            rate: Rate::PacketsPerSecond(50_000.0),
            ..stream(1)
        },
        StreamSpec {
            rate: Rate::PacketsPerSecond(10_000.0),
            ..stream(2)
        },
    ];
    let mut free = started(&streams, Some(10 * MILLISECOND));
    free.run_until(SECOND);
    let mut tight = started(&streams, Some(10 * MILLISECOND));
    for turn in 1..=1000 {
        tight.tx_queues.limit(0, turn % 3);
        tight
            .engine
            .poll_transmit(turn as u64 * 20_000, &mut tight.tx_queues);
    }
    assert!(tight.engine.counters()[0].queue_full > 0);
    assert_eq!(tight.engine.counters()[0].missed_packets, 0);
    let by_time = |bench: Bench| crate::bench::sorted(bench.tx_queues.sent().to_vec());
    assert_eq!(by_time(tight), by_time(free));
}

#[test]
fn long_frames_are_not_starved_by_short_ones_at_a_full_queue() {
    let fast = Rate::PacketsPerSecond(1e6);
    let streams = [
        StreamSpec {
            rate: fast,
            ..stream(1)
        },
        StreamSpec {
            rate: fast,
            packet: vec![0; 1514],
            ..stream(2)
        },
    ];
    let mut bench = started(&streams, None);
    for turn in 1..=20_000u64 {
        bench.tx_queues.limit(0, 10);
        bench
            .engine
            .poll_transmit(turn * 50_000, &mut bench.tx_queues);
    }
    let long = bench
        .tx_queues
        .sent()
        .iter()
        .filter(|sent| sent.bytes.len() == 1514)
        .count();
    let share = long as f64 / bench.tx_queues.sent().len() as f64;
    assert!(
        (0.45..0.55).contains(&share),
        "long frames are {share} of all"
    );
}

#[test]
fn a_stopped_profile_sends_no_more_and_leaves_nothing_behind() {
    let mut bench = started(&[stream(1)], None);
    bench.run_until(5 * MILLISECOND);
    let stop = StatelessCommand::StopProfile {
        port: 0,
        profile: KEY,
    };
    bench
        .engine
        .handle_command(6 * MILLISECOND, stop, &mut bench.tx_queues);
    let at = 6 * MILLISECOND;
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileStopped {
            port: 0,
            profile: KEY,
            at
        }]
    );
    bench.run_until(SECOND);
    assert_eq!(bench.tx_queues.sent().len(), 6);
    assert_eq!(bench.tx_queues.registered(0), 0);
    assert!(bench.engine.poll_retired().is_some());
    assert!(bench.engine.poll_timeout().is_none());
}

#[test]
fn stopping_what_does_not_run_is_answered() {
    let mut bench = Bench::new();
    let stop = StatelessCommand::StopProfile {
        port: 0,
        profile: KEY,
    };
    bench.engine.handle_command(3, stop, &mut bench.tx_queues);
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileStopped {
            port: 0,
            profile: KEY,
            at: 3
        }]
    );
}

#[test]
fn a_queue_without_room_for_the_frame_gets_copies_instead() {
    let mut bench = Bench::new();
    bench.tx_queues.limit_registered(0, 0);
    bench
        .start(&[burst(1, 100)], CoreShare::ONLY, None)
        .expect("right");
    bench.run_until(SECOND);
    assert_eq!(bench.tx_queues.sent().len(), 100);
    assert!(
        bench
            .tx_queues
            .sent()
            .iter()
            .all(|sent| sent.bytes[59] == 1)
    );
}

#[test]
fn streams_are_counted_each_for_itself() {
    let mut bench = started(&[burst(1, 3), stream(2)], None);
    bench.run_until(9 * MILLISECOND);
    let counted: Vec<_> = bench.engine.stream_counters(0, KEY).collect();
    let of = |i: usize| (counted[i].0, counted[i].1.packets, counted[i].1.bytes);
    assert_eq!((of(0), of(1)), ((1, 3, 3 * 64), (2, 10, 640)));
}
