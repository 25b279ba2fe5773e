//! Data that arrives: in order it is delivered at once, else what is missing is remembered.
//!
//! No byte is kept: programs only count them, and who wants them keeps them by their numbers.

use allosaur_packet::transport::tcp_options::{SACK_BLOCKS_MAX, SackBlock, SackBlocks};

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::counters::TcpCounters;
use super::input::Part;
use super::outcome::Outcome;
use super::recovery::RecoveryPool;
use super::seq::Seq;

impl Connection {
    #[inline]
    pub(super) fn take_data(&mut self, cx: &mut TcpContext<'_>, part: Part, outcome: &mut Outcome) {
        if self.has(Flag::PEER_CLOSED) {
            return;
        }
        if self.has(Flag::FIN_WANTED) {
            cx.counters.rcvafterclose += 1;
            if self.state == TcpState::FinWait2 {
                self.wait_for_fin(cx);
            }
        }
        if part.seq == self.expected {
            self.take_in_order(cx, part, outcome);
        } else {
            self.take_out_of_order(cx, part);
        }
    }

    #[inline]
    fn take_in_order(&mut self, cx: &mut TcpContext<'_>, part: Part, outcome: &mut Outcome) {
        let mut delivered = part.len;
        let has_missed = self.has_missed(cx);
        if has_missed {
            delivered += self.take_arrived(cx, part.seq + part.len);
        }
        self.expected += delivered;
        cx.counters.rcvpack += 1;
        cx.counters.rcvbyte += u64::from(delivered);
        outcome.delivered_bytes += delivered;
        if has_missed {
            // "A TCP receiver SHOULD send an immediate ACK when the incoming segment fills in all
            // or part of a gap" (RFC 5681, section 4.2).
            self.set(Flag::ACK_NOW);
            self.release_idle_side(cx);
        } else {
            self.acknowledge_soon(cx, 1);
        }
    }

    /// What had arrived that follows `end`. Returns its bytes.
    fn take_arrived(&mut self, cx: &mut TcpContext<'_>, end: Seq) -> u32 {
        let side = cx.sides.of(&mut self.side);
        let before = side.arrived.bytes();
        let to = side.arrived.take_front(end).unwrap_or(end);
        side.arrived.trim(end);
        if side.arrived.is_empty() {
            self.count_reassembly(cx);
        } else {
            // Which pieces were joined is forgotten: as many are left as bytes are.
            let left = u64::from(side.pieces) * u64::from(side.arrived.bytes());
            side.pieces = left.div_ceil(u64::from(before).max(1)) as u16;
        }
        end.until(to)
    }

    /// Whether something arrived that lies beyond what is missing.
    fn has_missed(&self, cx: &TcpContext<'_>) -> bool {
        let side = cx.sides.look(self.side);
        side.is_some_and(|side| !side.arrived.is_empty())
    }

    /// A reassembly is complete, or given up: how long was it?
    pub(super) fn count_reassembly(&mut self, cx: &mut TcpContext<'_>) {
        if !self.side.is_some() {
            return;
        }
        let side = cx.sides.of(&mut self.side);
        let pieces = side.pieces_most;
        (side.pieces, side.pieces_most) = (0, 0);
        if pieces > 0 {
            count_pieces(cx.counters, pieces);
        }
    }

    fn take_out_of_order(&mut self, cx: &mut TcpContext<'_>, part: Part) {
        // RFC 5681, section 4.2: at once, so that the sender learns of the gap.
        self.set(Flag::ACK_NOW);
        let cold = cx.sides.cold.of(&mut self.cold);
        cold.disordered_segments = cold.disordered_segments.saturating_add(1);
        let (from, to) = (part.seq, part.seq + part.len);
        let pieces_max = cx.tunables.reassembly_pieces_max;
        let side = cx.sides.of(&mut self.side);
        let added = if side.pieces < pieces_max {
            side.arrived.insert(from, to, usize::from(pieces_max))
        } else {
            None
        };
        match added {
            None => {
                cx.counters.rcvoopackdrop += 1;
                cx.counters.rcvoobytesdrop += u64::from(part.len);
            }
            Some(0) => {
                side.newest = from;
                cx.counters.rcvduppack += 1;
                cx.counters.rcvdupbyte += u64::from(part.len);
            }
            Some(_) => {
                cx.counters.reasalloc += u64::from(side.pieces_most == 0);
                side.pieces += 1;
                side.pieces_most = side.pieces_most.max(side.pieces);
                side.newest = from;
                cx.counters.rcvoopack += 1;
                cx.counters.rcvoobyte += u64::from(part.len);
            }
        }
        self.release_idle_side(cx);
    }

    /// Which of these numbers have not arrived yet, in order.
    pub fn missing(&self, sides: &RecoveryPool, from: Seq, to: Seq, missing: &mut Vec<(Seq, Seq)>) {
        missing.clear();
        let mut at = from.max(self.expected);
        let side = sides.look(self.side);
        for &(left, right) in side.map_or(&[][..], |side| side.arrived.as_slice()) {
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

    /// Where the range ends that the byte with this number arrived in, beyond what is missing.
    pub fn arrived_until(&self, sides: &RecoveryPool, at: Seq) -> Option<Seq> {
        Some(sides.look(self.side)?.arrived.around(at)?.1)
    }

    /// What a SACK option says: the range that grew last comes first.
    pub(super) fn sack_blocks(&self, cx: &TcpContext<'_>, count_max: usize) -> SackBlocks {
        let none = SackBlocks::default();
        if !self.side.is_some() || !self.has(Flag::SACK) {
            return none;
        }
        let Some(side) = cx.sides.look(self.side) else {
            return none;
        };
        let newest = side.arrived.around(side.newest);
        let others = side.arrived.as_slice().iter().rev().copied();
        let others = others.filter(|range| Some(*range) != newest);
        let mut blocks = [SackBlock::default(); SACK_BLOCKS_MAX];
        let mut count = 0;
        let told = newest.into_iter().chain(others);
        for (block, (left, right)) in blocks.iter_mut().zip(told.take(count_max)) {
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
