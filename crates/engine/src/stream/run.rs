//! Which packet of a stream is due when, on one core of several.
//!
//! Every core follows the schedule of the whole stream and takes from it the packets whose number
//! leaves its rank as the remainder, so that all cores together send exactly what one would, at
//! the same times, without talking to each other. Times come from the schedule and never from
//! when something was really sent: a late core does not shift a chain.

use std::sync::Arc;

use allosaur_packet::offload::TxChecksumOffload;

use super::spec::{RATE_PPS_MAX, Shape, StreamId};
use crate::flow_stats::Rule;
use crate::latency::{ChecksumFixup, Trailer};
use crate::stats::StreamCounters;
use crate::time::{Due, Gap, Nanos};
use crate::transmit::FrameHandle;
use crate::vm;

/// A program that leaves checksums to the port.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) program: Arc<vm::FieldProgram>,
    pub(crate) checksums: TxChecksumOffload,
}

/// What does not change while a stream runs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: StreamId,
    pub(crate) packet: Arc<[u8]>,
    pub(crate) program: Option<Arc<vm::FieldProgram>>,
    /// The same for queues that compute its checksums.
    pub(crate) left: Option<Left>,
    pub(crate) shape: Shape,
    /// At a factor of 1.
    pub(crate) rate_pps: f64,
    /// No factor changes the rate.
    pub(crate) fixed_rate: bool,
    pub(crate) start_delay: Nanos,
    /// A factor makes the delay shorter, too.
    pub(crate) scales_delay: bool,
    pub(crate) next: Option<u32>,
    pub(crate) action_count: u32,
    pub(crate) self_start: bool,
    pub(crate) dummy: bool,
    /// Starts paused, until it is resumed.
    pub(crate) start_paused: bool,
    /// What its packets are counted in.
    pub(crate) rule: Option<Rule>,
    /// Each packet has a trailer of its own.
    pub(crate) stamped: bool,
    /// The checksum that covers it.
    pub(crate) fixup: Option<ChecksumFixup>,
    pub(crate) rank: u64,
    pub(crate) cores: u64,
}

/// One stream on one core.
#[derive(Debug)]
pub(crate) struct StreamRun {
    pub(crate) plan: Plan,
    pub(crate) state: Option<vm::State>,
    pub(crate) frame: Option<FrameHandle>,
    /// The queue was told of the checksums that are left to it.
    pub(crate) leaves_checksums: bool,
    pub(crate) counters: StreamCounters,
    /// The next packet's number in the run.
    sequence: u32,
    /// Started and not ended; also when the run's end comes before its own.
    pub(crate) active: bool,
    /// Active, and its next packet is due only after the run's end.
    pub(crate) cut: bool,
    /// Paused by itself, whatever its profile does.
    pub(crate) paused: bool,
    /// Since when its schedule stands still.
    frozen_at: Option<Nanos>,
    /// This core's next packet.
    pub(crate) next: Due,
    /// Between two packets of this core.
    pub(crate) gap: Gap,
    /// Between two packets of the whole stream.
    spacing: Gap,
    /// Before the first packet.
    start_delay: Gap,
    started_at: Nanos,
    /// The first packet of the current burst, on whichever core, at the time first planned.
    first: Due,
    /// This core's packets of the current burst that are still to come; [`u64::MAX`] is endless.
    pub(crate) left: u64,
    /// The last packet of the current burst, on whichever core.
    burst_end: Due,
    bursts_left: u64,
    /// The number of the current burst's first packet, over all bursts and cores.
    first_index: u64,
    rounds: u32,
}

impl Plan {
    /// The gap between two packets of the whole stream at `factor` times its rate.
    fn spacing(&self, factor: f64) -> Gap {
        let factor = if self.fixed_rate { 1.0 } else { factor };
        Gap::from_pps((self.rate_pps * factor).min(RATE_PPS_MAX))
    }

    /// The delay before the first packet at `factor` times the rate. A loop always takes time.
    fn start_delay(&self, factor: f64) -> Gap {
        let delay = Gap::whole(self.start_delay);
        if !self.scales_delay || factor == 1.0 {
            return delay;
        }
        delay.scaled(1.0 / factor).max(delay.min(Gap::whole(1)))
    }
}

impl StreamRun {
    /// A stream that has not started, to be sent at `factor` times its rate.
    pub(crate) fn new(plan: Plan, state: Option<vm::State>, factor: f64) -> StreamRun {
        let spacing = plan.spacing(factor);
        StreamRun {
            state,
            frame: None,
            leaves_checksums: false,
            counters: StreamCounters::default(),
            sequence: 0,
            active: false,
            cut: false,
            paused: plan.start_paused,
            frozen_at: None,
            next: Due::default(),
            gap: spacing.times(plan.cores),
            spacing,
            start_delay: plan.start_delay(factor),
            started_at: 0,
            first: Due::default(),
            left: 0,
            burst_end: Due::default(),
            bursts_left: 0,
            first_index: 0,
            rounds: 0,
            plan,
        }
    }

    /// The trailer of the next packet that leaves, if its packets have one.
    pub(crate) fn trailer(&self, sent_ns: Nanos) -> Option<Trailer> {
        let rule = self.plan.rule.filter(|_| self.plan.stamped)?;
        Some(Trailer {
            run: rule.run,
            group: rule.group.wire_id(),
            sequence: self.sequence,
            sent_ns,
        })
    }

    /// `n` packets have left.
    pub(crate) fn note_sent(&mut self, n: u32) {
        self.sequence = self.sequence.wrapping_add(n);
    }

    /// Starts the stream, its start delay after `at`.
    pub(crate) fn start(&mut self, at: Due) {
        self.active = true;
        self.cut = false;
        self.frozen_at = None;
        self.started_at = at.at;
        self.bursts_left = self.plan.shape.bursts;
        self.begin_burst(at.after(self.start_delay));
    }

    fn begin_burst(&mut self, first: Due) {
        let Plan {
            rank, cores, dummy, ..
        } = self.plan;
        let gap = self.spacing;
        let packets = self.plan.shape.packets_per_burst;
        let before_mine = (rank + cores - self.first_index % cores) % cores;
        self.bursts_left -= 1;
        self.first = first;
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

    /// Whether the schedule stands still.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen_at.is_some()
    }

    /// Lets the schedule stand still from `at` on, or from its start if that is later. All that
    /// is due before must be done with.
    pub(crate) fn freeze(&mut self, at: Nanos) {
        self.frozen_at = Some(at.max(self.started_at));
    }

    /// Lets the schedule go on at `at` where it stood still: all that was to come comes as much
    /// later as that took.
    pub(crate) fn thaw(&mut self, at: Nanos) {
        let Some(frozen_at) = self.frozen_at.take() else {
            return;
        };
        let pause = at.saturating_sub(frozen_at);
        self.next = self.next.later(pause);
        self.first = self.first.later(pause);
        self.burst_end = self.burst_end.later(pause);
    }

    /// Sends at `factor` times the stream's rate from `at` on. All that is due before must be
    /// done with.
    pub(crate) fn set_factor(&mut self, factor: f64, at: Nanos) {
        let (spacing, start_delay) = (self.plan.spacing(factor), self.plan.start_delay(factor));
        if (spacing, start_delay) == (self.spacing, self.start_delay) {
            return;
        }
        if self.active {
            let at = self.frozen_at.unwrap_or(at);
            self.rescale_delay(start_delay, at);
            self.respace(spacing, at);
        }
        self.start_delay = start_delay;
        self.spacing = spacing;
        self.gap = spacing.times(self.plan.cores);
    }

    /// Moves a first burst that is still to come: the part of its delay that is over at `at` is over
    /// in the new delay, too.
    fn rescale_delay(&mut self, start_delay: Gap, at: Nanos) {
        let (at, is_first) = (Due::at(at), self.bursts_left + 1 == self.plan.shape.bursts);
        if self.first <= at || !is_first || start_delay == self.start_delay {
            return;
        }
        let left = start_delay.scaled(self.start_delay.share(self.first.since(at)));
        let (old, new) = (self.first, at.after(left));
        let move_it = |due: Due| new.after(due.since(old));
        self.next = move_it(self.next);
        self.burst_end = move_it(self.burst_end);
        self.first = new;
    }

    /// Moves what is to come: the part of a gap that is over at `at` is over in the new spacing
    /// too. Which packet comes first after `at`, and when, is found from numbers that are the
    /// same on all cores, so that all move alike.
    fn respace(&mut self, spacing: Gap, at: Nanos) {
        let (old, at) = (self.spacing, Due::at(at));
        let known = if self.left > 0 {
            self.next
        } else {
            self.burst_end
        };
        let (pivot, moved) = if self.first >= at {
            (self.first, self.first)
        } else {
            let pivot = known.before(old.times(known.gaps_since(at, old)));
            let to_come = spacing.scaled(old.share(pivot.since(at)));
            (pivot, at.after(to_come))
        };
        let move_it = |due: Due| moved.after(spacing.times(due.gaps_since(pivot, old)));
        self.next = move_it(self.next);
        self.burst_end = move_it(self.burst_end);
    }

    /// The stream that follows in the chain, unless this one has run as often as it may.
    pub(crate) fn successor(&mut self) -> Option<u32> {
        self.rounds = self.rounds.saturating_add(1);
        let last_round = self.plan.action_count != 0 && self.rounds >= self.plan.action_count;
        self.plan.next.filter(|_| !last_round)
    }
}
