//! Tests of the ring: against a queue, and between two threads.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SplitFrame;
use proptest::prelude::*;

use super::consumer::BURST;
use super::payloads::PAYLOADS_MAX;
use super::*;
use crate::RxFrame;

/// What a test does to a ring.
#[derive(Clone, Debug)]
enum Step {
    Slot {
        now_ns: u64,
        len: usize,
    },
    Repeat {
        now_ns: u64,
        len: usize,
        count: u32,
    },
    Share {
        now_ns: u64,
        head_bytes: usize,
        payload: usize,
        offset: usize,
        len: usize,
    },
    Forget,
    Flush,
    Drain {
        budget: usize,
    },
    DrainBursts {
        budget: usize,
    },
    DrainSplit {
        budget: usize,
    },
    PeekAndPop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![
        4 => 0..=200usize,
        2 => 0..=1600usize,
        1 => 0..=FRAME_BYTES_MAX,
    ];
    // Times repeat, so that not every frame needs a time record.
    let now_ns = 0..4u64;
    let step = prop_oneof![
        4 => (now_ns.clone(), len.clone()).prop_map(|(now_ns, len)| Step::Slot { now_ns, len }),
        3 => (now_ns.clone(), len, 0..100u32)
            .prop_map(|(now_ns, len, count)| Step::Repeat { now_ns, len, count }),
        5 => (now_ns, 14..200usize, 0..PAYLOADS, 0..500usize, 1..1500usize).prop_map(
            |(now_ns, head_bytes, payload, offset, len)| Step::Share {
                now_ns,
                head_bytes,
                payload,
                offset,
                len,
            }
        ),
        1 => Just(Step::Forget),
        2 => Just(Step::Flush),
        2 => (0..200usize).prop_map(|budget| Step::Drain { budget }),
        2 => (0..200usize).prop_map(|budget| Step::DrainBursts { budget }),
        2 => (0..200usize).prop_map(|budget| Step::DrainSplit { budget }),
        1 => Just(Step::PeekAndPop),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 300 })
}

type Frame = (u64, Vec<u8>);

/// Payloads that frames share in a test, of 2,000 bytes.
const PAYLOADS: usize = 3;

/// A ring and what should be in it.
struct Model {
    producer: RingTx,
    consumer: Consumer,
    payloads: Vec<Arc<[u8]>>,
    /// Published, then not yet.
    visible: VecDeque<Frame>,
    hidden: Vec<Frame>,
    number: u8,
}

impl Model {
    fn new() -> Model {
        let (producer, consumer) = ring(0);
        let payload = |number: usize| (0..2000).map(|i| (i * (7 + number)) as u8).collect();
        Model {
            producer: RingTx::new(producer),
            consumer,
            payloads: (0..PAYLOADS).map(payload).collect(),
            visible: VecDeque::new(),
            hidden: Vec::new(),
            number: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Slot { now_ns, len } => self.slot(now_ns, len),
            Step::Repeat { now_ns, len, count } => self.repeat(now_ns, len, count),
            Step::Share {
                now_ns,
                head_bytes,
                payload,
                offset,
                len,
            } => self.share(now_ns, head_bytes, payload, offset..offset + len),
            Step::Forget => {
                self.producer.forget_payloads();
                // Nobody else has the new ones, at whatever place they are.
                for payload in &mut self.payloads {
                    *payload = payload.iter().map(|byte| !byte).collect();
                }
            }
            Step::Flush => {
                self.producer.flush();
                self.visible.extend(self.hidden.drain(..));
            }
            Step::Drain { budget } => self.drain(budget, |ring, got| {
                ring.drain(budget, &mut |sent_ns, bytes: &[u8]| {
                    got.push((sent_ns, bytes.to_vec()));
                })
            }),
            Step::DrainBursts { budget } => self.drain(budget, |ring, got| {
                ring.drain_bursts(budget, &mut |burst: &[RxFrame<'_>]| {
                    assert!((1..=BURST).contains(&burst.len()));
                    let frames = burst
                        .iter()
                        .map(|frame| (frame.at_ns, frame.bytes.to_vec()));
                    got.extend(frames);
                })
            }),
            Step::DrainSplit { budget } => self.drain(budget, |ring, got| {
                ring.drain_split(budget, &mut |burst: &[SplitFrame<'_>]| {
                    assert!((1..=BURST).contains(&burst.len()));
                    for frame in burst {
                        assert_eq!(frame.sum().folded(), Sum::of(frame.payload).folded());
                        got.push((frame.at_ns, frame.bytes(&mut Vec::new()).to_vec()));
                    }
                })
            }),
            Step::PeekAndPop => self.peek_and_pop(),
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        (0..len)
            .map(|i| self.number.wrapping_mul(i as u8 | 1))
            .collect()
    }

    fn slot(&mut self, now_ns: u64, len: usize) {
        let bytes = self.bytes(len);
        let slot = self.producer.slot(now_ns, len);
        match slot {
            Some(slot) => slot.copy_from_slice(&bytes),
            None => {
                self.expect_little_room(lines_of(len));
                return;
            }
        }
        self.hidden.push((now_ns, bytes));
    }

    fn share(&mut self, now_ns: u64, head_bytes: usize, number: usize, of: Range<usize>) {
        let mut bytes = self.bytes(head_bytes);
        let payload = SharedPayload {
            bytes: &self.payloads[number],
            offset: of.start,
            len: of.len(),
            sum: Sum::of(&self.payloads[number][of]).folded(),
        };
        match self.producer.slot_sharing(now_ns, head_bytes, payload) {
            Some(head) => head.copy_from_slice(&bytes),
            None => {
                // There may have been no room for what tells of the payload: then it would be copied.
                let lines = lines_of(head_bytes + payload.len);
                self.expect_little_room(lines.max(split_lines_of(head_bytes)));
                return;
            }
        }
        bytes.extend_from_slice(payload.slice());
        self.hidden.push((now_ns, bytes));
    }

    fn repeat(&mut self, now_ns: u64, len: usize, count: u32) {
        let bytes = self.bytes(len);
        let sent = self
            .producer
            .ring
            .repeat(now_ns, &Record::new(&bytes), count);
        assert!(sent <= count);
        if sent < count {
            self.expect_little_room(lines_of(len));
        }
        self.hidden
            .extend((0..sent).map(|_| (now_ns, bytes.clone())));
    }

    /// A ring may say that it is full only when little more than the record is free: the record,
    /// a time in front of it, and what is left unused at the end of the memory.
    fn expect_little_room(&self, lines: u64) {
        let ring = &self.producer.ring;
        let used = ring.position - self.consumer.released;
        assert!(ring.capacity - used < 2 * (lines + 1));
    }

    fn drain(
        &mut self,
        budget: usize,
        drain: impl FnOnce(&mut Consumer, &mut Vec<Frame>) -> usize,
    ) {
        let expected: Vec<Frame> = self
            .visible
            .drain(..budget.min(self.visible.len()))
            .collect();
        let mut got = Vec::new();
        let taken = drain(&mut self.consumer, &mut got);
        assert_eq!(taken, got.len());
        assert_eq!(got, expected);
    }

    fn peek_and_pop(&mut self) {
        self.consumer.refresh();
        let front = self.consumer.peek();
        let got = front.map(|front| (front.at_ns, front.bytes(&mut Vec::new()).to_vec()));
        assert_eq!(got, self.visible.pop_front());
        self.consumer.pop();
        self.consumer.release();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_ring_is_a_queue(steps in steps()) {
        let mut model = Model::new();
        for step in steps {
            model.take(step);
        }
        model.take(Step::Flush);
        model.take(Step::Drain { budget: usize::MAX });
        // Nothing is left, so the longest frame fits again wherever the end of the memory is.
        prop_assert!(model.producer.slot(9, FRAME_BYTES_MAX).is_some());
    }
}

/// Sends `head` in front of all of `payload`.
fn share(tx: &mut RingTx, head: &[u8], payload: &Arc<[u8]>) -> bool {
    let payload = SharedPayload {
        bytes: payload,
        offset: 0,
        len: payload.len(),
        sum: Sum::of(payload).folded(),
    };
    let slot = tx.slot_sharing(0, head.len(), payload);
    slot.map(|slot| slot.copy_from_slice(head)).is_some()
}

#[test]
fn a_payload_is_kept_until_it_is_forgotten_and_its_frames_are_read() {
    let (producer, mut consumer) = ring(1 << 16);
    let mut tx = RingTx::new(producer);
    let payload: Arc<[u8]> = vec![5; 1000].into();
    assert!((0..3).all(|_| share(&mut tx, b"head", &payload)));
    // The sender, and what tells the receiver of it.
    assert_eq!(Arc::strong_count(&payload), 3);
    tx.forget_payloads();
    tx.flush();
    assert_eq!(Arc::strong_count(&payload), 2);
    let taken = consumer.drain_split(usize::MAX, &mut |burst: &[SplitFrame<'_>]| {
        for frame in burst {
            assert_eq!((frame.head, frame.payload), (&b"head"[..], &payload[..]));
        }
    });
    assert_eq!(taken, 3);
    assert_eq!(Arc::strong_count(&payload), 1, "nobody has it any more");
    // Known again, by the first number.
    assert!(share(&mut tx, b"again", &payload));
    tx.flush();
    let mut copy = Vec::new();
    consumer.drain(9, &mut |_, bytes: &[u8]| copy.extend_from_slice(bytes));
    assert_eq!(copy, [b"again".to_vec(), payload.to_vec()].concat());
    drop((tx, consumer));
    assert_eq!(Arc::strong_count(&payload), 1);
}

#[test]
fn frames_of_more_payloads_than_are_known_have_their_bytes() {
    let (producer, mut consumer) = ring(1 << 20);
    let mut tx = RingTx::new(producer);
    let payload = |number: usize| -> Arc<[u8]> { vec![number as u8; 200].into() };
    let payloads: Vec<_> = (0..PAYLOADS_MAX + 1).map(payload).collect();
    for (number, payload) in payloads.iter().enumerate() {
        assert!(share(&mut tx, &[number as u8], payload));
        tx.flush();
        let mut is_split = None;
        consumer.drain_split(9, &mut |burst: &[SplitFrame<'_>]| {
            is_split = Some(burst[0].is_split());
            assert_eq!(burst[0].bytes(&mut Vec::new()), [number as u8; 201]);
        });
        assert_eq!(is_split, Some(number < PAYLOADS_MAX));
    }
}

#[test]
fn a_full_ring_hears_later_what_is_forgotten() {
    let (producer, mut consumer) = ring(1 << 16);
    let mut tx = RingTx::new(producer);
    let payload: Arc<[u8]> = vec![5; 1000].into();
    while share(&mut tx, &[1; 60], &payload) {}
    while tx.slot(0, 60).is_some() {}
    tx.flush();
    tx.forget_payloads();
    tx.flush();
    // The sender let go at once, the receiver has not come to it.
    assert_eq!(Arc::strong_count(&payload), 2);
    assert!(!share(&mut tx, &[1; 60], &payload));
    assert!(consumer.drain(usize::MAX, &mut |_, _| ()) > 100);
    assert!(share(&mut tx, b"head", &payload));
    tx.flush();
    assert_eq!(
        consumer.drain(9, &mut |_, bytes| assert_eq!(bytes.len(), 1004)),
        1
    );
    assert_eq!(Arc::strong_count(&payload), 3);
}

#[test]
#[should_panic(expected = "out of range")]
fn a_payload_that_reaches_too_far_is_refused() {
    let (producer, _consumer) = ring(1 << 16);
    let bytes: Arc<[u8]> = vec![5; 100].into();
    let payload = SharedPayload {
        bytes: &bytes,
        offset: 50,
        len: 51,
        sum: 0,
    };
    RingTx::new(producer).slot_sharing(0, 60, payload);
}

#[test]
fn a_ring_holds_all_its_lines() {
    let (mut producer, mut consumer) = ring(1 << 16);
    let record = Record::new(&[7; 60]);
    assert_eq!(producer.repeat(0, &record, u32::MAX), 1024);
    assert!(producer.slot(0, 0).is_none());
    assert_eq!(consumer.drain(usize::MAX, &mut |_, _| ()), 0, "not flushed");
    producer.flush();
    assert_eq!(consumer.drain(1000, &mut |_, _| ()), 1000);
    assert_eq!(producer.repeat(0, &record, 2000), 1000);
    producer.flush();
    assert_eq!(
        consumer.drain(usize::MAX, &mut |_, bytes| assert_eq!(bytes, [7; 60])),
        1024
    );
}

#[test]
fn a_panic_of_the_reader_leaves_the_frame_in_place() {
    let (mut producer, mut consumer) = ring(0);
    producer.repeat(3, &Record::new(b"frame"), 1);
    producer.flush();
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        consumer.drain(1, &mut |_, _| panic!("as the test wants"));
    }));
    assert!(panics.is_err());
    let mut got = Vec::new();
    consumer.drain(9, &mut |sent_ns, bytes: &[u8]| {
        got.push((sent_ns, bytes.to_vec()))
    });
    assert_eq!(got, [(3, b"frame".to_vec())]);
}

#[test]
#[should_panic(expected = "frame too long")]
fn a_frame_that_is_too_long_is_refused() {
    let (mut producer, _consumer) = ring(1 << 20);
    producer.slot(0, SLOT_BYTES_MAX + 1);
}

#[test]
fn either_side_may_go_first() {
    let (mut producer, consumer) = ring(0);
    drop(consumer);
    let sent = producer.repeat(0, &Record::new(&[1; 60]), u32::MAX);
    assert_eq!(u64::from(sent), producer.capacity);
    producer.flush();

    let (mut producer, mut consumer) = ring(0);
    producer.slot(0, 5).expect("the ring is empty").fill(5);
    producer.flush();
    drop(producer);
    assert_eq!(
        consumer.drain(9, &mut |_, bytes| assert_eq!(bytes, [5; 5])),
        1
    );
}

/// A small generator for lengths and contents, the same on both sides.
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}

/// Fills a frame so that its contents depend on every bit of `number` and on the place.
fn fill(frame: &mut [u8], number: u32) {
    let mut state = number;
    for chunk in frame.chunks_mut(2) {
        let bytes = next(&mut state).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

#[test]
fn two_threads_pass_frames_unharmed() {
    let frames: u32 = if cfg!(miri) { 60 } else { 100_000 };
    let (mut producer, mut consumer) = ring(0);
    let sender = thread::spawn(move || {
        let mut state = 1;
        for number in 0..frames {
            let len = next(&mut state) as usize % if number % 8 == 0 { 9238 } else { 300 };
            // Some by slot, some by repeat; flushed now and then.
            if number % 3 == 0 {
                let mut frame = vec![0; len];
                fill(&mut frame, number);
                let record = Record::new(&frame);
                while producer.repeat(u64::from(number / 4), &record, 1) == 0 {
                    producer.flush();
                    thread::yield_now();
                }
            } else {
                loop {
                    if let Some(slot) = producer.slot(u64::from(number / 4), len) {
                        fill(slot, number);
                        break;
                    }
                    producer.flush();
                    thread::yield_now();
                }
            }
            if number % 7 == 0 {
                producer.flush();
            }
        }
        producer.flush();
    });
    let mut state = 1;
    let mut number = 0;
    let mut expected = Vec::new();
    while number < frames {
        let taken = consumer.drain(50, &mut |sent_ns, bytes: &[u8]| {
            let len = next(&mut state) as usize % if number % 8 == 0 { 9238 } else { 300 };
            expected.resize(len, 0);
            fill(&mut expected, number);
            assert_eq!((sent_ns, bytes), (u64::from(number / 4), &expected[..]));
            number += 1;
        });
        if taken == 0 {
            thread::yield_now();
        }
    }
    sender.join().expect("the sender does not panic");
    assert_eq!(consumer.drain(1, &mut |_, _| ()), 0);
}
