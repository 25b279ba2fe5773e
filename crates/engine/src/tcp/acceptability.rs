//! Whether a segment that arrives has a place in a connection: the first to the fifth step of RFC
//! 9293, section 3.10.7.4, with RFC 5961 and RFC 7323.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::input::Part;
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;

/// A timestamp older than this says nothing any more (RFC 7323, section 5.5: 24 days).
const TIMESTAMP_MS_MAX: u32 = 24 * 24 * 3600 * 1000;

/// Each step says whether the next one follows.
impl Connection {
    pub(super) fn check(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        part: &mut Part,
        outcome: &mut Outcome,
    ) -> bool {
        self.check_timestamp(cx, segment)
            && self.check_reset(cx, segment, outcome)
            && self.check_sequence(cx, segment, part)
            && self.check_syn(cx, segment, part)
            && self.check_acknowledgment(cx, segment, outcome)
    }

    /// PAWS (RFC 7323, section 5): what has an old timestamp is an old segment.
    fn check_timestamp(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        if !self.has(Flag::TIMESTAMPS) || segment.has(TcpFlags::RST) {
            return true;
        }
        let Some((value, _)) = segment.timestamps else {
            // "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the
            // segment" (section 3.2). A SYN again is answered below.
            return segment.has(TcpFlags::SYN);
        };
        let silence_ms = cx.now_ms.wrapping_sub(self.heard_ms);
        if !Seq(value).is_before(Seq(self.timestamp)) || silence_ms > TIMESTAMP_MS_MAX {
            return true;
        }
        cx.counters.pawsdrop += 1;
        if segment.len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(segment.len);
        }
        self.answer(cx, segment);
        false
    }

    /// A reset counts when it has exactly the number that is expected; near it, the other side
    /// is asked again (RFC 5961, section 3.2).
    fn check_reset(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.has(TcpFlags::RST) {
            return true;
        }
        if segment.seq == self.expected {
            // Who has all that we sent, and sent all, may forget us: nothing is lost.
            let is_over = matches!(
                self.state,
                TcpState::TimeWait | TcpState::Closing | TcpState::LastAck
            ) && !self.una.is_before(self.end);
            let how = if is_over { End::Closed } else { End::Reset };
            self.end(cx, how, outcome);
        } else if segment.seq.is_after(self.expected) && segment.seq.is_before(self.offered) {
            self.answer(cx, segment);
        }
        false
    }

    /// Cuts what lies outside of the window (RFC 9293, section 3.10.7.4, first).
    fn check_sequence(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        part: &mut Part,
    ) -> bool {
        if segment.has(TcpFlags::SYN) {
            // Whatever its number is: `check_syn` judges it.
            return true;
        }
        if part.seq.is_before(self.expected) {
            self.cut_front(cx, segment, part);
        }
        let end = part.seq + part.len;
        if !end.is_after(self.offered) {
            return true;
        }
        if part.len == 0 {
            self.answer(cx, segment);
            return false;
        }
        let beyond = self.offered.until(end).min(part.len);
        if part.seq == self.offered && part.seq == self.expected {
            cx.counters.rcvwinprobe += 1;
        } else {
            cx.counters.rcvpackafterwin += 1;
            cx.counters.rcvbyteafterwin += u64::from(beyond);
        }
        self.set(Flag::ACK_NOW);
        part.len -= beyond;
        part.fin = false;
        // "If the RCV.WND is zero, no segments will be acceptable, but special allowance should
        // be made to accept valid ACKs": at the edge of the window the acknowledgment counts.
        !part.seq.is_after(self.offered)
    }

    /// Cuts off what has arrived before. When nothing is left the acknowledgment still counts: it
    /// may be that both sides lost their last.
    fn cut_front(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, part: &mut Part) {
        let old = part.seq.until(self.expected);
        let len = part.len;
        part.seq = self.expected;
        if old < segment.span() {
            part.len -= old;
            cx.counters.rcvpartduppack += 1;
            cx.counters.rcvpartdupbyte += u64::from(old);
            return;
        }
        // Our acknowledgment of it was lost, or this asks whether we are there.
        part.len = 0;
        part.fin = false;
        if len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(len);
        }
        self.answer(cx, segment);
        if segment.has(TcpFlags::FIN) && self.state == TcpState::TimeWait {
            // "Acknowledge it, and restart the 2 MSL timeout" (eighth step).
            self.wait_for_stragglers(cx);
        }
    }

    /// A SYN has no place here: the other side is asked (RFC 5961, section 4.2). Before the
    /// connection is there, it is the first one again.
    fn check_syn(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, part: &mut Part) -> bool {
        if !segment.has(TcpFlags::SYN) {
            return true;
        }
        let is_first_again = segment.seq + 1 == self.expected;
        if self.state == TcpState::SynReceived && is_first_again {
            if segment.has(TcpFlags::ACK) {
                // Both sides connected at the same time, and this is the answer to our SYN.
                part.seq = self.expected;
                part.len = part.len.min(self.expected.until(self.offered));
                part.fin &= part.len == segment.len;
                return true;
            }
            self.note_timestamp(segment);
            self.resend_syn();
            return false;
        }
        cx.counters.badsyn += u64::from(!is_first_again);
        self.answer(cx, segment);
        false
    }

    /// All but the first segment acknowledge (fifth step); in SYN-RECEIVED that makes the
    /// connection.
    fn check_acknowledgment(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.has(TcpFlags::ACK) {
            return false;
        }
        if self.state != TcpState::SynReceived {
            return true;
        }
        if !segment.ack.is_after(self.una) || segment.ack.is_after(self.high) {
            // Not of this connection (RFC 9293): it gets a reset, we go on waiting.
            outcome.refused = true;
            return false;
        }
        self.become_established(cx, outcome);
        true
    }

    /// Tells the other side where we are, after something that has no place here. What is empty
    /// is answered a few times a second only: else two sides that disagree would answer each
    /// other for ever (RFC 5961, section 7).
    pub(super) fn answer(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        let pool = &mut cx.sides.cold;
        if segment.span() > 0 || !pool.has_answered(self.cold, cx.now_ms) {
            pool.note_answer(&mut self.cold, cx.now_ms);
            self.set(Flag::ACK_NOW);
        }
    }
}
