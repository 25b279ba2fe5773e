//! Pause, resume and update: when packets come then, and which.

use allosaur_engine::ProfileEvent;
use allosaur_engine::flow_stats::{Group, Rule};
use allosaur_engine::stateless::Change;
use allosaur_engine::stream::{CoreShare, Profile, StreamSpec};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::{Instruction, Operation, Range, Values, Width};

use crate::bench::{Bench, KEY, burst, facts, stream};

/// A stream of a packet a millisecond whose last byte but one counts its packets.
fn counted(id: u32) -> StreamSpec {
    let range = Range {
        operation: Operation::Increment,
        init: 0,
        min: 0,
        max: 255,
        step: 1,
    };
    let name = "n".to_owned();
    let program = vec![
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
    ];
    StreamSpec {
        program,
        ..stream(id)
    }
}

fn started(streams: &[StreamSpec], duration: Option<Nanos>) -> Bench {
    let mut bench = Bench::new();
    bench
        .start(streams, CoreShare::ONLY, duration)
        .expect("the streams are right");
    bench
}

/// What was sent: time in microseconds, the packet's number, the stream's.
fn sent(bench: &mut Bench) -> Vec<(u64, u8, u8)> {
    let packets = bench.tx_queues.take();
    let seen = packets
        .iter()
        .map(|p| (p.at / MICROSECOND, p.bytes[58], p.bytes[59]));
    seen.collect()
}

#[test]
fn a_pause_moves_what_is_to_come_and_misses_nothing() {
    let mut bench = started(&[counted(1)], None);
    bench.change(0, 2_500_000, Change::Pause);
    bench.change(0, 502_750_000, Change::Resume);
    bench.run_until(504_500_000);
    let expected = [
        (0, 0, 1),
        (1000, 1, 1),
        (2000, 2, 1),
        (503_250, 3, 1),
        (504_250, 4, 1),
    ];
    assert_eq!(sent(&mut bench), expected);
    assert_eq!(bench.engine.counters()[0].missed_packets, 0);
    let answer = |at| ProfileEvent::ProfileChanged {
        port: 0,
        profile: KEY,
        at,
    };
    assert_eq!(bench.events(), [answer(2_500_000), answer(502_750_000)]);
}

#[test]
fn a_packet_that_is_due_when_the_pause_begins_waits() {
    let mut bench = started(&[counted(1)], None);
    bench.change(0, 2 * MILLISECOND, Change::Pause);
    bench.run_until(SECOND);
    assert_eq!(sent(&mut bench), [(0, 0, 1), (1000, 1, 1)]);
    assert!(!bench.engine.is_idle());
    assert_eq!(bench.engine.poll_timeout(), None);
    bench.change(SECOND, SECOND, Change::Resume);
    bench.run_until(SECOND);
    assert_eq!(sent(&mut bench), [(1_000_000, 2, 1)]);
}

#[test]
fn an_update_counts_the_part_of_the_gap_that_is_over() {
    let mut bench = started(&[counted(1)], None);
    bench.change(0, 1_250_000, Change::Update(2.0));
    bench.change(0, 3_000_000, Change::Update(0.25));
    bench.run_until(6_600_000);
    // Three quarters of a gap were left, now of 500 us; then one quarter, now of 4 ms.
    let expected = [
        (0, 0, 1),
        (1000, 1, 1),
        (1625, 2, 1),
        (2125, 3, 1),
        (2625, 4, 1),
        (4000, 5, 1),
    ];
    assert_eq!(sent(&mut bench), expected);
}

#[test]
fn an_update_during_a_pause_shows_afterwards() {
    let mut bench = started(&[counted(1)], None);
    bench.change(0, 500_000, Change::Pause);
    bench.change(0, 5_000_000, Change::Update(2.0));
    bench.change(0, 10_000_000, Change::Resume);
    bench.run_until(11_000_000);
    let expected = [(0, 0, 1), (10_250, 1, 1), (10_750, 2, 1)];
    assert_eq!(sent(&mut bench), expected);
}

#[test]
fn a_slow_stream_need_not_wait_for_its_next_packet() {
    let mut bench = started(&[counted(1)], None);
    bench.change(0, 0, Change::Update(0.001));
    bench.change(0, 500 * MILLISECOND, Change::Update(1000.0));
    bench.run_until(500 * MILLISECOND + MICROSECOND);
    // Half of a second is half of a gap; the other half is 500 ns.
    let expected = [(0, 0, 1), (500_000, 1, 1)];
    assert_eq!(sent(&mut bench), expected);
}

#[test]
fn single_streams_stand_still_while_others_go_on() {
    let mut bench = started(&[counted(1), counted(2)], None);
    bench.change(0, 500_000, Change::PauseStreams([2].into()));
    bench.change(0, 2_500_000, Change::ResumeStreams([2].into()));
    bench.run_until(3_500_000);
    let expected = [
        (0, 0, 1),
        (0, 0, 2),
        (1000, 1, 1),
        (2000, 2, 1),
        (3000, 1, 2),
        (3000, 3, 1),
    ];
    let mut sent = sent(&mut bench);
    sent.sort_unstable();
    assert_eq!(sent, expected);
}

#[test]
fn a_stream_paused_by_itself_stays_so_when_its_profile_resumes() {
    let mut bench = started(&[counted(1), counted(2)], None);
    bench.change(0, 500_000, Change::PauseStreams([2].into()));
    bench.change(0, 600_000, Change::Pause);
    bench.change(0, 700_000, Change::Resume);
    bench.run_until(SECOND);
    let packets = sent(&mut bench);
    assert_eq!(packets.iter().filter(|p| p.2 == 2).count(), 1);
    // And the other way round: resumed within its profile's pause.
    bench.change(SECOND, SECOND + 1, Change::Pause);
    bench.change(SECOND, SECOND + 2, Change::ResumeStreams([2].into()));
    bench.run_until(2 * SECOND);
    assert!(sent(&mut bench).is_empty());
    bench.change(2 * SECOND, 2 * SECOND, Change::Resume);
    bench.run_until(3 * SECOND);
    let packets = sent(&mut bench);
    assert_eq!(packets.iter().filter(|p| p.2 == 2).count(), 1000);
}

#[test]
fn a_stream_that_starts_paused_waits_with_its_delay_before_it() {
    let waiting = StreamSpec {
        start_paused: true,
        start_delay: 2 * MILLISECOND,
        ..counted(1)
    };
    let mut bench = started(&[waiting], Some(SECOND));
    bench.change(0, 500 * MILLISECOND, Change::ResumeStreams([1].into()));
    bench.run_until(2 * SECOND);
    let packets = sent(&mut bench);
    assert_eq!(packets.len(), 498);
    assert_eq!(packets[0], (502_000, 0, 1));
    assert_eq!(bench.events().len(), 2);
    assert!(bench.engine.is_idle());
}

#[test]
fn a_run_ends_on_time_though_a_stream_stands_still() {
    let mut bench = started(&[counted(1), counted(2)], Some(10 * MILLISECOND));
    bench.change(0, 500_000, Change::PauseStreams([2].into()));
    bench.run_until(SECOND);
    assert_eq!(sent(&mut bench).len(), 11);
    assert_eq!(bench.engine.counters()[0].missed_packets, 0);
    assert!(matches!(
        bench.events()[1],
        ProfileEvent::ProfileDone { at: 10_000_000, .. }
    ));
}

#[test]
fn a_stream_too_slow_for_the_run_is_sent_when_it_becomes_faster() {
    let mut bench = started(&[counted(1)], Some(10 * MILLISECOND));
    bench.change(0, 500_000, Change::Update(0.01));
    bench.change(0, 4_500_000, Change::Update(1.0));
    bench.run_until(SECOND);
    // Half a gap, then four hundredths of one, then the rest.
    let times: Vec<u64> = sent(&mut bench).iter().map(|p| p.0).collect();
    assert_eq!(times, [0, 4960, 5960, 6960, 7960, 8960, 9960]);
    assert!(bench.engine.is_idle());
}

#[test]
fn before_its_start_a_profile_can_be_paused_and_resumed_without_delay() {
    let mut bench = Bench::new();
    bench.start_at(&[counted(1)], 5 * MILLISECOND);
    bench.change(0, MILLISECOND, Change::Pause);
    bench.change(0, 3 * MILLISECOND, Change::Resume);
    bench.run_until(6 * MILLISECOND);
    assert_eq!(sent(&mut bench), [(5000, 0, 1), (6000, 1, 1)]);
}

#[test]
fn a_change_that_is_heard_late_leaves_the_numbers_in_step() {
    let mut bench = started(&[counted(1)], None);
    bench.run_until(3 * MILLISECOND);
    bench.change(3 * MILLISECOND, 1_500_000, Change::Pause);
    bench.change(3 * MILLISECOND, 4_500_000, Change::Resume);
    bench.run_until(7 * MILLISECOND);
    let packets = sent(&mut bench);
    // Three milliseconds of pause: packet 4 of a core that heard in time comes at 7 ms, too.
    assert_eq!(packets.last(), Some(&(7000, 4, 1)));
}

#[test]
fn what_does_not_run_is_answered_too() {
    let mut bench = Bench::new();
    bench.change(0, 5, Change::Pause);
    assert_eq!(
        bench.events(),
        [ProfileEvent::ProfileChanged {
            port: 0,
            profile: KEY,
            at: 5
        }]
    );
}

/// The stream, measured for latency.
fn measured(stream: StreamSpec) -> StreamSpec {
    let mut packet = vec![0; 60];
    packet[12] = 8;
    packet[14..18].copy_from_slice(&[0x45, 0, 0, 46]);
    packet[23] = 17;
    let group = Group::latency(0).expect("there are more");
    let rule = Some(Rule {
        group,
        vxlan: false,
        run: 0,
    });
    StreamSpec {
        packet,
        rule,
        ..stream
    }
}

#[test]
fn no_factor_changes_the_rate_of_a_measured_stream_and_the_lowest_core_sends_it() {
    let streams = [measured(stream(1)), stream(2)];
    let sent_by = |rank| {
        let mut bench = Bench::new();
        let share = CoreShare {
            core: rank + 2,
            rank,
            cores: 2,
        };
        let started = bench.start(&streams, share, Some(10 * MILLISECOND));
        started.expect("the streams are right");
        bench.change(0, 0, Change::Update(2.0));
        bench.run_until(SECOND);
        let packets = bench.tx_queues.take();
        let measured = packets.iter().filter(|p| p.bytes[12] == 8).count();
        (measured, packets.len() - measured)
    };
    assert_eq!((sent_by(0), sent_by(1)), ((10, 10), (0, 10)));
    let profile = Profile::compile(&streams, &facts(2)).expect("the streams are right");
    let rates = (profile.fixed_rates().pps_max, profile.rates().pps_max);
    assert_eq!(rates, (1000.0, 1000.0));
}

#[test]
fn a_measured_stream_is_not_pinned_and_follows_only_measured_ones() {
    let error = |streams: &[StreamSpec]| {
        let compiled = Profile::compile(streams, &facts(2));
        compiled.expect_err("the streams are wrong").to_string()
    };
    let pinned = StreamSpec {
        core: Some(1),
        ..measured(stream(1))
    };
    assert!(error(&[pinned]).starts_with("stream 1: core_id cannot be set"));
    let first = StreamSpec {
        next: Some(2),
        ..measured(burst(1, 5))
    };
    let text = error(&[first.clone(), stream(2)]);
    assert!(text.starts_with("stream 1 and its next stream 2"), "{text}");
    let chain = [first, measured(stream(2))];
    assert!(Profile::compile(&chain, &facts(2)).is_ok());
}
