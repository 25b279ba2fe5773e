//! Which packet of a stream is due when, on one core of several.
//!
//! Every core follows the schedule of the whole stream and takes from it the packets whose number
//! leaves its rank as the remainder, so that all cores together send exactly what one would, at
//! the same times, without talking to each other. Times come from the schedule and never from
//! when something was really sent: a late core does not shift a chain.
//!
//! What lives here: the schedule. What does not: the queue that a packet goes to, and what is
//! done with a core that is late (see `engine`).

use std::sync::Arc;

use super::compile::Shape;
use super::spec::StreamId;
use crate::stats::StreamCounters;
use crate::time::{Due, Gap, Nanos};
use crate::transmit::FrameHandle;
use crate::vm;

/// What does not change while a stream runs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: StreamId,
    pub(crate) packet: Arc<[u8]>,
    pub(crate) program: Option<Arc<vm::Program>>,
    pub(crate) shape: Shape,
    /// Between two packets of the whole stream.
    pub(crate) gap: Gap,
    pub(crate) start_delay: Nanos,
    pub(crate) next: Option<u32>,
    pub(crate) action_count: u32,
    pub(crate) self_start: bool,
    pub(crate) dummy: bool,
    pub(crate) rank: u64,
    pub(crate) cores: u64,
}

/// One stream on one core.
#[derive(Debug)]
pub(crate) struct StreamRun {
    pub(crate) plan: Plan,
    pub(crate) state: Option<vm::State>,
    pub(crate) frame: Option<FrameHandle>,
    pub(crate) counters: StreamCounters,
    /// Started and not ended; also when the run's end comes before its own.
    pub(crate) active: bool,
    /// This core's next packet.
    pub(crate) next: Due,
    /// Between two packets of this core.
    pub(crate) gap: Gap,
    /// This core's packets of the current burst that are still to come; [`u64::MAX`] is endless.
    pub(crate) left: u64,
    /// The last packet of the current burst, on whichever core.
    burst_end: Due,
    bursts_left: u64,
    /// The number of the current burst's first packet, over all bursts and cores.
    first_index: u64,
    rounds: u32,
}

impl StreamRun {
    pub(crate) fn new(plan: Plan, state: Option<vm::State>) -> StreamRun {
        StreamRun {
            state,
            frame: None,
            counters: StreamCounters::default(),
            active: false,
            next: Due::default(),
            gap: plan.gap.times(plan.cores),
            left: 0,
            burst_end: Due::default(),
            bursts_left: 0,
            first_index: 0,
            rounds: 0,
            plan,
        }
    }

    /// Starts the stream, its start delay after `at`.
    pub(crate) fn start(&mut self, at: Due) {
        self.active = true;
        self.bursts_left = self.plan.shape.bursts;
        self.begin_burst(at.later(self.plan.start_delay));
    }

    fn begin_burst(&mut self, first: Due) {
        let Plan {
            gap,
            rank,
            cores,
            dummy,
            ..
        } = self.plan;
        let packets = self.plan.shape.packets_per_burst;
        let before_mine = (rank + cores - self.first_index % cores) % cores;
        self.bursts_left -= 1;
        self.next = first.after(gap.times(before_mine));
        self.burst_end = first.after(gap.times(packets - 1));
        self.left = match packets {
            _ if dummy => 0,
            u64::MAX => u64::MAX,
            packets => packets.saturating_sub(before_mine).div_ceil(cores),
        };
    }

    /// When the stream must be looked at again.
    #[inline]
    pub(crate) fn due_at(&self) -> Nanos {
        if self.left > 0 {
            self.next.at
        } else {
            self.burst_end.at
        }
    }

    /// How many of this core's packets are due by `until`, up to `max`.
    #[inline]
    pub(crate) fn due_count(&self, until: Nanos, max: u32) -> u32 {
        if self.left == 0 || self.next.at > until {
            return 0;
        }
        if self.next.after(self.gap).at > until {
            return 1;
        }
        let most = u64::from(max).min(self.left);
        (self.gap.count_in(until - self.next.at).saturating_add(1)).min(most) as u32
    }

    /// `n` packets from the next on are done with.
    #[inline]
    pub(crate) fn advance(&mut self, n: u64) {
        self.next = self.next.after(self.gap.times(n));
        if self.left != u64::MAX {
            self.left -= n;
        }
    }

    /// Whether the stream goes on until it is stopped.
    pub(crate) fn is_continuous(&self) -> bool {
        self.plan.shape.packets_per_burst == u64::MAX
    }

    /// Begins the next burst of this stream when the current one is over by `until`.
    #[inline]
    pub(crate) fn begin_bursts(&mut self, until: Nanos) {
        while self.left == 0 && self.bursts_left > 0 && self.burst_end.at <= until {
            let first = self.burst_end.later(self.plan.shape.burst_gap);
            self.first_index += self.plan.shape.packets_per_burst;
            self.begin_burst(first);
        }
    }

    /// Ends the stream when its last burst is over by `until`; gives the time of its last packet.
    #[inline]
    pub(crate) fn end(&mut self, until: Nanos) -> Option<Due> {
        if self.left > 0 || self.bursts_left > 0 || self.burst_end.at > until {
            return None;
        }
        self.first_index += self.plan.shape.packets_per_burst;
        self.active = false;
        Some(self.burst_end)
    }

    /// The stream that follows in the chain, unless this one has run as often as it may.
    pub(crate) fn successor(&mut self) -> Option<u32> {
        self.rounds = self.rounds.saturating_add(1);
        let last_round = self.plan.action_count != 0 && self.rounds >= self.plan.action_count;
        self.plan.next.filter(|_| !last_round)
    }
}
