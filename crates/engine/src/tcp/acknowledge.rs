//! What an acknowledgment does: what arrived, what was lost, and how fast to go on.
//!
//! What lives here: the fifth step of RFC 9293, section 3.10.7.4, with loss recovery by
//! duplicates (RFC 5681, RFC 6582) and by SACK (RFC 6675). What does not: how large the window is
//! (`congestion`), which hole is filled next (`scoreboard`).

use allosaur_packet::tcp::TcpFlags;

use super::congestion::Acknowledged;
use super::connection::{Connection, Context, Flag, State};
use super::input::Verdict;
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;

impl Connection {
    pub(super) fn acknowledge(
        &mut self,
        cx: &mut Context<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> Verdict {
        if segment.ack.is_after(self.high) {
            // Of what was never sent (RFC 9293: "send an ACK, drop the segment, and return").
            cx.counters.rcvacktoomuch += 1;
            self.set(Flag::ACK_NOW);
            return Verdict::Drop;
        }
        if segment.ack.is_before(self.una) {
            return Verdict::Continue;
        }
        let sacked_more = self.note_sacked(cx, segment);
        if segment.ack == self.una {
            self.note_duplicate(cx, segment, sacked_more);
            return Verdict::Continue;
        }
        let before = (self.una.until(self.high), self.una);
        self.advance(cx, segment.ack, outcome);
        self.measure(cx, segment);
        self.backoff = 0;
        if self.has(Flag::RECOVERY) {
            self.repair_further(before.1.until(segment.ack));
        } else {
            self.dup_acks = 0;
            self.grow(cx, before.0, before.1.until(segment.ack));
        }
        // RFC 6298, rules 5.2 and 5.3.
        self.clear(Flag::PERSIST);
        if self.una == self.high {
            self.timers.stop(Timer::Retransmit);
        } else {
            let at_ms = cx.now_ms.wrapping_add(self.rtt.timeout_ms(0));
            self.timers.set(Timer::Retransmit, at_ms);
        }
        self.note_own_fin(cx, outcome)
    }

    /// Moves on to `ack`.
    fn advance(&mut self, cx: &mut Context<'_>, ack: Seq, outcome: &mut Outcome) {
        let bytes = self.oldest_byte().until(ack.min(self.end));
        cx.counters.rcvackpack += 1;
        cx.counters.rcvackbyte += u64::from(bytes);
        cx.counters.rcvackbyte_of += u64::from(self.una.until(ack));
        outcome.acknowledged_bytes += bytes;
        self.una = ack;
        self.next = self.next.max(ack);
        self.trim_sacked(cx);
    }

    /// Measures the round trip: of the one segment that is timed, or by timestamps (RFC 7323,
    /// section 4). Karn: not of what was sent again.
    fn measure(&mut self, cx: &mut Context<'_>, segment: &Segment) {
        if self.has(Flag::TIMING) {
            if !segment.ack.is_before(self.timed) {
                self.clear(Flag::TIMING);
                cx.counters.rttupdated += 1;
                self.rtt.measure(cx.now_us.wrapping_sub(self.timed_us));
            }
            return;
        }
        if let (Some((_, echo)), true) = (segment.timestamps, self.has(Flag::TIMESTAMPS)) {
            let passed_ms = cx.now_ms.wrapping_sub(echo);
            // An echo from the future, or of days ago, is nonsense.
            if echo != 0 && passed_ms < 1 << 20 {
                cx.counters.rttupdated += 1;
                // The clock of timestamps ticks once a millisecond.
                self.rtt.measure(passed_ms.max(1) * 1_000);
            }
        }
    }

    /// Lets the window grow, where the connection uses it (RFC 7661 in its simplest form).
    fn grow(&mut self, cx: &Context<'_>, flight_before: u32, bytes: u32) {
        if flight_before.saturating_mul(2) < self.congestion.window_bytes {
            return;
        }
        let ack = Acknowledged {
            bytes,
            mss_bytes: u32::from(self.mss),
            round_trip_us: self.rtt.smoothed_us(),
            now_ms: cx.now_ms,
        };
        self.congestion
            .handle_acknowledged(cx.tunables.congestion, ack);
    }

    /// An acknowledgment of nothing new: a duplicate when it says nothing else either (RFC 5681,
    /// section 2), or when it says what arrived (RFC 6675, section 2).
    fn note_duplicate(&mut self, cx: &mut Context<'_>, segment: &Segment, sacked_more: bool) {
        let says_nothing = segment.len == 0
            && !segment.has(TcpFlags::FIN)
            && self.scaled_window(segment) == self.send_window;
        let is_duplicate = if self.has(Flag::SACK) {
            sacked_more
        } else {
            says_nothing
        };
        let is_probing = self.has(Flag::PERSIST);
        if !is_duplicate || self.una == self.high || is_probing {
            return;
        }
        cx.counters.rcvdupack += 1;
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.has(Flag::RECOVERY) {
            if !self.has(Flag::SACK) {
                // RFC 6582, section 3.2, step 3: something left the network.
                self.congestion.window_bytes += u32::from(self.mss);
            }
            return;
        }
        let is_lost = self.dup_acks >= cx.tunables.duplicates_max
            || self.is_lost(cx, self.una) && self.has(Flag::SACK);
        // RFC 6582, section 3.2, step 2: not for what was already being repaired.
        if is_lost && !self.una.is_before(self.recover) {
            self.repair(cx);
        }
    }

    /// Fast retransmit: what is oldest is lost.
    fn repair(&mut self, cx: &mut Context<'_>) {
        let flight = self.una.until(self.high);
        let mss = u32::from(self.mss);
        self.congestion
            .handle_congestion(cx.tunables.congestion, flight, mss);
        self.recover = self.high;
        self.set(Flag::RECOVERY);
        self.set(Flag::RESEND);
        self.clear(Flag::TIMING);
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        if self.has(Flag::SACK) {
            cx.counters.sack_recovery_episode += 1;
            cx.sides.of(&mut self.side).resent = self.una;
        } else {
            let duplicates = u32::from(cx.tunables.duplicates_max);
            self.congestion.window_bytes += duplicates * mss;
        }
    }

    /// Something new was acknowledged during a repair.
    fn repair_further(&mut self, bytes: u32) {
        let mss = u32::from(self.mss);
        if !self.una.is_before(self.recover) {
            // RFC 6582, section 3.2, step 3, full acknowledgment, option 1.
            let flight = self.una.until(self.high);
            let window = self.congestion.threshold_bytes;
            self.congestion.window_bytes = if self.has(Flag::SACK) {
                window
            } else {
                window.min(flight.max(mss) + mss)
            };
            self.leave_recovery();
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

    pub(super) fn leave_recovery(&mut self) {
        self.clear(Flag::RECOVERY);
        self.clear(Flag::RESEND);
    }

    /// The other side saw congestion: as slow as after a loss, once a round trip (RFC 3168,
    /// section 6.1.2).
    pub(super) fn slow_down(&mut self, cx: &mut Context<'_>) {
        if self.has(Flag::RECOVERY) || self.una.is_before(self.recover) {
            return;
        }
        let (flight, mss) = (self.una.until(self.high), u32::from(self.mss));
        self.congestion
            .handle_congestion(cx.tunables.congestion, flight, mss);
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        self.recover = self.high;
        self.set(Flag::ECN_REDUCED);
        cx.counters.ecn_rcwnd += 1;
    }

    /// Whether the other side now has our FIN.
    fn note_own_fin(&mut self, cx: &mut Context<'_>, outcome: &mut Outcome) -> Verdict {
        if !self.has(Flag::FIN_SENT) || !self.una.is_after(self.end) {
            return Verdict::Continue;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => {
                self.wait_for_stragglers(cx);
                outcome.ended = Some(End::Closed);
            }
            State::LastAck => {
                self.end(cx, End::Closed, outcome);
                return Verdict::Drop;
            }
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::CloseWait
            | State::FinWait2
            | State::TimeWait
            | State::Closed => {}
        }
        Verdict::Continue
    }
}
