//! Data that arrives: in order it is delivered at once, else what is missing is remembered.
//!
//! No byte is kept: programs only count them, and who wants them keeps them by their numbers.

use allosaur_packet::transport::tcp_options::{SACK_BLOCKS_MAX, SackBlock, SackBlocks};

use super::connection::{Connection, Flag, TcpContext};
use super::counters::TcpCounters;
use super::input::Part;
use super::outcome::Outcome;
use super::recovery::RecoveryPool;
use super::seq::Seq;

impl Connection {
    /// Data while something is missing, or is missed by it.
    #[inline(never)]
    pub(super) fn reassemble(
        &mut self,
        cx: &mut TcpContext<'_>,
        part: Part,
        outcome: &mut Outcome,
    ) {
        if part.seq != self.rcv_nxt {
            return self.queue_out_of_order(cx, part);
        }
        let mut delivered = part.len;
        let has_queued = self.has_queued(cx);
        if has_queued {
            delivered += self.deliver_queued(cx, part.seq + part.len);
        }
        self.rcv_nxt += delivered;
        cx.counters.rcvpack += 1;
        cx.counters.rcvbyte += u64::from(delivered);
        outcome.delivered_bytes += delivered;
        if has_queued {
            // "A TCP receiver SHOULD send an immediate ACK when the incoming segment fills in all
            // or part of a gap" (RFC 5681, section 4.2).
            self.set(Flag::ACK_NOW);
            self.release_idle_recovery(cx);
        } else {
            self.schedule_ack(cx, 1);
        }
    }

    /// Delivers what was received out of order behind `end`. Returns its bytes.
    fn deliver_queued(&mut self, cx: &mut TcpContext<'_>, end: Seq) -> u32 {
        let state = cx.recovery.of(&mut self.recovery);
        let before = state.received.bytes();
        let to = state.received.take_front(end).unwrap_or(end);
        state.received.trim(end);
        if state.received.is_empty() {
            self.count_reassembly(cx);
        } else {
            // Which segments were joined is forgotten: as many are left as bytes are.
            let left = u64::from(state.pieces) * u64::from(state.received.bytes());
            state.pieces = left.div_ceil(u64::from(before).max(1)) as u16;
        }
        end.until(to)
    }

    /// Whether something was received beyond RCV.NXT.
    fn has_queued(&self, cx: &TcpContext<'_>) -> bool {
        let state = cx.recovery.get(self.recovery);
        state.is_some_and(|state| !state.received.is_empty())
    }

    /// Counts a reassembly that is complete, or given up.
    pub(super) fn count_reassembly(&mut self, cx: &mut TcpContext<'_>) {
        if !self.recovery.is_some() {
            return;
        }
        let state = cx.recovery.of(&mut self.recovery);
        let pieces = state.pieces_most;
        (state.pieces, state.pieces_most) = (0, 0);
        if pieces > 0 {
            count_pieces(cx.counters, pieces);
        }
    }

    fn queue_out_of_order(&mut self, cx: &mut TcpContext<'_>, part: Part) {
        // RFC 5681, section 4.2: at once, so that the sender learns of the gap.
        self.set(Flag::ACK_NOW);
        let cold = cx.recovery.cold.of(&mut self.cold);
        cold.out_of_order_segments = cold.out_of_order_segments.saturating_add(1);
        let (from, to) = (part.seq, part.seq + part.len);
        let pieces_max = cx.tunables.reassembly_pieces_max;
        let state = cx.recovery.of(&mut self.recovery);
        let added = if state.pieces < pieces_max {
            state.received.insert(from, to, usize::from(pieces_max))
        } else {
            None
        };
        match added {
            None => {
                cx.counters.rcvoopackdrop += 1;
                cx.counters.rcvoobytesdrop += u64::from(part.len);
            }
            Some(0) => {
                state.newest = from;
                cx.counters.rcvduppack += 1;
                cx.counters.rcvdupbyte += u64::from(part.len);
            }
            Some(_) => {
                cx.counters.reasalloc += u64::from(state.pieces_most == 0);
                state.pieces += 1;
                state.pieces_most = state.pieces_most.max(state.pieces);
                state.newest = from;
                cx.counters.rcvoopack += 1;
                cx.counters.rcvoobyte += u64::from(part.len);
            }
        }
        self.release_idle_recovery(cx);
    }

    /// The ranges between these sequence numbers that were not received yet, in order.
    pub fn missing(&self, pool: &RecoveryPool, from: Seq, to: Seq, missing: &mut Vec<(Seq, Seq)>) {
        missing.clear();
        let mut at = from.max(self.rcv_nxt);
        let state = pool.get(self.recovery);
        for &(left, right) in state.map_or(&[][..], |state| state.received.as_slice()) {
            if !left.is_before(to) {
                break;
            }
            if left.is_after(at) {
                missing.push((at, left));
            }
            at = at.max(right);
        }
        if to.is_after(at) {
            missing.push((at, to));
        }
    }

    /// The end of the range that was received out of order around this sequence number.
    pub fn queued_until(&self, pool: &RecoveryPool, at: Seq) -> Option<Seq> {
        Some(pool.get(self.recovery)?.received.around(at)?.1)
    }

    /// The blocks of a SACK option: the range that grew last comes first (RFC 2018, section 4).
    pub(super) fn sack_blocks(&self, cx: &TcpContext<'_>, count_max: usize) -> SackBlocks {
        let none = SackBlocks::default();
        if !self.recovery.is_some() || !self.has(Flag::SACK) {
            return none;
        }
        let Some(state) = cx.recovery.get(self.recovery) else {
            return none;
        };
        let newest = state.received.around(state.newest);
        let others = state.received.as_slice().iter().rev().copied();
        let others = others.filter(|range| Some(*range) != newest);
        let mut blocks = [SackBlock::default(); SACK_BLOCKS_MAX];
        let mut count = 0;
        let ranges = newest.into_iter().chain(others);
        for (block, (left, right)) in blocks.iter_mut().zip(ranges.take(count_max)) {
            *block = SackBlock {
                left: left.0,
                right: right.0,
            };
            count += 1;
        }
        SackBlocks::new(&blocks[..count])
    }
}

fn count_pieces(counters: &mut TcpCounters, pieces: u16) {
    counters.reasfree += 1;
    match pieces {
        0..=4 => counters.reas_hist_4 += 1,
        5..=16 => counters.reas_hist_16 += 1,
        17..=100 => counters.reas_hist_100 += 1,
        _ => counters.reas_hist_other += 1,
    }
}
