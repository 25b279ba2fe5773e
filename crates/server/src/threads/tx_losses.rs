//! What left a port, of what was written for it: engines count a frame as sent when they write it, and
//! a queue may hold it back for a while, or lose it.

use allosaur_engine::stats::{DirectionCounters, TransmitCounters};
use allosaur_engine::time::Nanos;
use allosaur_port::TxQueue;

/// What one transmit queue has lost.
#[derive(Debug, Default)]
pub(super) struct TxLosses(DirectionCounters);

impl TxLosses {
    /// Counts what the queue lost since the last time.
    #[inline]
    pub(super) fn take(&mut self, queue: &mut impl TxQueue) {
        queue.take_lost(&mut |frame_bytes| self.0.count(1, frame_bytes));
    }

    /// What left, of what was `written`: what the queue still holds is sent later, or lost. So what is
    /// said of a port never goes down again.
    pub(super) fn left(
        &self,
        written: &TransmitCounters,
        queue: &mut impl TxQueue,
    ) -> TransmitCounters {
        let mut not_left = self.0;
        queue.unsent(&mut |frame_bytes| not_left.count(1, frame_bytes));
        let mut left = *written;
        left.sent.subtract(&not_left);
        left.lost_packets = self.0.packets;
        left
    }
}

/// Copies a frame into a queue that takes frames of at most so many bytes, and counts it: who sends it
/// offers it once. Whether there was room.
pub(super) fn send_frame(
    queue: &mut impl TxQueue,
    now: Nanos,
    frame: &[u8],
    frame_bytes_max: usize,
    counters: &mut TransmitCounters,
) -> bool {
    if frame.len() > frame_bytes_max {
        counters.missed_packets += 1;
        return false;
    }
    let Some(slot) = queue.slot(now, frame.len()) else {
        counters.queue_full += 1;
        counters.missed_packets += 1;
        return false;
    };
    slot.copy_from_slice(frame);
    counters.sent.count(1, frame.len());
    true
}

#[cfg(test)]
mod tests {
    use allosaur_port::FrameId;

    use super::*;

    /// A queue that holds and has lost frames of these lengths.
    struct Stuck {
        held: Vec<usize>,
        lost: Vec<usize>,
    }

    impl TxQueue for Stuck {
        fn slot(&mut self, _now_ns: u64, _len: usize) -> Option<&mut [u8]> {
            None
        }
        fn has_room(&mut self, _now_ns: u64, _len: usize) -> bool {
            false
        }
        fn repeat(&mut self, _now_ns: u64, _frame: FrameId, _count: u32) -> u32 {
            0
        }
        fn register(&mut self, _frame: &[u8]) -> Option<FrameId> {
            None
        }
        fn unregister(&mut self, _frame: FrameId) {}
        fn copy_registered(&self, _frame: FrameId, _copy: &mut Vec<u8>) {}
        fn flush(&mut self) {}
        fn unsent(&mut self, each: &mut dyn FnMut(usize)) {
            self.held.iter().for_each(|len| each(*len));
        }
        fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
            self.lost.drain(..).for_each(each);
        }
    }

    #[test]
    fn what_is_held_back_or_lost_has_not_left() {
        let mut written = TransmitCounters::default();
        written.sent.count(10, 60);
        written.sent.count(3, 1500);
        let mut queue = Stuck {
            held: vec![60, 60, 1500],
            lost: vec![1500],
        };
        let mut losses = TxLosses::default();
        losses.take(&mut queue);
        let left = losses.left(&written, &mut queue);
        let mut expected = DirectionCounters::default();
        expected.count(8, 60);
        expected.count(1, 1500);
        assert_eq!((left.sent, left.lost_packets), (expected, 1));
        queue.held.clear();
        queue.lost.push(1500);
        losses.take(&mut queue);
        losses.take(&mut queue);
        let left = losses.left(&written, &mut queue);
        expected.count(2, 60);
        assert_eq!((left.sent, left.lost_packets), (expected, 2));
    }
}
