//! Tests of the ring: against a queue, and between two threads.

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::*;

/// What a test does to a ring.
#[derive(Clone, Debug)]
enum Step {
    Slot { now_ns: u64, len: usize },
    Repeat { now_ns: u64, len: usize, count: u32 },
    Flush,
    Drain { budget: usize },
    DrainBursts { budget: usize },
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
        3 => (now_ns, len, 0..100u32)
            .prop_map(|(now_ns, len, count)| Step::Repeat { now_ns, len, count }),
        2 => Just(Step::Flush),
        2 => (0..200usize).prop_map(|budget| Step::Drain { budget }),
        2 => (0..200usize).prop_map(|budget| Step::DrainBursts { budget }),
        1 => Just(Step::PeekAndPop),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 300 })
}

type Frame = (u64, Vec<u8>);

/// A ring and what should be in it.
struct Model {
    producer: Producer,
    consumer: Consumer,
    /// Published, then not yet.
    visible: VecDeque<Frame>,
    hidden: Vec<Frame>,
    number: u8,
}

impl Model {
    fn new() -> Model {
        let (producer, consumer) = ring(0);
        Model {
            producer,
            consumer,
            visible: VecDeque::new(),
            hidden: Vec::new(),
            number: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Slot { now_ns, len } => self.slot(now_ns, len),
            Step::Repeat { now_ns, len, count } => self.repeat(now_ns, len, count),
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

    fn repeat(&mut self, now_ns: u64, len: usize, count: u32) {
        let bytes = self.bytes(len);
        let sent = self.producer.repeat(now_ns, &Record::new(&bytes), count);
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
        let used = self.producer.position - self.consumer.released;
        assert!(self.producer.capacity - used < 2 * (lines + 1));
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
        let got = front.map(|front| (front.sent_ns, front.bytes.to_vec()));
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
