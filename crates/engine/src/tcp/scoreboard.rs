//! What the other side has beyond what is missing, and so what is lost (RFC 6675).
//!
//! What lives here: the scoreboard, and which piece to send next from it. What does not: when a
//! repair begins and ends (`acknowledge`).

use super::connection::{Connection, Context, Flag};
use super::segment::Segment;
use super::seq::Seq;

/// Ranges that are remembered.
const RANGES_MAX: usize = 64;

impl Connection {
    /// Takes the SACK option of a segment. Returns whether it told anything new.
    pub(super) fn note_sacked(&mut self, cx: &mut Context<'_>, segment: &Segment) -> bool {
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
    pub(super) fn trim_sacked(&mut self, cx: &mut Context<'_>) {
        if !self.side.is_some() {
            return;
        }
        let una = self.una;
        let side = cx.sides.of(&mut self.side);
        side.sacked.trim(una);
        side.resent = side.resent.max(una);
        self.release_idle_side(cx);
    }

    /// Forgets all: who answers a timeout may have thrown it away.
    pub(super) fn forget_sacked(&mut self, cx: &mut Context<'_>) {
        if self.side.is_some() {
            cx.sides.of(&mut self.side).sacked.clear();
            self.release_idle_side(cx);
        }
    }

    /// Gives the side block back when nothing is in it.
    pub(super) fn release_idle_side(&mut self, cx: &mut Context<'_>) {
        let Some(side) = cx.sides.look(self.side) else {
            return;
        };
        if side.sacked.is_empty() && side.arrived.is_empty() && !self.has(Flag::RECOVERY) {
            cx.sides.release(&mut self.side);
        }
    }

    /// Whether the byte at `seq`, which is not sacked, is lost: enough after it has arrived
    /// (RFC 6675, section 4, IsLost).
    pub(super) fn is_lost(&self, cx: &Context<'_>, seq: Seq) -> bool {
        let Some(side) = cx.sides.look(self.side) else {
            return false;
        };
        let above = side.sacked.as_slice().iter();
        let above = above.filter(|range| range.0.is_after(seq));
        let (count, bytes) = above.fold((0, 0), |(count, bytes), range| {
            (count + 1, bytes + range.0.until(range.1))
        });
        let duplicates = u32::from(cx.tunables.duplicates_max);
        count >= duplicates || bytes > (duplicates - 1) * u32::from(self.mss)
    }

    /// Bytes that are thought to be under way (RFC 6675, section 4, SetPipe).
    fn pipe_bytes(&self, cx: &Context<'_>) -> u32 {
        let Some(side) = cx.sides.look(self.side) else {
            return self.una.until(self.high);
        };
        let mut pipe = 0;
        for (from, to) in self.holes(cx) {
            if !self.is_lost(cx, from) {
                pipe += from.until(to);
            }
            pipe += from.until(to.min(side.resent));
        }
        pipe
    }

    /// What is neither acknowledged nor sacked, in order.
    fn holes<'a>(&self, cx: &'a Context<'_>) -> impl Iterator<Item = (Seq, Seq)> + 'a {
        let (una, high) = (self.una, self.high);
        let sacked = cx.sides.look(self.side);
        let sacked = sacked.map_or(&[][..], |side| side.sacked.as_slice());
        let ends = sacked.iter().map(|range| range.0).chain([high]);
        let starts = [una].into_iter().chain(sacked.iter().map(|range| range.1));
        starts.zip(ends).filter(|(from, to)| from.is_before(*to))
    }

    /// The piece that is sent next in a repair (NextSeg, rules 1 and 3); `None` when the window
    /// has no room, or nothing is lost.
    pub(super) fn next_hole(&self, cx: &Context<'_>) -> Option<(Seq, u32)> {
        let mss = u32::from(self.mss);
        let must = self.has(Flag::RESEND);
        if !must && !self.pipe_has_room(cx) {
            return None;
        }
        let resent = cx
            .sides
            .look(self.side)
            .map_or(self.una, |side| side.resent);
        let holes = self.holes(cx);
        let mut open = holes.filter_map(|(from, to)| {
            let from = from.max(resent);
            let to = to.min(self.recover);
            from.is_before(to).then_some((from, to))
        });
        let (from, to) = open.find(|(from, _)| must || self.is_lost(cx, *from))?;
        Some((from, from.until(to).min(mss)))
    }

    /// Whether another segment may leave during a repair (RFC 6675, section 5, step C).
    pub(super) fn pipe_has_room(&self, cx: &Context<'_>) -> bool {
        let room = self.congestion.window_bytes;
        room.saturating_sub(self.pipe_bytes(cx)) >= u32::from(self.mss)
    }

    /// All before `to` that is not sacked was sent again.
    pub(super) fn note_resent(&mut self, cx: &mut Context<'_>, to: Seq) {
        if self.has(Flag::SACK) && self.has(Flag::RECOVERY) {
            let side = cx.sides.of(&mut self.side);
            side.resent = side.resent.max(to);
        }
    }
}
