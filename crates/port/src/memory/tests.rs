//! Tests of memory ports: links, queues and rings together, in virtual time.

use std::sync::Arc;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;

use super::*;
use crate::registered::REGISTERED_BYTES_MAX;
use crate::{FrameId, Port as _, RxQueue, TxQueue};

fn settings(text: &str) -> LinkSettings {
    text.parse().expect("well formed")
}

/// Sends frames of one length at `now_ns`, numbered from `first` in their last two bytes; returns
/// how many the queue took.
fn send(tx: &mut impl TxQueue, now_ns: u64, len: usize, first: u16, count: u16) -> u16 {
    for number in 0..count {
        let Some(slot) = tx.slot(now_ns, len) else {
            tx.flush();
            return number;
        };
        slot.fill(0);
        slot[len - 2..].copy_from_slice(&(first + number).to_be_bytes());
    }
    tx.flush();
    count
}

/// Receives everything that has arrived by `now_ns`, as (arrival, number).
fn receive(rx: &mut MemoryRx, now_ns: u64) -> Vec<(u64, u16)> {
    let mut got = Vec::new();
    let each = |arrival_ns: u64, bytes: &[u8]| {
        let (_, number) = bytes.split_last_chunk::<2>().expect("a number in each");
        got.push((arrival_ns, u16::from_be_bytes(*number)));
    };
    let count = rx.receive(now_ns, usize::MAX, each);
    assert_eq!(count, got.len());
    got
}

/// The same in bursts.
fn receive_bursts(rx: &mut MemoryRx, now_ns: u64, budget: usize) -> Vec<(u64, u16)> {
    let mut got = Vec::new();
    let count = rx.receive_bursts(now_ns, budget, |burst| {
        assert!(!burst.is_empty());
        for frame in burst {
            let number = frame.bytes.last_chunk().expect("a number in each");
            got.push((frame.at_ns, u16::from_be_bytes(*number)));
        }
    });
    assert_eq!(count, got.len());
    got
}

#[test]
fn bursts_bring_the_same_frames_on_any_link() {
    for text in ["", "delay=1ms", "rate=10gbps", "loss=10%"] {
        let [one_by_one, bursts] = [false, true].map(|in_bursts| {
            let (mut a, mut b) = pair(2, 1, &settings(text));
            send(&mut a.tx[0], 5, 60, 0, 150);
            send(&mut a.tx[1], 6, 400, 1000, 100);
            match in_bursts {
                true => receive_bursts(&mut b.rx, 10_000_000, usize::MAX),
                false => receive(&mut b.rx, 10_000_000),
            }
        });
        assert!(one_by_one.len() > 150, "{text}");
        assert_eq!(one_by_one, bursts, "{text}");
    }
}

#[test]
fn bursts_keep_to_the_budget_and_to_the_link_being_up() {
    let (mut a, mut b) = pair(1, 1, &LinkSettings::default());
    send(&mut a.tx[0], 5, 60, 0, 100);
    assert_eq!(receive_bursts(&mut b.rx, 10, 70).len(), 70);
    assert_eq!(receive_bursts(&mut b.rx, 10, 0).len(), 0);
    b.rx.set_up(false);
    send(&mut a.tx[0], 5, 60, 100, 100);
    assert_eq!(receive_bursts(&mut b.rx, 10, 70).len(), 0);
    assert_eq!(b.rx.lost_packets(), 130);
}

fn numbers(frames: &[(u64, u16)]) -> Vec<u16> {
    frames.iter().map(|&(_, number)| number).collect()
}

#[test]
fn frames_cross_a_pair_in_both_directions() {
    let (mut a, mut b) = pair(1, 1, &LinkSettings::default());
    send(&mut a.tx[0], 5, 60, 100, 3);
    send(&mut b.tx[0], 6, 60, 200, 2);
    assert_eq!(receive(&mut b.rx, 10), [(5, 100), (5, 101), (5, 102)]);
    assert_eq!(receive(&mut a.rx, 10), [(6, 200), (6, 201)]);
    assert_eq!(receive(&mut a.rx, 10), []);
}

#[test]
fn a_port_says_what_it_can_do() {
    let (a, b) = pair_with(2, 1, &settings("rate=10gbps"), &settings("delay=1us"));
    let rates = [&a, &b].map(|port| port.capabilities().line_rate_bps);
    assert_eq!(rates, [10e9, NOMINAL_RATE_BPS]);
    assert_eq!(sink(1).capabilities().line_rate_bps, NOMINAL_RATE_BPS);
    let (tx, _rx) = a.into_queues();
    assert_eq!(tx.len(), 2);
}

#[test]
fn all_queues_are_served_and_each_keeps_its_order() {
    for text in ["", "rate=1gbps"] {
        let (mut a, mut b) = pair(3, 1, &settings(text));
        for (queue, tx) in a.tx.iter_mut().enumerate() {
            send(tx, 0, 60, 1000 * queue as u16, 500);
        }
        let mut got = Vec::new();
        let mut calls = 0;
        while got.len() < 300 {
            let each = |_, bytes: &[u8]| got.push(u16::from_be_bytes([bytes[58], bytes[59]]));
            assert_eq!(b.rx.receive(1_000_000_000, 30, each), 30);
            calls += 1;
        }
        assert_eq!(calls, 10);
        for queue in 0..3u16 {
            let of_queue: Vec<u16> = got.iter().copied().filter(|n| n / 1000 == queue).collect();
            let in_order: Vec<u16> = (0..of_queue.len() as u16)
                .map(|n| 1000 * queue + n)
                .collect();
            assert_eq!(of_queue, in_order);
            assert!((72..=128).contains(&of_queue.len()), "{}", of_queue.len());
        }
    }
}

#[test]
fn a_delayed_frame_arrives_exactly_then() {
    let (mut a, mut b) = pair(1, 1, &settings("delay=1ms"));
    send(&mut a.tx[0], 10, 60, 0, 2);
    send(&mut a.tx[0], 20, 60, 2, 1);
    assert_eq!(b.rx.next_arrival_ns(), Some(1_000_010));
    assert_eq!(receive(&mut b.rx, 1_000_009), []);
    assert_eq!(
        receive(&mut b.rx, 1_000_010),
        [(1_000_010, 0), (1_000_010, 1)]
    );
    assert_eq!(b.rx.next_arrival_ns(), Some(1_000_020));
    assert_eq!(receive(&mut b.rx, 2_000_000), [(1_000_020, 2)]);
    assert_eq!(b.rx.next_arrival_ns(), None);
}

#[test]
fn a_rate_spaces_frames_by_their_time_on_the_wire() {
    // 60 + 24 bytes at 1 Gb/s: 672 ns each.
    let (mut a, mut b) = pair(1, 1, &settings("rate=1gbps:delay=1us"));
    send(&mut a.tx[0], 0, 60, 0, 3);
    assert_eq!(receive(&mut b.rx, 1672), [(1672, 0)]);
    assert_eq!(receive(&mut b.rx, 10_000), [(2344, 1), (3016, 2)]);
}

#[test]
fn queues_share_the_rate_by_the_time_of_sending() {
    let (mut a, mut b) = pair(2, 1, &settings("rate=1gbps"));
    send(&mut a.tx[0], 2000, 60, 0, 2);
    send(&mut a.tx[1], 1000, 60, 10, 2);
    let got = receive(&mut b.rx, 1_000_000);
    assert_eq!(numbers(&got)[..2], [10, 11]);
    let arrivals: Vec<u64> = got.iter().map(|&(arrival_ns, _)| arrival_ns).collect();
    assert_eq!(arrivals, [1672, 2344, 3016, 3688]);
}

#[test]
fn each_direction_has_its_own_settings() {
    let (mut a, mut b) = pair_with(1, 1, &settings("delay=1us"), &settings("delay=2us"));
    send(&mut a.tx[0], 0, 60, 0, 1);
    send(&mut b.tx[0], 0, 60, 1, 1);
    assert_eq!(receive(&mut b.rx, 5000), [(1000, 0)]);
    assert_eq!(receive(&mut a.rx, 5000), [(2000, 1)]);
}

#[test]
fn what_a_link_loses_is_counted_and_the_rest_arrives() {
    let run = || {
        let (mut a, mut b) = pair(1, 1, &settings("loss=10%:seed=3:rate=10gbps"));
        assert_eq!(send(&mut a.tx[0], 0, 60, 0, 5000), 5000);
        let got = receive(&mut b.rx, 1_000_000_000);
        assert_eq!(got.len() as u64 + b.rx.lost_packets(), 5000);
        got
    };
    let first = run();
    assert!((4300..4700).contains(&first.len()), "{}", first.len());
    // A lost frame takes its time on the link like any other.
    for &(arrival_ns, number) in &first {
        assert_eq!(arrival_ns, (672 * (u64::from(number) + 1)).div_ceil(10));
    }
    assert_eq!(first, run());
}

/// What arrives and what is lost of frames that come evenly for two seconds of virtual time.
fn forwarded(text: &str, pps: u64) -> (u64, u64) {
    let (mut a, mut b) = pair(1, 1, &settings(text));
    let template = a.tx[0].register(&[0; 60]).expect("there is room");
    let mut received = 0;
    for number in 0..2 * pps {
        let now_ns = number * 1_000_000_000 / pps;
        assert_eq!(a.tx[0].repeat(now_ns, template, 1), 1);
        if number % 500 == 499 {
            a.tx[0].flush();
            received += b.rx.receive(now_ns, usize::MAX, |_, _| ()) as u64;
        }
    }
    (received, b.rx.lost_packets())
}

#[test]
fn a_link_stands_for_a_device_with_a_limit() {
    let device = "police=100kpps:loss=1%:loss_above=80kpps:burst=20:seed=5";
    assert_eq!(forwarded(device, 80_000), (160_000, 0));
    // Standard deviation of what is lost: sqrt(1.8e5 * 0.01 * 0.99) = 42. The first 171 frames
    // show that there are too many.
    let drawn = {
        let mut loss = link::Loss::new(&settings(device), 0, 0);
        (0..180_000).filter(|_| loss.draw()).collect::<Vec<u64>>()
    };
    let in_overload = drawn.iter().filter(|&&number| number >= 171).count() as u64;
    assert!((1630..1970).contains(&in_overload), "{in_overload}");
    assert_eq!(
        forwarded(device, 90_000),
        (180_000 - in_overload, in_overload)
    );
    // Of 200,000 frames a second half are dropped, but for the burst; loss and policer meet.
    let (received, lost) = forwarded(device, 200_000);
    assert_eq!(received + lost, 400_000);
    assert!((197_500..=198_500).contains(&received), "{received}");
}

#[test]
fn what_is_policed_is_the_same_whoever_sends_it_and_waits_for_nothing() {
    let (mut a, mut b) = pair(2, 1, &settings("police=1kpps:burst=3:delay=1us"));
    send(&mut a.tx[0], 0, 60, 0, 2);
    send(&mut a.tx[1], 0, 60, 10, 2);
    let got = receive(&mut b.rx, 1_000_000);
    assert_eq!(numbers(&got), [0, 10, 1]);
    assert!(got.iter().all(|&(arrival_ns, _)| arrival_ns == 1000));
    assert_eq!(b.rx.lost_packets(), 1);
    send(&mut a.tx[1], 2_000_000, 60, 20, 3);
    assert_eq!(numbers(&receive(&mut b.rx, 3_000_000)), [20, 21]);
}

#[test]
fn both_directions_lose_different_frames() {
    let (mut a, mut b) = pair(1, 1, &settings("loss=50%"));
    send(&mut a.tx[0], 0, 60, 0, 100);
    send(&mut b.tx[0], 0, 60, 0, 100);
    let (at_b, at_a) = (receive(&mut b.rx, 0), receive(&mut a.rx, 0));
    assert_ne!(at_a, at_b);
}

#[test]
fn which_frames_are_lost_does_not_depend_on_the_order_of_queues() {
    let run = |order: [usize; 2]| {
        let (mut a, mut b) = pair(2, 1, &settings("loss=30%:seed=9"));
        let mut got = Vec::new();
        for queue in order {
            send(&mut a.tx[queue], 0, 60, 1000 * queue as u16, 200);
            got.extend(numbers(&receive(&mut b.rx, 0)));
        }
        got.sort_unstable();
        got
    };
    assert_eq!(run([0, 1]), run([1, 0]));
}

#[test]
fn a_link_that_loses_all_still_returns() {
    let (mut a, mut b) = pair(1, 1, &settings("loss=100%"));
    send(&mut a.tx[0], 0, 60, 0, 1000);
    assert_eq!(receive(&mut b.rx, 0), []);
    assert_eq!(b.rx.lost_packets(), 1000);
}

#[test]
fn a_full_ring_holds_the_sender_back_and_loses_nothing() {
    let (mut a, mut b) = pair(1, 1, &LinkSettings::default());
    let mut sent = 0;
    let mut got = Vec::new();
    for _ in 0..40 {
        sent += send(&mut a.tx[0], 0, 1514, sent, 1000);
        if got.len() < 5000 {
            b.rx.receive(0, 100, |_, bytes| {
                got.push(u16::from_be_bytes([bytes[1512], bytes[1513]]));
            });
        }
    }
    assert!(sent < 40_000);
    got.extend(numbers(&receive(&mut b.rx, 0)));
    assert_eq!(got, (0..sent).collect::<Vec<u16>>());
}

#[test]
fn a_ring_holds_64_of_the_longest_frames() {
    let (mut a, _b) = pair(1, 1, &LinkSettings::default());
    assert!(send(&mut a.tx[0], 0, FRAME_BYTES_MAX, 0, 1000) >= 64);
}

#[test]
fn rings_grow_with_what_is_in_flight_up_to_a_limit() {
    assert_eq!(ring_bytes(&settings(""), 4), RING_BYTES);
    assert_eq!(
        ring_bytes(&settings("rate=1gbps:delay=1ms"), 1),
        625_000 + 250_000
    );
    assert_eq!(ring_bytes(&settings("rate=1mbps"), 1), RING_BYTES_MIN);
    assert_eq!(ring_bytes(&settings("rate=100gbps"), 1), RING_BYTES);
    assert_eq!(ring_bytes(&settings("delay=1s"), 1), RING_BYTES_MAX);
    assert_eq!(ring_bytes(&settings("delay=1s"), 4), RING_BYTES_MAX / 4);
    assert_eq!(ring_bytes(&settings("delay=1s"), 1000), RING_BYTES);
}

#[test]
fn a_slow_link_makes_the_sender_wait_soon() {
    let (mut a, _b) = pair(1, 1, &settings("rate=1mbps"));
    let sent = send(&mut a.tx[0], 0, 60, 0, 10_000);
    assert!(
        (900..=1100).contains(&sent),
        "{sent} frames wait for a link of 1 Mb/s"
    );
}

#[test]
fn a_long_fast_link_carries_its_rate() {
    // 1 Gb/s over 10 ms: 1.25 MB in flight, in frames of 64 bytes with FCS.
    let (mut a, mut b) = pair(1, 1, &settings("rate=1gbps:delay=10ms"));
    let template = a.tx[0].register(&[0; 60]).expect("there is room");
    let mut received = 0u64;
    for now_ns in (0..50_000_000).step_by(100_000) {
        a.tx[0].repeat(now_ns, template, 149);
        a.tx[0].flush();
        received += b.rx.receive(now_ns, usize::MAX, |_, _| ()) as u64;
    }
    // 149 frames each 100 us, of which those of the last 10 ms are still in flight.
    assert!((148 * 399..=149 * 400).contains(&received), "{received}");
}

#[test]
fn repeat_sends_what_was_registered() {
    let (mut a, mut b) = pair(1, 1, &LinkSettings::default());
    let tx = &mut a.tx[0];
    let frames: Vec<FrameId> = [60, 100, 124, 125, 1514]
        .map(|len: usize| tx.register(&vec![len as u8; len]).expect("there is room"))
        .to_vec();
    for &frame in &frames {
        assert_eq!(tx.repeat(7, frame, 3), 3);
    }
    tx.flush();
    let mut got = Vec::new();
    b.rx.receive(7, 99, |_, bytes| {
        assert!(bytes.iter().all(|&byte| byte == bytes.len() as u8));
        got.push(bytes.len());
    });
    let expected = [60, 100, 124, 125, 1514]
        .map(|len: usize| [len; 3])
        .concat();
    assert_eq!(got, expected);
}

#[test]
fn registered_frames_have_a_limit_and_give_their_room_back() {
    let (mut a, _b) = pair(1, 1, &LinkSettings::default());
    let tx = &mut a.tx[0];
    let mut frames = Vec::new();
    while let Some(frame) = tx.register(&[0; 9000]) {
        frames.push(frame);
    }
    assert_eq!(frames.len(), REGISTERED_BYTES_MAX / (141 * 64));
    tx.unregister(frames[3]);
    assert_eq!(tx.register(&[1; 9000]), Some(frames[3]));
    assert_eq!(tx.register(&[1; 9000]), None);
}

#[test]
#[should_panic(expected = "only while it is registered")]
fn repeating_what_is_not_registered_is_a_bug() {
    let (mut a, _b) = pair(1, 1, &LinkSettings::default());
    let frame = a.tx[0].register(&[0; 60]).expect("there is room");
    a.tx[0].unregister(frame);
    a.tx[0].repeat(0, frame, 1);
}

#[test]
fn a_link_that_is_down_loses_what_is_sent_and_what_was_in_flight() {
    for text in ["", "delay=1ms", "rate=1gbps:delay=1ms"] {
        let (mut a, mut b) = pair(2, 1, &settings(text));
        send(&mut a.tx[0], 0, 60, 0, 3);
        b.rx.set_up(false);
        assert_eq!(b.rx.lost_packets(), 3, "in flight");
        send(&mut a.tx[1], 10, 60, 100, 4);
        assert_eq!(receive(&mut b.rx, 20), []);
        send(&mut a.tx[0], 30, 60, 3, 2);
        b.rx.set_up(true);
        assert_eq!(b.rx.lost_packets(), 9, "sent while it was down");
        b.rx.set_up(true);
        send(&mut a.tx[0], 5_000_000, 60, 5, 1);
        assert_eq!(numbers(&receive(&mut b.rx, 10_000_000)), [5]);
        assert_eq!(b.rx.lost_packets(), 9);
    }
}

#[test]
fn a_link_that_is_down_never_fills_up() {
    let (mut a, mut b) = pair(1, 1, &LinkSettings::default());
    b.rx.set_up(false);
    for round in 0..10 {
        assert_eq!(send(&mut a.tx[0], round, 1514, 0, 2000), 2000);
        assert_eq!(receive(&mut b.rx, round), []);
    }
    assert_eq!(b.rx.lost_packets(), 20_000);
}

#[test]
fn what_the_link_is_told_to_lose_does_not_change_when_it_was_down() {
    let lost_of_the_last = |down: bool| {
        let (mut a, mut b) = pair(1, 1, &settings("loss=30%:seed=3"));
        b.rx.set_up(!down);
        send(&mut a.tx[0], 0, 60, 0, 100);
        receive(&mut b.rx, 10);
        b.rx.set_up(true);
        send(&mut a.tx[0], 20, 60, 100, 100);
        numbers(&receive(&mut b.rx, 30))
    };
    assert_eq!(lost_of_the_last(false), lost_of_the_last(true));
    assert!(lost_of_the_last(true).len() < 100);
}

#[test]
fn queues_of_a_peer_are_shared_out_over_receive_queues() {
    let (mut a, b) = pair(3, 1, &LinkSettings::default());
    let mut queues = b.rx.split(2);
    for (number, tx) in (0..).zip(&mut a.tx) {
        send(tx, 5, 60, 10 * number, 2);
    }
    let got: Vec<_> = queues.iter_mut().map(|rx| receive(rx, 10)).collect();
    assert_eq!(numbers(&got[0]), [0, 1, 20, 21]);
    assert_eq!(numbers(&got[1]), [10, 11]);
    for rx in &mut queues {
        rx.set_up(false);
    }
    send(&mut a.tx[1], 20, 60, 0, 3);
    let got: Vec<_> = queues.iter_mut().map(|rx| receive(rx, 30)).collect();
    assert_eq!(got, [vec![], vec![]]);
    let lost: Vec<_> = queues.iter().map(MemoryRx::lost_packets).collect();
    assert_eq!(lost, [0, 3]);
}

#[test]
fn what_cannot_be_shared_out_stays_one_receive_queue() {
    for text in ["rate=1gbps", "delay=1us", "loss=1%", "police=1mpps"] {
        let (_a, b) = pair(3, 1, &settings(text));
        assert_eq!(b.rx.split(3).len(), 1, "{text}");
    }
    let (_a, b) = pair(2, 1, &LinkSettings::default());
    assert_eq!(b.rx.split(5).len(), 2, "as many as the peer has queues");
    assert_eq!(sink(1).rx.split(2).len(), 1);
}

#[test]
fn queues_that_are_joined_read_what_their_parts_would_and_keep_their_losses() {
    let (mut a, b) = pair(5, 1, &LinkSettings::default());
    let mut parts = b.rx.split(2);
    parts[0].set_up(false);
    send(&mut a.tx[2], 0, 60, 0, 3);
    assert_eq!(receive(&mut parts[0], 0), []);
    parts[0].set_up(true);
    for (tx, first) in a.tx.iter_mut().zip([10, 20, 30, 40, 50]) {
        send(tx, 0, 60, first, 1);
    }
    parts.reverse();
    let mut whole = MemoryRx::join(parts);
    assert_eq!(whole.lost_packets(), 3);
    let lost = |parts: &[MemoryRx]| parts.iter().map(MemoryRx::lost_packets).sum::<u64>();
    assert_eq!(numbers(&receive(&mut whole, 0)), [10, 20, 30, 40, 50]);
    let mut parts = whole.split(3);
    assert_eq!(lost(&parts), 3);
    for (tx, first) in a.tx.iter_mut().zip([11, 21, 31, 41, 51]) {
        send(tx, 0, 60, first, 1);
    }
    let read = parts.iter_mut().map(|part| numbers(&receive(part, 0)));
    assert_eq!(
        read.collect::<Vec<_>>(),
        [vec![11, 41], vec![21, 51], vec![31]]
    );
}

/// How a test receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    OneByOne,
    Bursts,
    Split,
}

/// Receives everything that has arrived by `now_ns`, whole.
fn receive_whole(rx: &mut MemoryRx, now_ns: u64, way: Way) -> Vec<(u64, Vec<u8>)> {
    let mut got = Vec::new();
    match way {
        Way::OneByOne => rx.receive(now_ns, usize::MAX, |at, bytes| {
            got.push((at, bytes.to_vec()))
        }),
        Way::Bursts => rx.receive_bursts(now_ns, usize::MAX, |burst| {
            got.extend(
                burst
                    .iter()
                    .map(|frame| (frame.at_ns, frame.bytes.to_vec())),
            );
        }),
        Way::Split => rx.receive_split(now_ns, usize::MAX, |burst| {
            let frames = burst.iter();
            got.extend(frames.map(|frame| (frame.at_ns, frame.bytes(&mut Vec::new()).to_vec())));
        }),
    };
    got
}

#[test]
fn a_shared_payload_is_that_of_its_frame_on_any_link_and_however_it_is_read() {
    let bytes: Arc<[u8]> = (0..5000).map(|i| (i * 7) as u8).collect();
    let links = [
        "",
        "delay=1ms",
        "rate=10gbps",
        "loss=10%",
        "police=100kpps:burst=50",
    ];
    for text in links {
        let run = |is_shared: bool, way: Way| {
            let (mut a, mut b) = pair(1, 1, &settings(text));
            let tx = &mut a.tx[0];
            for number in 0..200 {
                let (head, offset, len) = ([number as u8; 54], number * 7, 200 + number);
                let slice = &bytes[offset..offset + len];
                if is_shared && number % 5 != 0 {
                    let payload = SharedPayload {
                        bytes: &bytes,
                        offset,
                        len,
                        sum: Sum::of(slice).folded(),
                    };
                    let slot = tx.slot_sharing(5, head.len(), payload);
                    slot.expect("there is room").copy_from_slice(&head);
                } else {
                    let slot = tx.slot(5, head.len() + len).expect("there is room");
                    slot.copy_from_slice(&[&head, slice].concat());
                }
            }
            tx.flush();
            let got = receive_whole(&mut b.rx, 10_000_000, way);
            (got, b.rx.lost_packets())
        };
        let expected = run(false, Way::OneByOne);
        assert!(expected.0.len() > 40, "{text}");
        for way in [Way::OneByOne, Way::Bursts, Way::Split] {
            assert_eq!(run(true, way), expected, "{text}, {way:?}");
        }
    }
}

#[test]
fn a_link_that_is_down_loses_frames_and_learns_of_payloads() {
    let (mut a, mut b) = pair(1, 1, &settings(""));
    let bytes: Arc<[u8]> = vec![3; 500].into();
    let payload = SharedPayload {
        bytes: &bytes,
        offset: 100,
        len: 300,
        sum: Sum::of(&bytes[100..400]).folded(),
    };
    let send = |tx: &mut RingTx| {
        let head = tx.slot_sharing(0, 54, payload).expect("there is room");
        head.fill(9);
        tx.flush();
    };
    b.rx.set_up(false);
    send(&mut a.tx[0]);
    assert_eq!(receive_whole(&mut b.rx, 1, Way::Split), []);
    assert_eq!(b.rx.lost_packets(), 1);
    b.rx.set_up(true);
    // This one only has the number of what the lost one told of.
    send(&mut a.tx[0]);
    let got = receive_whole(&mut b.rx, 1, Way::Split);
    assert_eq!(got, [(0, [vec![9; 54], vec![3; 300]].concat())]);
}
