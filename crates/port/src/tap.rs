//! Taps: copies of the frames that a thread sends, for a thread that watches.
//!
//! The ring that copies go through ([`tap`]), the switch that says which ports are watched
//! ([`TapSwitch`]), and the wrapper of a tx queue that makes the copies ([`Tapped`]).
//!
//! A queue that nobody watches is not wrapped, so a tap that is off costs one load a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::FRAME_BYTES_MAX;
use crate::memory::ring::{Consumer, Producer, ring};
use crate::{FrameId, RxFrame, TxQueue};

/// What the ring of a tap holds: 16,384 of the shortest frames. Copies that do not fit are lost
/// and counted; the frames themselves are sent.
pub const TAP_BYTES: usize = 2 << 20;
/// Ports that can be watched: 0 to 63.
pub const TAPPED_PORTS_MAX: u8 = 64;

/// Which ports are watched, as bits of a mask. One thread sets it, the sending threads read it.
#[derive(Clone, Debug, Default)]
pub struct TapSwitch(Arc<AtomicU64>);

impl TapSwitch {
    /// Watches exactly these ports from now on.
    pub fn set(&self, ports: u64) {
        self.0.store(ports, Ordering::Relaxed);
    }

    /// The ports that are watched.
    #[inline]
    pub fn ports(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The two ends of a tap.
pub fn tap() -> (TapIn, TapOut) {
    let (producer, consumer) = ring(TAP_BYTES);
    let tap_in = TapIn {
        ring: producer,
        lost: Arc::default(),
        frame: Vec::with_capacity(FRAME_BYTES_MAX),
    };
    let tap_out = TapOut {
        ring: consumer,
        lost: Arc::clone(&tap_in.lost),
    };
    (tap_in, tap_out)
}

/// The end of the sending thread.
#[derive(Debug)]
pub struct TapIn {
    ring: Producer,
    lost: Arc<AtomicU64>,
    /// The frame that is being written.
    frame: Vec<u8>,
}

impl TapIn {
    /// Makes what was sent since the last call visible to the watching thread.
    #[inline]
    pub fn flush(&mut self) {
        self.ring.flush();
    }

    /// Copies a frame that is not sent here, under a number that says what it is. False when there
    /// is no room; [`note_lost`](TapIn::note_lost) counts it where that is right.
    #[inline]
    pub fn copy(&mut self, at_ns: u64, number: u8, frame: &[u8]) -> bool {
        if frame.len() > FRAME_BYTES_MAX {
            return false;
        }
        let Some(slot) = self.ring.slot(at_ns, 1 + frame.len()) else {
            return false;
        };
        slot[0] = number;
        slot[1..].copy_from_slice(frame);
        true
    }

    /// Counts a frame that could not be copied.
    pub fn note_lost(&mut self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Copies the frame at hand, which port `port` sends `count` times.
    fn push(&mut self, now_ns: u64, port: u8, count: u32) {
        for copy in 0..count {
            let Some(slot) = self.ring.slot(now_ns, 1 + self.frame.len()) else {
                self.lost
                    .fetch_add(u64::from(count - copy), Ordering::Relaxed);
                return;
            };
            slot[0] = port;
            slot[1..].copy_from_slice(&self.frame);
        }
    }
}

/// The end of the watching thread.
#[derive(Debug)]
pub struct TapOut {
    ring: Consumer,
    lost: Arc<AtomicU64>,
}

impl TapOut {
    /// Hands up to `budget` copies to `each`, as (time, port or number, bytes without FCS), in the
    /// order in which they were sent. Returns how many.
    pub fn receive(&mut self, budget: usize, mut each: impl FnMut(u64, u8, &[u8])) -> usize {
        self.ring.drain(budget, &mut |sent_ns, record| {
            if let Some((&port, frame)) = record.split_first() {
                each(sent_ns, port, frame);
            }
        })
    }

    /// The same in bursts; of each frame the first byte is its port or number.
    pub fn receive_bursts(&mut self, budget: usize, mut each: impl FnMut(&[RxFrame<'_>])) -> usize {
        self.ring.drain_bursts(budget, &mut each)
    }

    /// Copies that did not fit into the ring since the tap was made.
    pub fn lost_packets(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A transmit queue whose frames are copied into a tap.
///
/// Dropping it commits the last frame.
#[derive(Debug)]
pub struct Tapped<'a, Q: TxQueue> {
    queue: &'a mut Q,
    tap: &'a mut TapIn,
    port: u8,
    /// The time of the frame that was begun and is not committed yet.
    begun: Option<u64>,
}

impl<'a, Q: TxQueue> Tapped<'a, Q> {
    /// Wraps the queue of a port.
    pub fn new(queue: &'a mut Q, tap: &'a mut TapIn, port: u8) -> Tapped<'a, Q> {
        Tapped {
            queue,
            tap,
            port,
            begun: None,
        }
    }

    fn commit(&mut self) {
        let Some(now_ns) = self.begun.take() else {
            return;
        };
        let slot = self.queue.slot(now_ns, self.tap.frame.len());
        slot.expect("there was room, and nothing came between")
            .copy_from_slice(&self.tap.frame);
        self.tap.push(now_ns, self.port, 1);
    }
}

impl<Q: TxQueue> TxQueue for Tapped<'_, Q> {
    // What is copied is seen as it leaves, so it is written whole.
    const REUSES: bool = false;

    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        self.commit();
        if !self.queue.has_room(now_ns, len) {
            return None;
        }
        self.begun = Some(now_ns);
        self.tap.frame.resize(len, 0);
        Some(&mut self.tap.frame)
    }

    fn forget_payloads(&mut self) {
        self.commit();
        self.queue.forget_payloads();
    }

    fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        self.commit();
        self.queue.has_room(now_ns, len)
    }

    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        self.commit();
        let sent = self.queue.repeat(now_ns, frame, count);
        self.queue.copy_registered(frame, &mut self.tap.frame);
        self.tap.push(now_ns, self.port, sent);
        sent
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        self.commit();
        self.queue.register(frame)
    }

    fn unregister(&mut self, frame: FrameId) {
        self.commit();
        self.queue.unregister(frame);
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        self.queue.copy_registered(frame, copy);
    }

    fn flush(&mut self) {
        self.commit();
        self.queue.flush();
    }
}

impl<Q: TxQueue> Drop for Tapped<'_, Q> {
    fn drop(&mut self) {
        self.commit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RxQueue;
    use crate::memory::{self, LinkSettings};

    fn copies(tap: &mut TapOut) -> Vec<(u64, u8, Vec<u8>)> {
        let mut copies = Vec::new();
        tap.receive(usize::MAX, |at, port, frame| {
            copies.push((at, port, frame.to_vec()));
        });
        copies
    }

    #[test]
    fn every_frame_that_is_sent_is_copied_in_order() {
        let (mut a, mut b) = memory::pair(1, 1, &LinkSettings::default());
        let (mut tap_in, mut tap_out) = tap();
        let queue = &mut a.tx[0];
        let kept = queue.register(&[7; 61]).expect("room for a frame");
        let mut tapped = Tapped::new(queue, &mut tap_in, 3);
        tapped.slot(10, 60).expect("room").fill(1);
        tapped.slot(10, 9238).expect("room").fill(2);
        assert_eq!(tapped.repeat(20, kept, 2), 2);
        tapped.slot(30, 62).expect("room").fill(3);
        drop(tapped);
        queue.flush();
        assert_eq!(copies(&mut tap_out), []);
        tap_in.flush();
        let expected: Vec<(u64, u8, Vec<u8>)> = vec![
            (10, 3, vec![1; 60]),
            (10, 3, vec![2; 9238]),
            (20, 3, vec![7; 61]),
            (20, 3, vec![7; 61]),
            (30, 3, vec![3; 62]),
        ];
        assert_eq!(copies(&mut tap_out), expected);
        let mut received = Vec::new();
        b.rx.receive(40, usize::MAX, |_, frame| received.push(frame.to_vec()));
        let sent: Vec<Vec<u8>> = expected.into_iter().map(|(_, _, frame)| frame).collect();
        assert_eq!(received, sent);
        assert_eq!(tap_out.lost_packets(), 0);
    }

    #[test]
    fn a_full_queue_says_so_through_a_tap_too() {
        let settings = LinkSettings {
            rate_bps: Some(1e6),
            ..LinkSettings::default()
        };
        let (mut plain, _rx) = memory::pair(1, 1, &settings);
        let (mut watched, _rx) = memory::pair(1, 1, &settings);
        let fill = |queue: &mut dyn FnMut() -> bool| (0..100_000).take_while(|_| queue()).count();
        let without = fill(&mut || plain.tx[0].slot(5, 1514).is_some());
        let (mut tap_in, mut tap_out) = tap();
        let mut tapped = Tapped::new(&mut watched.tx[0], &mut tap_in, 0);
        let with = fill(&mut || tapped.slot(5, 1514).is_some());
        drop(tapped);
        tap_in.flush();
        assert!(without > 10);
        assert_eq!(with, without);
        assert_eq!(copies(&mut tap_out).len(), with);
    }

    #[test]
    fn frames_that_are_not_sent_here_are_copied_under_a_number() {
        let (mut tap_in, mut tap_out) = tap();
        assert!(tap_in.copy(10, 77, &[1; 60]));
        assert!(!tap_in.copy(11, 77, &[2; FRAME_BYTES_MAX + 1]), "too long");
        assert!(tap_in.copy(11, 3, &[3; FRAME_BYTES_MAX]));
        tap_in.flush();
        let expected = [(10, 77, vec![1; 60]), (11, 3, vec![3; FRAME_BYTES_MAX])];
        assert_eq!(copies(&mut tap_out), expected);
        while tap_in.copy(12, 0, &[4; 9000]) {}
        assert_eq!(tap_out.lost_packets(), 0, "who copies decides what is lost");
        tap_in.note_lost();
        assert_eq!(tap_out.lost_packets(), 1);
    }

    #[test]
    fn what_a_tap_cannot_hold_is_counted_and_sent_all_the_same() {
        let mut sink = memory::sink(1);
        let (mut tap_in, mut tap_out) = tap();
        let kept = sink.tx[0].register(&[9; 60]).expect("a sink keeps all");
        let many = 100_000;
        let mut tapped = Tapped::new(&mut sink.tx[0], &mut tap_in, 1);
        assert_eq!(tapped.repeat(1, kept, many), many);
        drop(tapped);
        tap_in.flush();
        let seen = copies(&mut tap_out);
        assert_eq!(seen[0], (1, 1, vec![9; 60]));
        assert!(seen.len() > 10_000);
        assert_eq!(seen.len() as u64 + tap_out.lost_packets(), u64::from(many));
    }
}
