//! The SACK scoreboard (RFC 6675): what the peer has received, and so what is lost.

use super::connection::{Connection, Flag, TcpContext};
use super::segment::Segment;
use super::seq::Seq;

/// Sacked ranges of a connection.
const RANGES_MAX: usize = 64;

impl Connection {
    /// Takes the SACK option of a segment. Returns whether it sacks more than before.
    pub(super) fn note_sacked(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        let blocks = segment.sack.as_slice();
        if blocks.is_empty() || !self.has(Flag::SACK) {
            return false;
        }
        cx.counters.sack_rcv_blocks += 1;
        let una = self.snd_una.max(segment.ack);
        let mut new_bytes = 0;
        for block in blocks {
            let (left, right) = (Seq(block.left), Seq(block.right));
            // Below what is acknowledged: a duplicate arrived (RFC 2883).
            let makes_sense = left.is_before(right) && !right.is_after(self.snd_max);
            if !makes_sense || !right.is_after(una) {
                continue;
            }
            let state = cx.recovery.of(&mut self.recovery);
            match state.sacked.insert(left.max(una), right, RANGES_MAX) {
                Some(bytes) => new_bytes += bytes,
                None => cx.counters.sack_sboverflow += 1,
            }
        }
        new_bytes > 0
    }

    /// Forgets what is acknowledged.
    pub(super) fn trim_sacked(&mut self, cx: &mut TcpContext<'_>) {
        let una = self.snd_una;
        let state = cx.recovery.of(&mut self.recovery);
        state.sacked.trim(una);
        state.high_rxt = state.high_rxt.max(una);
        self.release_idle_recovery(cx);
    }

    /// Forgets all: at a timeout the peer may have reneged (RFC 2018, section 8).
    pub(super) fn forget_sacked(&mut self, cx: &mut TcpContext<'_>) {
        if self.recovery.is_some() {
            cx.recovery.of(&mut self.recovery).sacked.clear();
            self.release_idle_recovery(cx);
        }
    }

    /// Gives the recovery state back when nothing is in it.
    pub(super) fn release_idle_recovery(&mut self, cx: &mut TcpContext<'_>) {
        let Some(state) = cx.recovery.get(self.recovery) else {
            return;
        };
        if state.sacked.is_empty() && state.received.is_empty() && !self.has(Flag::FAST_RECOVERY) {
            cx.recovery.release(&mut self.recovery);
        }
    }

    /// The ranges that are neither acknowledged nor sacked, in order.
    fn holes<'a>(&self, cx: &'a TcpContext<'_>) -> impl Iterator<Item = Hole> + 'a {
        let state = cx.recovery.get(self.recovery);
        let sacked = state.map_or(&[][..], |state| state.sacked.as_slice());
        let duplicates = u32::from(cx.tunables.duplicates_max);
        let enough_bytes = (duplicates - 1) * u32::from(self.mss);
        // What is sacked above the hole.
        let mut bytes = state.map_or(0, |state| state.sacked.bytes());
        let mut count = sacked.len() as u32;
        let (mut from, high) = (self.snd_una, self.snd_max);
        let ranges = sacked.iter().copied().chain([(high, high)]);
        ranges.filter_map(move |(left, right)| {
            let hole = Hole {
                from,
                to: left,
                // RFC 6675, section 4, IsLost.
                is_lost: count >= duplicates || bytes > enough_bytes,
                is_last: count == 0,
            };
            from = right;
            count = count.saturating_sub(1);
            bytes = bytes.saturating_sub(left.until(right));
            hole.from.is_before(hole.to).then_some(hole)
        })
    }

    /// Whether the first unacknowledged segment is lost.
    pub(super) fn is_first_lost(&self, cx: &TcpContext<'_>) -> bool {
        self.recovery.is_some() && self.holes(cx).next().is_some_and(|hole| hole.is_lost)
    }

    /// Bytes in flight (RFC 6675, section 4, SetPipe).
    fn pipe_bytes(&self, cx: &TcpContext<'_>) -> u32 {
        let resent = self.high_rxt(cx);
        let under_way = self.holes(cx).map(|hole| {
            let first = if hole.is_lost {
                0
            } else {
                hole.from.until(hole.to)
            };
            first + hole.from.until(hole.to.min(resent))
        });
        under_way.sum()
    }

    /// All below this was retransmitted in this fast recovery (HighRxt).
    fn high_rxt(&self, cx: &TcpContext<'_>) -> Seq {
        let state = cx.recovery.get(self.recovery);
        state.map_or(self.snd_una, |state| state.high_rxt.max(self.snd_una))
    }

    /// Whether another segment may be sent in fast recovery (RFC 6675, section 5, step C).
    pub(super) fn pipe_has_room(&self, cx: &TcpContext<'_>) -> bool {
        let room = self.congestion.window_bytes;
        room.saturating_sub(self.pipe_bytes(cx)) >= u32::from(self.mss)
    }

    /// The next hole to fill, of at most `span_max` numbers: what is lost (NextSeg, rule 1), or
    /// with `any` also what might be (rule 3).
    pub(super) fn next_hole(
        &self,
        cx: &TcpContext<'_>,
        span_max: u32,
        any: bool,
    ) -> Option<(Seq, u32)> {
        let (resent, recover) = (self.high_rxt(cx), self.recover(cx));
        let mut open = self.holes(cx).filter_map(|hole| {
            let (from, to) = (hole.from.max(resent), hole.to.min(recover));
            let is_wanted = hole.is_lost || any && !hole.is_last;
            (is_wanted && from.is_before(to)).then_some((from, to))
        });
        let (from, to) = open.next()?;
        Some((from, from.until(to).min(span_max)))
    }

    /// The first unacknowledged segment, which fast retransmit sends.
    pub(super) fn first_hole(&self, cx: &TcpContext<'_>, span_max: u32) -> Option<(Seq, u32)> {
        let hole = self.holes(cx).next()?;
        Some((hole.from, hole.from.until(hole.to).min(span_max)))
    }

    /// The end of what is in flight, once in a fast recovery when nothing else may be sent: "we provide
    /// the opportunity for a single 'rescue' retransmission per entry into loss recovery"
    /// (NextSeg, rule 4). Not after new data, whose ACKs tell of losses.
    pub(super) fn rescue(&self, cx: &TcpContext<'_>, span_max: u32) -> Option<(Seq, u32)> {
        if self.has(Flag::RESCUE_SENT) || self.snd_max != self.recover(cx) {
            return None;
        }
        let hole = self.holes(cx).last()?;
        let from = hole.from.max(hole.to - span_max);
        let is_open = !from.is_before(self.high_rxt(cx));
        is_open.then(|| (from, from.until(hole.to)))
    }

    /// All below `to` that is not sacked was retransmitted.
    pub(super) fn note_high_rxt(&mut self, cx: &mut TcpContext<'_>, to: Seq) {
        let state = cx.recovery.of(&mut self.recovery);
        state.high_rxt = state.high_rxt.max(to);
    }

    /// The next sequence number to send after a timeout, without what the peer has sacked, and where the
    /// next sacked range begins.
    pub(super) fn skip_sacked(&self, cx: &TcpContext<'_>) -> (Seq, Option<Seq>) {
        let Some(state) = cx.recovery.get(self.recovery) else {
            return (self.snd_nxt, None);
        };
        let inside = state.sacked.around(self.snd_nxt);
        let seq = inside.map_or(self.snd_nxt, |range| range.1);
        let mut above = state.sacked.as_slice().iter().map(|range| range.0);
        (seq, above.find(|left| left.is_after(seq)))
    }
}

/// A range that the peer has not received.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: Seq,
    to: Seq,
    /// Enough behind it was received.
    is_lost: bool,
    /// Nothing behind it was received.
    is_last: bool,
}
