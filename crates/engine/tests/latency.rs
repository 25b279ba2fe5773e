//! Latency under virtual time: an engine, a link that is played by hand, and a meter.

use std::collections::BTreeMap;

use allosaur_engine::flow_stats::receive::{FlowTag, flow_tag_of};
use allosaur_engine::flow_stats::{Group, Rule, TagError, Tagging, VxlanPorts};
use allosaur_engine::latency::meter::{BUCKETS, bucket_usec};
use allosaur_engine::latency::{LatencyStats, Meter, Trailer};
use allosaur_engine::stream::{
    CompileError, CoreShare, DestinationMac, Mode, Profile, ProfileKey, Rate, StreamPortInfo,
    StreamSpec,
};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::Checksums;
use allosaur_engine::{StatelessCommand, StatelessEngine};
use allosaur_testkit::recording::Recording;
use proptest::prelude::*;

/// UDP over IPv4, 60 bytes.
const PACKET: [u8; 60] = {
    let mut packet = [0x78; 60];
    let headers = [
        0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 8, 0, 0x45, 0, 0, 0x2e, 0, 1, 0, 0, 0x40, 0x11, 0x3a,
        0xbd, 0x10, 0, 0, 1, 0x30, 0, 0, 1, 4, 1, 0, 12, 0, 0x1a, 0, 0,
    ];
    let mut i = 0;
    while i < headers.len() {
        packet[i] = headers[i];
        i += 1;
    }
    packet
};

fn stream(n: u16, run: u8) -> StreamSpec {
    let group = Group::latency(n).expect("a group");
    StreamSpec {
        id: n.into(),
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode: Mode::Continuous,
        rate: Rate::PacketsPerSecond(1000.0),
        packet: PACKET.to_vec(),
        keep_source_mac: false,
        destination_mac: DestinationMac::Port,
        dummy: false,
        start_paused: false,
        random_seed: 1,
        core: None,
        rule: Some(Rule {
            group,
            vxlan: false,
            run,
        }),
        program: Vec::new(),
    }
}

const FACTS: StreamPortInfo = StreamPortInfo {
    line_rate_bps: 10e9,
    source_mac: [2; 6],
    destination_mac: [4; 6],
    data_cores: 2,
    marking: Some(Tagging::Server),
    vxlan: VxlanPorts::STANDARD,
    tunnel: None,
    checksums: Checksums::Complete,
};

/// What the two cores send in a second at `factor`, with the time of each turn.
fn sent(streams: &[StreamSpec], factor: f64, turn: Nanos) -> Vec<(usize, Nanos, Vec<u8>)> {
    let profile = Profile::compile(streams, &FACTS).expect("the streams are right");
    let mut sent = Vec::new();
    for core in 0..2 {
        let share = CoreShare {
            core,
            rank: core,
            cores: 2,
        };
        let mut engine = StatelessEngine::new(1, 0);
        let mut tx_queues = Recording::default();
        let start = StatelessCommand::StartProfile {
            port: 0,
            profile: ProfileKey(1),
            program: Box::new(profile.core_program(factor, share)),
            start_at: 0,
            duration: Some(SECOND),
        };
        engine.handle_command(0, start, &mut tx_queues);
        let mut now = 0;
        while now <= SECOND + 2 * turn {
            engine.poll_transmit(now, &mut tx_queues);
            for frame in tx_queues.take() {
                sent.push((core, now, frame.bytes));
            }
            now += turn;
        }
    }
    sent
}

fn trailer(frame: &[u8]) -> Trailer {
    assert_eq!(
        flow_tag_of(frame, &VxlanPorts::STANDARD),
        Some(FlowTag::Latency)
    );
    Trailer::parse(frame).expect("a trailer")
}

#[test]
fn each_packet_says_its_number_and_when_it_left_and_one_core_sends_them_all() {
    let sent = sent(&[stream(5, 9)], 1.0, 700 * MICROSECOND);
    assert_eq!(sent.len(), 1000);
    for (i, (core, now, frame)) in sent.iter().enumerate() {
        let said = Trailer {
            run: 9,
            group: 5,
            sequence: i as u32,
            sent_ns: *now,
        };
        assert_eq!((*core, trailer(frame)), (0, said));
        assert_eq!(frame[15] & 1, 1, "the lowest bit of TOS");
    }
}

#[test]
fn the_multiplier_leaves_the_rate_as_it_is() {
    let counted = StreamSpec {
        id: 50,
        rule: None,
        ..stream(0, 0)
    };
    let streams = [stream(5, 0), counted];
    let sent = sent(&streams, 2.0, MILLISECOND);
    let measured = sent
        .iter()
        .filter(|(_, _, frame)| flow_tag_of(frame, &VxlanPorts::STANDARD).is_some());
    assert_eq!((measured.count(), sent.len()), (1000, 3000));
    let profile = Profile::compile(&streams, &FACTS).expect("the streams are right");
    assert_eq!(profile.rates_at(|_| 2.0).pps_max, 3000.0);
    assert_eq!(profile.fixed_rates().pps_max, 1000.0);
}

#[test]
fn a_link_that_takes_a_millisecond_reads_a_millisecond() {
    let mut meter = Meter::default();
    for (_, now, frame) in sent(&[stream(0, 0)], 1.0, 50 * MICROSECOND) {
        let arrival = now + MILLISECOND;
        let trailer = trailer(&frame);
        meter.record(arrival, trailer.sequence, trailer.sent_ns);
    }
    let mut expected = LatencyStats {
        packets: 1000,
        sum_ns: 1000 * MILLISECOND,
        min_ns: MILLISECOND,
        max_ns: MILLISECOND,
        last_max_ns: MILLISECOND,
        ..LatencyStats::default()
    };
    let bucket = (0..BUCKETS).find(|&i| bucket_usec(i) == 1000);
    expected.histogram[bucket.expect("there is a bucket of 1 ms")] = 1000;
    assert_eq!(meter.stats(), &expected);
    assert_eq!(LatencyStats::from_words(&expected.to_words()), expected);
}

#[test]
fn wrong_streams_are_named() {
    let compile = |streams: &[StreamSpec]| Profile::compile(streams, &FACTS).err();
    let pinned = StreamSpec {
        core: Some(1),
        ..stream(3, 0)
    };
    assert_eq!(compile(&[pinned]), Some(CompileError::SequencedCore(3)));
    let burst = Mode::SingleBurst { packets: 2 };
    let first = StreamSpec {
        mode: burst,
        next: Some(4),
        ..stream(3, 0)
    };
    let plain = StreamSpec {
        rule: None,
        mode: burst,
        self_start: false,
        ..stream(4, 0)
    };
    let mixed = CompileError::SequencedChain { stream: 3, next: 4 };
    assert_eq!(compile(&[first, plain]), Some(mixed));
    let mut short = stream(3, 0);
    short.packet[23] = 6;
    short.packet[46] = 0x50;
    let no_room = CompileError::Mark {
        stream: 3,
        error: TagError::NoRoom,
    };
    assert_eq!(compile(&[short]), Some(no_room));
}

#[test]
fn the_last_maximum_forgets_and_the_jitter_follows() {
    let mut meter = Meter::default();
    let record = |meter: &mut Meter, at: Nanos, number: u32, latency_ns: Nanos| {
        meter.record(SECOND + at, number, SECOND + at - latency_ns)
    };
    record(&mut meter, 0, 0, 100 * MICROSECOND);
    record(&mut meter, SECOND / 4, 1, 20 * MICROSECOND);
    assert_eq!(meter.stats().last_max_ns, 100 * MICROSECOND);
    assert_eq!(meter.stats().jitter_ns, 5 * MICROSECOND);
    for (i, at) in [(2, SECOND / 2), (3, SECOND), (4, 3 * SECOND / 2)] {
        record(&mut meter, at, i, 20 * MICROSECOND);
    }
    assert_eq!(meter.stats().last_max_ns, 20 * MICROSECOND);
    assert_eq!(meter.stats().max_ns, 100 * MICROSECOND);
}

#[test]
fn a_new_run_begins_with_number_zero_and_keeps_what_was_measured() {
    let mut meter = Meter::default();
    for _ in 0..2 {
        meter.restart();
        for n in 0..10 {
            assert_eq!(meter.record(7 + n, n as u32, n), Some(7));
        }
    }
    let stats = meter.stats();
    assert_eq!(
        (stats.packets, stats.dropped, stats.sequence_too_low),
        (20, 0, 0)
    );
}

#[test]
fn a_packet_that_arrived_before_it_was_sent_has_no_time() {
    let mut meter = Meter::default();
    assert_eq!(meter.record(SECOND, 0, SECOND + 1), None);
    let first = *meter.stats();
    assert_eq!((first.packets, first.impossible_times), (0, 1));
    assert_eq!(meter.record(SECOND + 9, 1, SECOND), Some(9));
    assert_eq!(meter.record(SECOND + 20, 2, SECOND + 9000), None);
    let stats = meter.stats();
    assert_eq!((stats.min_ns, stats.max_ns, stats.sum_ns), (9, 9, 9));
    assert_eq!((stats.packets, stats.impossible_times), (1, 2));
    let order = (stats.dropped, stats.sequence_too_high, stats.jitter_ns);
    assert_eq!(order, (0, 0, 0), "its number counts as any other's");
    assert_eq!(LatencyStats::from_words(&stats.to_words()), *stats);
}

/// What a naive count says: each number's arrivals in order.
fn naive(arrivals: &[u32]) -> (u64, u64, u64) {
    let mut times = BTreeMap::<u32, u64>::new();
    let (mut late, mut twice, mut highest) = (0, 0, None);
    for &n in arrivals {
        let seen = times.entry(n).or_default();
        if *seen > 0 {
            twice += 1;
        } else if highest.is_some_and(|highest| n < highest) {
            late += 1;
        }
        *seen += 1;
        highest = highest.max(Some(n));
    }
    let missing = highest.map_or(0, |highest| u64::from(highest) + 1 - times.len() as u64);
    (missing, late, twice)
}

proptest! {
    /// Loss, reorder and duplicates in any mixture are counted as a naive count does.
    #[test]
    fn order_is_counted_right(fates in prop::collection::vec((0..10_u8, 0..20_u32), 1..600)) {
        let mut arrivals: Vec<(u32, u32)> = Vec::new();
        for (n, (fate, delay)) in (0..).zip(&fates) {
            match fate {
                0 => {}
                1 => arrivals.push((n + delay, n)),
                2 => arrivals.extend([(n, n), (n + delay, n)]),
                _ => arrivals.push((n, n)),
            }
        }
        arrivals.sort_by_key(|&(at, _)| at);
        let arrivals: Vec<u32> = arrivals.into_iter().map(|(_, n)| n).collect();
        let mut meter = Meter::default();
        for &n in &arrivals {
            prop_assert_eq!(meter.record(1, n, 0), Some(1));
        }
        let stats = meter.stats();
        let counted = (stats.dropped, stats.out_of_order, stats.duplicates);
        prop_assert_eq!(counted, naive(&arrivals));
        prop_assert_eq!(stats.sequence_too_low, stats.out_of_order + stats.duplicates);
        prop_assert_eq!(stats.packets, arrivals.len() as u64);
    }

    #[test]
    fn a_trailer_is_read_as_it_was_written(
        run: u8, group: u16, sequence: u32, sent_ns: u64, length in 16..200_usize,
    ) {
        let trailer = Trailer { run, group, sequence, sent_ns };
        let mut packet = vec![0; length];
        trailer.write(&mut packet);
        prop_assert_eq!(Trailer::parse(&packet), Some(trailer));
    }

    #[test]
    fn a_time_is_in_the_bucket_that_begins_below_it(usec in 0..20_000_000_u64) {
        let mut meter = Meter::default();
        meter.record(usec * MICROSECOND, 0, 0);
        let bucket = meter.stats().histogram.iter().position(|&n| n == 1).expect("one bucket");
        prop_assert!(bucket_usec(bucket) <= usec);
        prop_assert!(bucket + 1 == BUCKETS || usec < bucket_usec(bucket + 1));
    }
}
