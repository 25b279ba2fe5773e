//! The checks that a segment passes before its ACK field is processed: the first to the fifth step of RFC
//! 9293, section 3.10.7.4, with RFC 5961 and RFC 7323.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::input::Part;
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;

/// A timestamp older than this says nothing any more (RFC 7323, section 5.5: 24 days).
const TIMESTAMP_MS_MAX: u32 = 24 * 24 * 3600 * 1000;

impl Connection {
    /// The part of a segment that is acceptable; `None` where it is dropped.
    #[inline(never)]
    pub(super) fn acceptable_part(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> Option<Part> {
        let mut part = Part::of(segment);
        let is_acceptable = self.check_timestamp(cx, segment)
            && self.check_reset(cx, segment, outcome)
            && self.check_sequence(cx, segment, &mut part)
            && self.check_syn(cx, segment, &mut part)
            // The fifth step: "if the ACK bit is off, drop the segment and return".
            && segment.has(TcpFlags::ACK);
        is_acceptable.then_some(part)
    }

    /// PAWS (RFC 7323, section 5): what has an old timestamp is an old segment.
    #[inline]
    fn check_timestamp(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        if !self.has(Flag::TIMESTAMPS) || segment.has(TcpFlags::RST) {
            return true;
        }
        let Some((value, _)) = segment.timestamps else {
            // "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the
            // segment" (section 3.2). A SYN again is answered below.
            return segment.has(TcpFlags::SYN);
        };
        let silence_ms = cx.now_ms.wrapping_sub(self.last_received_ms);
        if !Seq(value).is_before(Seq(self.ts_recent)) || silence_ms > TIMESTAMP_MS_MAX {
            return true;
        }
        cx.counters.pawsdrop += 1;
        if segment.len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(segment.len);
        }
        self.challenge_ack(cx, segment);
        false
    }

    /// The RST bit (second step): it counts when its sequence number is exactly RCV.NXT; in the window a
    /// challenge ACK answers it (RFC 5961, section 3.2).
    #[inline]
    fn check_reset(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.has(TcpFlags::RST) {
            return true;
        }
        if segment.seq == self.rcv_nxt {
            // The peer has all that we sent, and sent all: nothing is lost.
            let is_over = matches!(
                self.state,
                TcpState::TimeWait | TcpState::Closing | TcpState::LastAck
            ) && !self.snd_una.is_before(self.write_seq);
            let how = if is_over { End::Closed } else { End::Reset };
            let acks_all = segment.has(TcpFlags::ACK)
                && !segment.ack.is_before(self.write_seq)
                && !segment.ack.is_after(self.snd_max);
            self.enter_closed(cx, how, outcome);
            if acks_all {
                self.set(Flag::ALL_ACKED);
            }
        } else if segment.seq.is_after(self.rcv_nxt) && segment.seq.is_before(self.rcv_adv) {
            self.challenge_ack(cx, segment);
        }
        false
    }

    /// The sequence number (first step): what lies outside of the window is cut off.
    #[inline]
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
        if part.seq.is_before(self.rcv_nxt) {
            self.trim_front(cx, segment, part);
        }
        let end = part.seq + part.len;
        if !end.is_after(self.rcv_adv) {
            return true;
        }
        if part.len == 0 {
            self.challenge_ack(cx, segment);
            return false;
        }
        let beyond = self.rcv_adv.until(end).min(part.len);
        if part.seq == self.rcv_adv && part.seq == self.rcv_nxt {
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
        !part.seq.is_after(self.rcv_adv)
    }

    /// Cuts off what was received before. When nothing is left the ACK still counts: both sides may have
    /// lost their last.
    fn trim_front(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, part: &mut Part) {
        let old = part.seq.until(self.rcv_nxt);
        let len = part.len;
        part.seq = self.rcv_nxt;
        if old < segment.span() {
            part.len -= old;
            cx.counters.rcvpartduppack += 1;
            cx.counters.rcvpartdupbyte += u64::from(old);
            return;
        }
        // Our ACK of it was lost, or this is a keepalive probe.
        part.len = 0;
        part.fin = false;
        if len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(len);
        }
        self.challenge_ack(cx, segment);
        if segment.has(TcpFlags::FIN) && self.state == TcpState::TimeWait {
            // "Acknowledge it, and restart the 2 MSL timeout" (eighth step).
            self.enter_time_wait(cx);
        }
    }

    /// A challenge ACK answers a segment that is not acceptable; segments without data get only a few a
    /// second, or two ends that disagree would answer each other for ever (RFC 5961, section 7).
    pub(super) fn challenge_ack(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        let pool = &mut cx.recovery.cold;
        if segment.span() > 0 || !pool.challenged_recently(self.cold, cx.now_ms) {
            pool.note_challenge_ack(&mut self.cold, cx.now_ms);
            self.set(Flag::ACK_NOW);
        }
    }
}
