//! The frames of a capture, into one queue.

use super::{DRAIN_MAX, LATE_MAX};
use crate::stats::TransmitCounters;
use crate::stream::replay::Replay;
use crate::time::Nanos;
use crate::transmit::{PortIndex, QueueOp, Transmit, TxQueues};
use crate::vm;

/// What a burst left behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Played {
    /// Frames that the queue took.
    pub(super) sent: u64,
    /// It took no more.
    pub(super) full: bool,
}

/// Sends the frames that are due by `until`, at most as many as a burst has.
#[inline]
pub(super) fn play(
    replay: &mut Replay,
    port: PortIndex,
    until: Nanos,
    counters: &mut TransmitCounters,
    tx_queues: &mut impl TxQueues,
) -> Played {
    let burst = Burst {
        replay,
        until,
        counters,
    };
    tx_queues.with_queue(port, burst)
}

/// Skips what the replay is too late for: as with streams, what has no end gives up what it
/// cannot send in time, and the end of the run is the end of waiting for everything.
#[inline]
pub(super) fn give_up_late(
    replay: &mut Replay,
    counters: &mut TransmitCounters,
    now: Nanos,
    end: Nanos,
    bound: Nanos,
) {
    let before_end = bound.saturating_sub(1);
    let behind = now.saturating_sub(LATE_MAX);
    if replay.is_endless() && replay.due_at().is_some_and(|at| at < behind) {
        counters.missed_packets += replay.skip(behind.min(before_end));
    }
    if now >= end.saturating_add(DRAIN_MAX) {
        counters.missed_packets += replay.skip(before_end);
    }
}

struct Burst<'a> {
    replay: &'a mut Replay,
    until: Nanos,
    counters: &'a mut TransmitCounters,
}

impl QueueOp for Burst<'_> {
    type Output = Played;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> Played {
        let mut played = Played::default();
        while played.sent < vm::BURST as u64 {
            let Some((at, frame)) = self.replay.peek(self.until) else {
                break;
            };
            let Some(slot) = queue.slot(at, frame.len()) else {
                played.full = true;
                break;
            };
            slot.copy_from_slice(frame);
            self.counters.sent.count(1, frame.len());
            self.replay.advance();
            played.sent += 1;
        }
        played
    }
}
