//! Captures that are sent again: times, rounds, addresses, directions; and files that cannot be.

use std::num::NonZeroU32;

use allosaur_engine::stateless::{DRAIN_MAX, LATE_MAX};
use allosaur_engine::stream::CoreProgram;
use allosaur_engine::stream::recording::{Pace, RecordingError, both_ways, one_way};
use allosaur_engine::stream::replay::{Macs, Replay};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_engine::{ProfileEvent, StatelessCommand};
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_packet::file::pcapng::PcapngWriter;
use allosaur_packet::file::{LinkType, Resolution};
use proptest::prelude::*;

use crate::bench::{Bench, KEY};

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
const C: [u8; 6] = [2, 0, 0, 0, 0, 0xc];
const ALL: [u8; 6] = [0xff; 6];

/// As recorded, once.
const AS_IT_WAS: Pace = Pace {
    gap_ns: None,
    gap_min_ns: 0.0,
    speedup: 1.0,
    rounds: NonZeroU32::new(1),
};

fn packet(from: [u8; 6], to: [u8; 6], number: u8) -> Vec<u8> {
    let mut packet = [&to[..], &from, &[0x88, 0xb5]].concat();
    packet.resize(70, number);
    packet
}

/// An IPv4 packet of hosts `192.0.2.x`, all with the same MAC addresses.
fn ip_packet(from: u8, to: u8, number: u8) -> Vec<u8> {
    let mut packet = [
        &B[..],
        &A,
        &[8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0],
    ]
    .concat();
    packet.extend([192, 0, 2, from, 192, 0, 2, to]);
    packet.resize(70, number);
    packet
}

fn pcap_of(packets: &[(Nanos, Vec<u8>)]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Resolution::Nanoseconds);
    for (at, packet) in packets {
        writer.write_frame(*at, packet).expect("a small time");
    }
    writer.into_bytes()
}

/// Five packets, the last byte of each is its number. The recorder's clock is set back once.
fn sample() -> Vec<u8> {
    let times = [7 * SECOND, 0, 3_000, 3_000, 2_500].into_iter().enumerate();
    let start = |i| if i == 0 { 0 } else { 7 * SECOND + 1_000 };
    let packets = times.map(|(i, at)| (start(i) + at, packet(A, B, i as u8)));
    pcap_of(&packets.collect::<Vec<_>>())
}

fn replay(pace: Pace) -> Replay {
    one_way(&sample(), &pace, Macs::default()).expect("the capture is right")
}

fn start(bench: &mut Bench, replay: Replay, duration: Option<Nanos>) {
    let start = StatelessCommand::StartProfile {
        port: 0,
        profile: KEY,
        program: Box::new(CoreProgram::from(replay)),
        start_at: 1_000,
        duration,
    };
    bench.engine.handle_command(0, start, &mut bench.tx_queues);
}

/// When each packet leaves after the start, in nanoseconds, and its number.
fn sent_of(replay: Replay, duration: Option<Nanos>) -> Vec<(Nanos, u8)> {
    let mut bench = Bench::new();
    start(&mut bench, replay, duration);
    bench.run_until(10 * SECOND);
    let done = ProfileEvent::ProfileDone {
        port: 0,
        profile: KEY,
        at: 0,
    };
    let events = bench.events();
    let kinds = events.iter().map(std::mem::discriminant);
    assert_eq!(kinds.collect::<Vec<_>>(), [std::mem::discriminant(&done)]);
    assert!(bench.engine.is_idle() && bench.engine.poll_retired().is_some());
    let sent = bench.tx_queues.take();
    let numbers = sent.iter().map(|sent| (sent.at - 1_000, sent.bytes[69]));
    numbers.collect()
}

fn times_of(pace: Pace) -> Vec<Nanos> {
    let sent = sent_of(replay(pace), None);
    sent.into_iter().map(|(at, _)| at).collect()
}

#[test]
fn times_that_go_back_stretch_nothing() {
    let sent = |times: &[Nanos]| {
        let packets = (0..).zip(times);
        let packets = packets.map(|(number, at)| (*at, packet(A, B, number)));
        let file = pcap_of(&packets.collect::<Vec<_>>());
        let replay = one_way(&file, &AS_IT_WAS, Macs::default()).expect("the capture is right");
        let early = replay.early_packets;
        let mut bench = Bench::new();
        start(&mut bench, replay, None);
        bench.run_until(100 * SECOND);
        let sent = bench.tx_queues.take();
        (sent.iter().map(|p| p.at - 1_000).collect::<Vec<_>>(), early)
    };
    // Out of order: the times behind hold.
    let ms = |times: &[Nanos]| times.iter().map(|ms| ms * MILLISECOND).collect::<Vec<_>>();
    let mixed = sent(&ms(&[0, 5, 3, 4, 9, 8, 10]));
    assert_eq!(mixed, (ms(&[0, 5, 5, 5, 9, 9, 10]), 3));
    // A clock that was set back, twice: the gaps behind hold.
    let set = sent(&ms(&[9_000, 9_001, 500, 502, 100_000, 7, 10]));
    assert_eq!(set, (ms(&[0, 1, 1, 3, 99_501, 99_501, 99_504]), 4));
}

#[test]
fn a_capture_that_was_cut_is_refused() {
    let mut writer = PcapWriter::with_link(Resolution::Nanoseconds, LinkType::ETHERNET, 40);
    for number in 0..3 {
        let whole = packet(A, B, number);
        writer.write_frame(0, &whole[..40]).expect("a small time");
        writer.write_frame(0, &whole).expect("a small time");
    }
    let file = writer.into_bytes();
    let words = "of 6 packets 3 lack bytes, packet 1 has 40 of 70: capture whole packets";
    let refused = one_way(&file, &AS_IT_WAS, Macs::default()).map(drop);
    assert!(
        matches!(&refused, Err(error) if error.to_string().contains(words)),
        "{refused:?}"
    );
    let both = both_ways(&file, &AS_IT_WAS, [Macs::default(); 2]).map(drop);
    assert!(both.is_err(), "{both:?}");
}

#[test]
fn the_recorded_times_are_kept_whatever_else() {
    let sent = sent_of(replay(AS_IT_WAS), None);
    assert_eq!(
        sent,
        [(0, 0), (1_000, 1), (4_000, 2), (4_000, 3), (4_000, 4)]
    );
}

#[test]
fn gaps_are_divided_then_raised_then_repeated() {
    let faster = Pace {
        speedup: 2.0,
        ..AS_IT_WAS
    };
    assert_eq!(times_of(faster), [0, 500, 2_000, 2_000, 2_000]);
    let raised = Pace {
        gap_min_ns: 700.0,
        ..faster
    };
    assert_eq!(times_of(raised), [0, 700, 2_200, 2_900, 3_600]);
    let twice = Pace {
        rounds: NonZeroU32::new(2),
        ..raised
    };
    assert_eq!(
        times_of(twice),
        [
            0, 700, 2_200, 2_900, 3_600, 4_300, 5_000, 6_500, 7_200, 7_900
        ]
    );
    let fixed = Pace {
        gap_ns: Some(999.0),
        ..faster
    };
    // Half nanoseconds add up.
    assert_eq!(times_of(fixed), [0, 499, 999, 1_498, 1_998]);
}

#[test]
fn a_duration_ends_what_would_go_on_forever() {
    let forever = Pace {
        gap_ns: Some(100_000.0),
        rounds: None,
        ..AS_IT_WAS
    };
    let sent = sent_of(replay(forever), Some(MILLISECOND));
    let expected: Vec<(Nanos, u8)> = (0..10).map(|i| (i * 100_000, (i % 5) as u8)).collect();
    assert_eq!(sent, expected);
    // One that ends earlier is over then.
    let sent = sent_of(replay(AS_IT_WAS), Some(SECOND));
    assert_eq!(sent.len(), 5);
}

#[test]
fn a_late_core_sends_a_counted_replay_whole_and_at_its_planned_times() {
    let paced = Pace {
        gap_ns: Some(1e6),
        rounds: NonZeroU32::new(40),
        ..AS_IT_WAS
    };
    let mut bench = Bench::new();
    start(&mut bench, replay(paced), None);
    bench.catch_up(5 * SECOND);
    let sent = bench.tx_queues.take();
    assert_eq!(sent.len(), 200);
    assert_eq!(sent[199].at, 1_000 + 199 * MILLISECOND);
    assert_eq!(bench.engine.counters()[0].missed_packets, 0);
}

#[test]
fn a_late_core_gives_up_what_has_no_end() {
    let forever = Pace {
        gap_ns: Some(1e6),
        rounds: None,
        ..AS_IT_WAS
    };
    let mut bench = Bench::new();
    start(&mut bench, replay(forever), None);
    let now = 5 * SECOND + 1_000;
    bench.catch_up(now);
    let late = LATE_MAX / MILLISECOND;
    let counters = bench.engine.counters()[0];
    assert_eq!(counters.sent.packets + counters.missed_packets, 5_001);
    assert_eq!(counters.sent.packets, late);
    assert_eq!(bench.tx_queues.sent()[0].at, now - LATE_MAX + MILLISECOND);
}

#[test]
fn the_end_of_a_run_counts_what_could_not_leave() {
    let mut bench = Bench::new();
    start(&mut bench, replay(AS_IT_WAS), Some(3_000));
    bench.tx_queues.limit(0, 1);
    bench.engine.poll_transmit(2_000, &mut bench.tx_queues);
    assert_eq!(bench.engine.counters()[0].queue_full, 1);
    // Two of five were due within the duration, and one of them left.
    bench
        .engine
        .poll_transmit(4_000 + DRAIN_MAX, &mut bench.tx_queues);
    let counters = bench.engine.counters()[0];
    assert_eq!((counters.sent.packets, counters.missed_packets), (1, 1));
    assert!(matches!(
        bench.events()[..],
        [ProfileEvent::ProfileDone { .. }]
    ));
}

#[test]
fn a_full_queue_loses_nothing() {
    let mut bench = Bench::new();
    start(&mut bench, replay(AS_IT_WAS), None);
    for _ in 0..20 {
        bench.tx_queues.limit(0, 1);
        bench.engine.poll_transmit(SECOND, &mut bench.tx_queues);
    }
    let numbers: Vec<u8> = bench.tx_queues.take().iter().map(|s| s.bytes[69]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert!(bench.engine.is_idle());
}

#[test]
fn a_stop_leaves_nothing_behind() {
    let mut bench = Bench::new();
    start(&mut bench, replay(AS_IT_WAS), None);
    bench.engine.poll_transmit(1_000, &mut bench.tx_queues);
    let stop = StatelessCommand::StopProfile {
        port: 0,
        profile: KEY,
    };
    bench
        .engine
        .handle_command(1_500, stop, &mut bench.tx_queues);
    assert!(matches!(
        bench.events()[..],
        [ProfileEvent::ProfileStopped { .. }]
    ));
    assert!(bench.engine.is_idle() && bench.engine.poll_timeout().is_none());
    assert_eq!(bench.tx_queues.take().len(), 1);
}

#[test]
fn frames_get_the_addresses_of_the_port_and_are_padded() {
    let macs = Macs {
        source: Some(C),
        destination: None,
    };
    let short = pcap_of(&[(0, packet(A, B, 9)[..20].to_vec())]);
    let replay = one_way(&short, &AS_IT_WAS, macs).expect("the capture is right");
    let mut bench = Bench::new();
    start(&mut bench, replay, None);
    bench.catch_up(SECOND);
    let expected = [&B[..], &C, &[0x88, 0xb5], &[9; 6], &[0; 40]].concat();
    assert_eq!(bench.tx_queues.take()[0].bytes, expected);
    let sent = bench.engine.counters()[0].sent;
    assert_eq!((sent.packets, sent.bytes, sent.by_size[0]), (1, 64, 1));
}

/// The numbers of the packets that go each way, with their times in microseconds.
fn ways(bytes: &[u8]) -> Result<[Vec<(Nanos, u8)>; 2], RecordingError> {
    let replays = both_ways(bytes, &AS_IT_WAS, [Macs::default(); 2])?;
    Ok(replays.map(|replay| {
        let sent = sent_of(replay, None).into_iter();
        sent.map(|(at, number)| (at / MICROSECOND, number))
            .collect()
    }))
}

#[test]
fn directions_are_told_apart_by_who_talks_to_whom() {
    let talk = [
        (0, packet(A, B, 0)),
        (1_000, packet(B, A, 1)),
        (2_000, packet(B, ALL, 2)),
        (3_000, packet(C, B, 3)),
        (4_000, packet(B, C, 4)),
        (5_000, packet(A, ALL, 5)),
    ];
    let [first, second] = ways(&pcap_of(&talk)).expect("both directions");
    assert_eq!(first, [(0, 0), (3, 3), (5, 5)]);
    assert_eq!(second, [(1, 1), (2, 2), (4, 4)]);
}

#[test]
fn ip_addresses_decide_where_mac_addresses_do_not() {
    let talk = [
        (0, packet(A, B, 0)),
        (1_000, ip_packet(1, 2, 1)),
        (2_000, ip_packet(2, 1, 2)),
        (3_000, ip_packet(2, 7, 3)),
        (4_000, ip_packet(7, 2, 4)),
    ];
    let [first, second] = ways(&pcap_of(&talk)).expect("both directions");
    assert_eq!(first, [(0, 0), (1, 1), (4, 4)]);
    assert_eq!(second, [(2, 2), (3, 3)]);
}

#[test]
fn two_interfaces_are_two_directions() {
    let mut bytes = PcapngWriter::new(LinkType::ETHERNET).into_bytes();
    let interface = &bytes[bytes.len() - 32..].to_vec();
    let described = interface[..4] == [1, 0, 0, 0];
    assert!(
        described,
        "the writer's interface block has 32 bytes: {interface:02x?}"
    );
    bytes.extend(interface);
    let header = bytes.len();
    let mut writer = PcapngWriter::new(LinkType::ETHERNET);
    writer.clear();
    for number in 0..4 {
        let from = writer.bytes().len();
        writer.write_frame(u64::from(number) * 1_000, &packet(A, B, number));
        bytes.extend(&writer.bytes()[from..]);
        let block = bytes.len() - (writer.bytes().len() - from);
        bytes[block + 8] = 1 - number % 2;
    }
    assert!(bytes.len() > header);
    let [first, second] = ways(&bytes).expect("both directions");
    assert_eq!(first, [(1, 1), (3, 3)]);
    assert_eq!(second, [(0, 0), (2, 2)]);
}

/// A record of ERF at a time in 2^-32 seconds; the frame has an FCS of zeros.
fn erf_record(time: u64, interface: u8, frame: &[u8]) -> Vec<u8> {
    let wire_bytes = frame.len() as u16 + 4;
    let mut record = time.to_le_bytes().to_vec();
    record.extend([2, 4 | interface]);
    record.extend((18 + wire_bytes).to_be_bytes());
    record.extend([0, 0]);
    record.extend(wire_bytes.to_be_bytes());
    record.extend([0, 0]);
    record.extend(frame);
    record.extend([0; 4]);
    record
}

#[test]
fn two_interfaces_of_an_erf_file_are_two_directions() {
    // Half a microsecond apart; by their addresses all would go one way.
    let record = |number: u8| {
        let (time, interface) = (u64::from(number) * 2148, 3 - number % 2);
        erf_record(time, interface, &packet(A, B, number))
    };
    let bytes = (0..4).flat_map(record).collect::<Vec<u8>>();
    let [first, second] = ways(&bytes).expect("both directions");
    let numbers = |sent: &[(Nanos, u8)]| sent.iter().map(|(_, n)| *n).collect::<Vec<_>>();
    assert_eq!(
        (numbers(&first), numbers(&second)),
        (vec![1, 3], vec![0, 2])
    );
    let all = one_way(&bytes, &AS_IT_WAS, Macs::default()).expect("it can be sent");
    let frames = [0, 1, 2, 3].map(|number| packet(A, B, number));
    assert!(
        all.packets().eq(frames.iter().map(Vec::as_slice)),
        "no FCS is sent"
    );
}

fn refusal(bytes: &[u8], pace: Pace) -> String {
    let one = one_way(bytes, &pace, Macs::default()).expect_err("it cannot be sent");
    let both = both_ways(bytes, &pace, [Macs::default(); 2]).expect_err("it cannot be sent");
    if !matches!(both, RecordingError::OneWay) {
        assert_eq!(one, both);
    }
    one.to_string()
}

#[test]
fn captures_that_cannot_be_sent_are_named() {
    let mut raw = PcapWriter::with_link(Resolution::Nanoseconds, LinkType::RAW_IP, 100);
    raw.write_frame(0, &[0x45; 40]).expect("a small time");
    let whole = sample();
    let size = |bytes| pcap_of(&[(0, packet(A, B, 0)), (1, vec![0; bytes])]);
    let cases = [
        (Vec::new(), "this is an empty file"),
        (b"hello".to_vec(), "begins with 68 65 6c 6c"),
        (
            whole[..whole.len() - 1].to_vec(),
            "the file ends inside the data of a record",
        ),
        (
            whole[..30].to_vec(),
            "the file ends inside the header of a record",
        ),
        (
            raw.into_bytes(),
            "packet 0 has link type raw ip: only ethernet",
        ),
        (pcap_of(&[]), "the capture holds no packets"),
        (
            PcapngWriter::new(LinkType::ETHERNET).into_bytes(),
            "the capture holds no packets",
        ),
        (size(13), "packet 1 is 13 bytes; it must be 14 to 9238"),
        (size(9239), "packet 1 is 9239 bytes; it must be 14 to 9238"),
    ];
    for (bytes, text) in cases {
        let said = refusal(&bytes, AS_IT_WAS);
        assert!(said.contains(text), "{said}");
    }
    assert!(one_way(&size(14), &AS_IT_WAS, Macs::default()).is_ok());
    assert!(one_way(&size(9238), &AS_IT_WAS, Macs::default()).is_ok());
}

#[test]
fn paces_that_make_no_sense_are_named() {
    let slow = Pace {
        speedup: 1e-15,
        ..AS_IT_WAS
    };
    assert!(refusal(&sample(), slow).starts_with("packet 1 would leave more than a year"));
    let timeless = Pace {
        gap_ns: Some(0.0),
        rounds: None,
        ..AS_IT_WAS
    };
    assert!(refusal(&sample(), timeless).contains("forever: give 'ipg_usec'"));
    let one = both_ways(&sample(), &AS_IT_WAS, [Macs::default(); 2]);
    let said = one.expect_err("one way").to_string();
    assert!(said.contains("go in one direction"), "{said}");
}

proptest! {
    /// Whatever the bytes are, they are sent or refused; also captures with a few bytes changed.
    #[test]
    fn any_bytes_are_sent_or_refused(
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<proptest::sample::Index>(),
        kind in 0..3,
    ) {
        let mut bytes = match kind {
            0 => noise,
            1 => sample(),
            _ => {
                let mut writer = PcapngWriter::new(LinkType::ETHERNET);
                writer.write_frame(0, &packet(A, B, 0));
                writer.write_frame(9, &ip_packet(1, 2, 0));
                writer.into_bytes()
            }
        };
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        let one = one_way(&bytes, &AS_IT_WAS, Macs::default());
        let both = both_ways(&bytes, &AS_IT_WAS, [Macs::default(); 2]);
        match (one, both) {
            (Ok(one), Ok([first, second])) => {
                prop_assert_eq!(one.frames(), first.frames() + second.frames());
            }
            (Ok(one), Err(error)) => {
                prop_assert!(one.frames() > 0);
                prop_assert_eq!(error, RecordingError::OneWay);
            }
            (Err(_), both) => prop_assert!(both.is_err()),
        }
    }
}
