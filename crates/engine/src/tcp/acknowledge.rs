//! What an acknowledgment does: what arrived, what was lost, and how fast to go on.

use allosaur_packet::transport::tcp::TcpFlags;

use super::congestion::Acknowledged;
use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::CongestionAlgorithm;

/// How far the timeout stays backed off while no round trip can be measured: four times, or a bad
/// link would have to wait for minutes.
const BACKOFF_UNMEASURED_MAX: u8 = 2;

impl Connection {
    /// Returns whether the rest of the segment is looked at.
    #[inline(always)]
    pub(super) fn acknowledge(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if segment.ack.is_after(self.high) {
            // Of what was never sent (RFC 9293: "send an ACK, drop the segment, and return").
            cx.counters.rcvacktoomuch += 1;
            self.answer(cx, segment);
            return false;
        }
        if segment.ack.is_before(self.una) {
            // "The ACK value is considered acceptable only if it is in the range of
            // ((SND.UNA - MAX.SND.WND) =< SEG.ACK =< SND.NXT)" (RFC 5961, section 5.2).
            let is_ancient = segment.ack.until(self.una) > self.send_window_max;
            if is_ancient {
                self.answer(cx, segment);
            }
            return !is_ancient;
        }
        let sacked_more = !segment.sack.as_slice().is_empty() && self.note_sacked(cx, segment);
        if segment.ack == self.una {
            if self.una != self.high {
                self.note_duplicate(cx, segment, sacked_more);
            }
            return true;
        }
        self.advance(cx, segment, outcome);
        self.note_own_fin(cx, outcome)
    }

    /// Something new was acknowledged.
    #[inline]
    fn advance(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, outcome: &mut Outcome) {
        let after_timeout = self.has(Flag::HELD) && self.una.is_before(self.recover(cx));
        let (flight, bytes) = (self.una.until(self.high), self.una.until(segment.ack));
        let is_data = self.has(Flag::SYN_DONE);
        self.move_on(cx, segment.ack, outcome);
        let is_measured = self.measure(cx, segment);
        let is_certain = is_measured || self.has(Flag::TIMESTAMPS.or(Flag::PERSIST));
        self.backoff = if is_certain {
            0
        } else {
            // Karn: the timeout stays backed off until something that was sent once is measured;
            // else a round trip longer than the timeout could never be (RFC 6298, rule 5.5).
            self.backoff.min(BACKOFF_UNMEASURED_MAX)
        };
        if self.has(Flag::RECOVERY) {
            self.repair_further(cx, bytes);
        } else {
            self.dup_acks = 0;
            // "TCP also follows the normal procedures for increasing the congestion window when
            // it receives ACK packets without the ECN-Echo bit set" (RFC 3168, section 6.1.2).
            if !(segment.has(TcpFlags::ECE) && self.has(Flag::ECN)) {
                let always = cx.tunables.congestion == CongestionAlgorithm::Reno && is_data;
                if always || flight.saturating_mul(2) >= self.congestion.window_bytes {
                    self.grow(cx, bytes, after_timeout);
                }
            }
        }
        if self.has(Flag::HELD.or(Flag::SLOWED)) {
            self.pass_recover(cx);
        }
        self.clear(Flag::PERSIST.or(Flag::TIMED_OUT));
        // RFC 6298, rules 5.2 and 5.3.
        if self.una == self.high {
            self.timers.stop(Timer::Retransmit);
        } else if !self.is_impatient() {
            let at_ms = cx.now_ms.wrapping_add(self.rtt.timeout_ms(self.backoff));
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }

    /// "For the first partial ACK that arrives during fast recovery, also reset the retransmit
    /// timer" (RFC 6582, section 3.2, step 3), and not for the next: a repair without SACK fills
    /// one hole in a round trip, so where there are many, the timer is faster.
    fn is_impatient(&mut self) -> bool {
        if !self.has(Flag::RECOVERY) || self.has(Flag::SACK) {
            return false;
        }
        let is_again = self.has(Flag::ONCE);
        self.set(Flag::ONCE);
        is_again
    }

    /// What must be acknowledged before the repair is complete. It means something only with
    /// RECOVERY, HELD or SLOWED.
    pub(super) fn recover(&self, cx: &TcpContext<'_>) -> Seq {
        cx.sides.cold.look(self.cold).recover
    }

    /// What was lost below `recover` is over.
    #[cold]
    fn pass_recover(&mut self, cx: &TcpContext<'_>) {
        let recover = self.recover(cx);
        if self.una.is_before(recover) {
            return;
        }
        self.clear(Flag::SLOWED);
        // RFC 6582, section 3.2, step 2: without SACK, duplicates may still come of what was
        // sent in vain, so the acknowledgment must cover *more* than `recover`.
        let is_held = !self.has(Flag::SACK) && self.una == recover;
        if !is_held && !self.has(Flag::RECOVERY) {
            self.clear(Flag::HELD);
        }
    }

    /// Lets the window grow; the caller asked whether the connection uses it (RFC 7661 in its
    /// simplest form).
    pub(super) fn grow(&mut self, cx: &mut TcpContext<'_>, bytes: u32, after_timeout: bool) {
        let ack = Acknowledged {
            bytes,
            after_timeout,
            mss_bytes: u32::from(self.mss),
            round_trip_us: self.rtt.smoothed_us(),
            now_ms: cx.now_ms,
        };
        self.congestion
            .handle_acknowledged(cx.tunables.congestion, ack, || {
                &mut cx.sides.cold.of(&mut self.cold).cubic
            });
    }

    /// An acknowledgment of nothing new: a duplicate when it says nothing else either (RFC 5681,
    /// section 2), or when it says what arrived (RFC 6675, section 2).
    #[cold]
    fn note_duplicate(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, sacked_more: bool) {
        let says_nothing = segment.len == 0
            && !segment.has(TcpFlags::FIN)
            && self.scaled_window(segment) == self.send_window;
        let is_duplicate = if self.has(Flag::SACK) {
            sacked_more
        } else {
            says_nothing
        };
        // Who answers probes says nothing of losses.
        if !is_duplicate || self.has(Flag::PERSIST) {
            return;
        }
        cx.counters.rcvdupack += 1;
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.has(Flag::RECOVERY) {
            if !self.has(Flag::SACK) {
                // RFC 6582, section 3.2, step 3: something left the network.
                self.congestion.inflate(self.mss.into());
            }
            return;
        }
        let is_lost = self.dup_acks >= cx.tunables.duplicates_max
            || self.has(Flag::SACK) && self.is_first_lost(cx);
        // Not for what was already being repaired: RFC 6582, section 3.2, step 2; "a new loss
        // recovery phase MUST NOT be initiated until HighACK is greater than or equal to"
        // what was sent before a timeout (RFC 6675, section 5.1).
        if is_lost && !self.has(Flag::HELD) {
            self.repair(cx);
        }
    }

    /// Fast retransmit: what is oldest is lost.
    #[cold]
    fn repair(&mut self, cx: &mut TcpContext<'_>) {
        // What limited transmit sent does not count (RFC 5681, section 3.2, step 2).
        let flight = self.una.until(self.high).min(self.congestion.window_bytes);
        let mss = u32::from(self.mss);
        let is_slow_already = self.has(Flag::SLOWED) && self.una.is_before(self.recover(cx));
        let cold = cx.sides.cold.of(&mut self.cold);
        if !is_slow_already {
            let algorithm = cx.tunables.congestion;
            self.congestion
                .handle_congestion(algorithm, flight, mss, &mut cold.cubic);
        }
        cold.recover = self.high;
        self.set(Flag::RECOVERY.or(Flag::HELD).or(Flag::RESEND));
        self.clear(Flag::TIMING.or(Flag::SLOWED).or(Flag::ONCE));
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        if self.has(Flag::SACK) {
            cx.counters.sack_recovery_episode += 1;
            cx.sides.of(&mut self.side).resent = self.una;
        } else {
            let duplicates = u32::from(cx.tunables.duplicates_max);
            self.congestion.inflate(duplicates * mss);
        }
    }

    /// Something new was acknowledged during a repair.
    #[cold]
    fn repair_further(&mut self, cx: &mut TcpContext<'_>, bytes: u32) {
        let mss = u32::from(self.mss);
        if !self.una.is_before(self.recover(cx)) {
            // RFC 6582, section 3.2, step 3, full acknowledgment, option 1.
            let flight = self.una.until(self.high);
            let window = self.congestion.threshold_bytes;
            self.congestion.window_bytes = if self.has(Flag::SACK) {
                window
            } else {
                window.min(flight.max(mss) + mss)
            };
            self.leave_recovery(cx);
            self.dup_acks = 0;
            return;
        }
        if self.has(Flag::SACK) {
            return;
        }
        // A partial acknowledgment: the next is lost too.
        let window = self.congestion.window_bytes.saturating_sub(bytes);
        let back = if bytes >= mss { mss } else { 0 };
        self.congestion.window_bytes = (window + back).max(mss);
        self.set(Flag::RESEND);
    }

    pub(super) fn leave_recovery(&mut self, cx: &mut TcpContext<'_>) {
        self.clear(Flag::RECOVERY.or(Flag::RESEND));
        self.release_idle_side(cx);
    }

    /// The other side saw congestion: as slow as after a loss, once a round trip (RFC 3168,
    /// section 6.1.2).
    #[cold]
    pub(super) fn slow_down(&mut self, cx: &mut TcpContext<'_>) {
        if self.has(Flag::RECOVERY.or(Flag::HELD).or(Flag::SLOWED)) {
            return;
        }
        let (flight, mss) = (self.una.until(self.high), u32::from(self.mss));
        let (algorithm, cold) = (cx.tunables.congestion, cx.sides.cold.of(&mut self.cold));
        self.congestion
            .handle_congestion(algorithm, flight, mss, &mut cold.cubic);
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        cold.recover = self.high;
        self.set(Flag::ECN_REDUCED.or(Flag::SLOWED));
        cx.counters.ecn_rcwnd += 1;
    }

    /// Whether the other side now has our FIN. Returns whether the connection goes on.
    #[inline]
    pub(super) fn note_own_fin(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) -> bool {
        if !self.has(Flag::FIN_SENT) || !self.una.is_after(self.end) {
            return true;
        }
        match self.state {
            TcpState::FinWait1 => {
                self.state = TcpState::FinWait2;
                self.wait_for_fin(cx);
            }
            TcpState::Closing => {
                self.wait_for_stragglers(cx);
                outcome.ended = Some(End::Closed);
            }
            TcpState::LastAck => {
                self.end(cx, End::Closed, outcome);
                return false;
            }
            TcpState::SynSent
            | TcpState::SynReceived
            | TcpState::Established
            | TcpState::CloseWait
            | TcpState::FinWait2
            | TcpState::TimeWait
            | TcpState::Closed => {}
        }
        true
    }
}
