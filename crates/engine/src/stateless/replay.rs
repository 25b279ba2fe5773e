//! A capture that is sent from a port: its frames, into one queue.

use super::{DRAIN_MAX, Item, LATE_MAX, Outbox, Run, Sender};
use crate::stats::TransmitCounters;
use crate::stream::replay::Replay;
use crate::time::Nanos;
use crate::transmit::{PortIndex, QueueOp, Transmit, TxQueues};
use crate::vm;
use crate::wheel::Scheduler;

/// What a burst left behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Played {
    /// Frames that the queue took.
    pub(super) sent: u64,
    /// It took no more.
    pub(super) full: bool,
}

impl Sender {
    /// Sends the next burst of a run's capture.
    pub(super) fn play(
        &mut self,
        item: Item,
        now: Nanos,
        counters: &mut TransmitCounters,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) -> Played {
        let index = item.run as usize;
        let run = self.runs[index]
            .as_mut()
            .expect("a retired run has no items");
        let replay = run.program.replay.as_mut().expect("the item is of one");
        let until = now.min(run.bound.saturating_sub(1));
        give_up_late(replay, counters, now, run.end, run.bound);
        let played = play(replay, self.port, until, counters, tx_queues);
        counters.queue_full += u64::from(played.full);
        run.continue_replay(item, &mut self.scheduler);
        if run.is_over(now) {
            self.finish(index, now, tx_queues, outbox);
        }
        played
    }
}

impl Run {
    /// Starts the capture of the run, if it has one.
    pub(super) fn begin_replay(&mut self, item: Item, at: Nanos, scheduler: &mut Scheduler<Item>) {
        if let Some(replay) = &mut self.program.replay {
            replay.start(at);
            self.active += 1;
            self.continue_replay(item, scheduler);
        }
    }

    /// The capture waits for its next frame, or has none to send any more.
    pub(super) fn continue_replay(&mut self, item: Item, scheduler: &mut Scheduler<Item>) {
        let due_at = self.program.replay.as_ref().and_then(Replay::due_at);
        if let Some(due_at) = due_at.filter(|due_at| *due_at < self.end) {
            scheduler.insert(due_at, item);
            return;
        }
        self.active -= 1;
        self.cut += u32::from(due_at.is_some());
    }
}

/// Sends the frames that are due by `until`, at most as many as a burst has.
#[inline]
fn play(
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
fn give_up_late(
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
