//! What the other side has beyond what is missing, and so what is lost (RFC 6675).

use super::connection::{Connection, Flag, TcpContext};
use super::segment::Segment;
use super::seq::Seq;

/// Ranges that are remembered.
const RANGES_MAX: usize = 64;

impl Connection {
    /// Takes the SACK option of a segment. Returns whether it told anything new.
    pub(super) fn note_sacked(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        let blocks = segment.sack.as_slice();
        if blocks.is_empty() || !self.has(Flag::SACK) {
            return false;
        }
        cx.counters.sack_rcv_blocks += 1;
        let una = self.una.max(segment.ack);
        let mut new_bytes = 0;
        for block in blocks {
            let (left, right) = (Seq(block.left), Seq(block.right));
            // Below what is acknowledged: a duplicate arrived (RFC 2883).
            let makes_sense = left.is_before(right) && !right.is_after(self.high);
            if !makes_sense || !right.is_after(una) {
                continue;
            }
            let side = cx.sides.of(&mut self.side);
            match side.sacked.insert(left.max(una), right, RANGES_MAX) {
                Some(bytes) => new_bytes += bytes,
                None => cx.counters.sack_sboverflow += 1,
            }
        }
        new_bytes > 0
    }

    /// Forgets what is acknowledged now.
    pub(super) fn trim_sacked(&mut self, cx: &mut TcpContext<'_>) {
        let una = self.una;
        let side = cx.sides.of(&mut self.side);
        side.sacked.trim(una);
        side.resent = side.resent.max(una);
        self.release_idle_side(cx);
    }

    /// Forgets all: who answers a timeout may have thrown it away.
    pub(super) fn forget_sacked(&mut self, cx: &mut TcpContext<'_>) {
        if self.side.is_some() {
            cx.sides.of(&mut self.side).sacked.clear();
            self.release_idle_side(cx);
        }
    }

    /// Gives the side block back when nothing is in it.
    pub(super) fn release_idle_side(&mut self, cx: &mut TcpContext<'_>) {
        let Some(side) = cx.sides.look(self.side) else {
            return;
        };
        if side.sacked.is_empty() && side.arrived.is_empty() && !self.has(Flag::RECOVERY) {
            cx.sides.release(&mut self.side);
        }
    }

    /// What is neither acknowledged nor sacked, in order.
    fn holes<'a>(&self, cx: &'a TcpContext<'_>) -> impl Iterator<Item = Hole> + 'a {
        let side = cx.sides.look(self.side);
        let sacked = side.map_or(&[][..], |side| side.sacked.as_slice());
        let duplicates = u32::from(cx.tunables.duplicates_max);
        let enough_bytes = (duplicates - 1) * u32::from(self.mss);
        // What is sacked above the hole.
        let mut bytes = side.map_or(0, |side| side.sacked.bytes());
        let mut count = sacked.len() as u32;
        let (mut from, high) = (self.una, self.high);
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

    /// Whether what is oldest is lost.
    pub(super) fn is_first_lost(&self, cx: &TcpContext<'_>) -> bool {
        self.side.is_some() && self.holes(cx).next().is_some_and(|hole| hole.is_lost)
    }

    /// Bytes that are thought to be under way (RFC 6675, section 4, SetPipe).
    fn pipe_bytes(&self, cx: &TcpContext<'_>) -> u32 {
        let resent = self.resent(cx);
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

    /// All before this was sent again in this repair (HighRxt).
    fn resent(&self, cx: &TcpContext<'_>) -> Seq {
        let side = cx.sides.look(self.side);
        side.map_or(self.una, |side| side.resent.max(self.una))
    }

    /// Whether another segment may leave during a repair (RFC 6675, section 5, step C).
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
        let (resent, recover) = (self.resent(cx), self.recover(cx));
        let mut open = self.holes(cx).filter_map(|hole| {
            let (from, to) = (hole.from.max(resent), hole.to.min(recover));
            let is_wanted = hole.is_lost || any && !hole.is_last;
            (is_wanted && from.is_before(to)).then_some((from, to))
        });
        let (from, to) = open.next()?;
        Some((from, from.until(to).min(span_max)))
    }

    /// The oldest segment, with which a repair begins.
    pub(super) fn first_hole(&self, cx: &TcpContext<'_>, span_max: u32) -> Option<(Seq, u32)> {
        let hole = self.holes(cx).next()?;
        Some((hole.from, hole.from.until(hole.to).min(span_max)))
    }

    /// The end of what is under way, once in a repair when nothing else may leave: "we provide
    /// the opportunity for a single 'rescue' retransmission per entry into loss recovery"
    /// (NextSeg, rule 4). Not after new data, which will tell of losses itself.
    pub(super) fn rescue(&self, cx: &TcpContext<'_>, span_max: u32) -> Option<(Seq, u32)> {
        if self.has(Flag::ONCE) || self.high != self.recover(cx) {
            return None;
        }
        let hole = self.holes(cx).last()?;
        let from = hole.from.max(hole.to - span_max);
        let is_open = !from.is_before(self.resent(cx));
        is_open.then(|| (from, from.until(hole.to)))
    }

    /// All before `to` that is not sacked was sent again.
    pub(super) fn note_resent(&mut self, cx: &mut TcpContext<'_>, to: Seq) {
        let side = cx.sides.of(&mut self.side);
        side.resent = side.resent.max(to);
    }

    /// Where to go on after a timeout: what the other side says it has is left out. And how far.
    pub(super) fn skip_sacked(&self, cx: &TcpContext<'_>) -> (Seq, Option<Seq>) {
        let Some(side) = cx.sides.look(self.side) else {
            return (self.next, None);
        };
        let inside = side.sacked.around(self.next);
        let seq = inside.map_or(self.next, |range| range.1);
        let mut above = side.sacked.as_slice().iter().map(|range| range.0);
        (seq, above.find(|left| left.is_after(seq)))
    }
}

/// What is missing on the other side.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: Seq,
    to: Seq,
    /// Enough after it has arrived.
    is_lost: bool,
    /// Nothing after it has arrived.
    is_last: bool,
}
