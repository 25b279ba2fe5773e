//! Loss recovery (RFC 5681, RFC 6582, RFC 6675) and the reduction of the window by ECN (RFC 3168): what an
//! ACK does while something is lost, or is the sign of it.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext};
use super::input::Advance;
use super::segment::Segment;
use super::seq::Seq;

/// How far the timeout stays backed off while no round trip can be measured: four times, or a lossy
/// link would wait for minutes.
const BACKOFF_UNMEASURED_MAX: u8 = 2;

impl Connection {
    /// The ACK advanced SND.UNA in recovery, or after duplicate ACKs or a timeout. Returns whether the
    /// retransmission timer is restarted.
    #[cold]
    pub(super) fn advance_in_recovery(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        advance: Advance,
    ) -> bool {
        let is_certain = advance.is_measured || self.has(Flag::TIMESTAMPS.or(Flag::PERSIST));
        self.backoff = if is_certain {
            0
        } else {
            // Karn: the timeout stays backed off until something that was sent once is measured;
            // else a round trip longer than the timeout could never be (RFC 6298, rule 5.5).
            self.backoff.min(BACKOFF_UNMEASURED_MAX)
        };
        if self.has(Flag::FAST_RECOVERY) {
            self.process_ack_in_recovery(cx, advance.bytes);
        } else {
            self.dup_acks = 0;
            self.grow_window(cx, segment, advance);
        }
        if self.has(Flag::BELOW_RECOVER.or(Flag::CONGESTION_RECOVERY)) {
            self.exit_below_recover(cx);
        }
        self.clear(Flag::PERSIST.or(Flag::RTO_EXPIRED));
        !self.is_impatient()
    }

    /// Whether `recover` is not acknowledged yet.
    #[cold]
    pub(super) fn is_below_recover(&self, cx: &TcpContext<'_>) -> bool {
        self.has(Flag::BELOW_RECOVER) && self.snd_una.is_before(self.recover(cx))
    }

    /// The Impatient variant of NewReno (RFC 6582, section 4): "For the first partial ACK that arrives
    /// during fast recovery, also reset the retransmit timer" (section 3.2, step 3), and not for the
    /// next. Without SACK one hole is filled in a round trip; where there are many, the timer is faster.
    fn is_impatient(&mut self) -> bool {
        if !self.has(Flag::FAST_RECOVERY) || self.has(Flag::SACK) {
            return false;
        }
        let is_repeated = self.has(Flag::PARTIAL_ACKED);
        self.set(Flag::PARTIAL_ACKED);
        is_repeated
    }

    /// What must be acknowledged before recovery is complete (`recover` of RFC 6582).
    pub(super) fn recover(&self, cx: &TcpContext<'_>) -> Seq {
        cx.recovery.cold.get(self.cold).recover
    }

    /// Where `recover` is acknowledged, the next loss begins a new recovery.
    #[cold]
    fn exit_below_recover(&mut self, cx: &TcpContext<'_>) {
        let recover = self.recover(cx);
        if self.snd_una.is_before(recover) {
            return;
        }
        self.clear(Flag::CONGESTION_RECOVERY);
        // RFC 6582, section 3.2, step 2: without SACK, duplicates may still come of what was
        // sent in vain, so the acknowledgment must cover *more* than `recover`.
        let is_below = !self.has(Flag::SACK) && self.snd_una == recover;
        if !is_below && !self.has(Flag::FAST_RECOVERY) {
            self.clear(Flag::BELOW_RECOVER);
        }
    }

    /// An ACK of SND.UNA: a duplicate where the segment has nothing else (RFC 5681, section 2), or with
    /// SACK where it sacks more (RFC 6675, section 2).
    #[cold]
    pub(super) fn process_duplicate_ack(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        sacked_more: bool,
    ) {
        let is_pure = segment.len == 0
            && !segment.has(TcpFlags::FIN)
            && self.scaled_window(segment) == self.snd_wnd;
        let is_duplicate = if self.has(Flag::SACK) {
            sacked_more
        } else {
            is_pure
        };
        // The answer to a probe is no sign of loss.
        if !is_duplicate || self.has(Flag::PERSIST) {
            return;
        }
        cx.counters.rcvdupack += 1;
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.has(Flag::FAST_RECOVERY) {
            if !self.has(Flag::SACK) {
                // RFC 6582, section 3.2, step 3: something left the network.
                self.congestion.inflate(self.mss.into());
            }
            return;
        }
        let is_lost = self.dup_acks >= cx.tunables.duplicates_max
            || self.has(Flag::SACK) && self.is_first_lost(cx);
        // Not for what is in recovery already: RFC 6582, section 3.2, step 2; "a new loss
        // recovery phase MUST NOT be initiated until HighACK is greater than or equal to"
        // what was sent before a timeout (RFC 6675, section 5.1).
        if is_lost && !self.has(Flag::BELOW_RECOVER) {
            self.enter_recovery(cx);
        }
    }

    /// Fast retransmit: the first unacknowledged segment is lost.
    #[cold]
    fn enter_recovery(&mut self, cx: &mut TcpContext<'_>) {
        // What limited transmit sent does not count (RFC 5681, section 3.2, step 2).
        let flight = self
            .snd_una
            .until(self.snd_max)
            .min(self.congestion.window_bytes);
        let mss = u32::from(self.mss);
        let is_reduced =
            self.has(Flag::CONGESTION_RECOVERY) && self.snd_una.is_before(self.recover(cx));
        let cold = cx.recovery.cold.of(&mut self.cold);
        if !is_reduced {
            let algorithm = cx.tunables.congestion;
            self.congestion
                .handle_congestion(algorithm, flight, mss, &mut cold.cubic);
        }
        cold.recover = self.snd_max;
        self.set(
            Flag::FAST_RECOVERY
                .or(Flag::BELOW_RECOVER)
                .or(Flag::RETRANSMIT_NOW),
        );
        self.clear(
            Flag::RTT_TIMING
                .or(Flag::CONGESTION_RECOVERY)
                .or(Flag::RESCUE_SENT)
                .or(Flag::PARTIAL_ACKED),
        );
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        if self.has(Flag::SACK) {
            cx.counters.sack_recovery_episode += 1;
            cx.recovery.of(&mut self.recovery).high_rxt = self.snd_una;
        } else {
            let duplicates = u32::from(cx.tunables.duplicates_max);
            self.congestion.inflate(duplicates * mss);
        }
    }

    /// The ACK advances SND.UNA in fast recovery: a full or a partial acknowledgment.
    #[cold]
    fn process_ack_in_recovery(&mut self, cx: &mut TcpContext<'_>, bytes: u32) {
        let mss = u32::from(self.mss);
        if !self.snd_una.is_before(self.recover(cx)) {
            // RFC 6582, section 3.2, step 3, full acknowledgment, option 1.
            let flight = self.snd_una.until(self.snd_max);
            let window = self.congestion.threshold_bytes;
            self.congestion.window_bytes = if self.has(Flag::SACK) {
                window
            } else {
                window.min(flight.max(mss) + mss)
            };
            self.exit_recovery(cx);
            self.dup_acks = 0;
            return;
        }
        if self.has(Flag::SACK) {
            return;
        }
        // A partial acknowledgment: the next segment is lost too.
        let window = self.congestion.window_bytes.saturating_sub(bytes);
        let back = if bytes >= mss { mss } else { 0 };
        self.congestion.window_bytes = (window + back).max(mss);
        self.set(Flag::RETRANSMIT_NOW);
    }

    pub(super) fn exit_recovery(&mut self, cx: &mut TcpContext<'_>) {
        self.clear(Flag::FAST_RECOVERY.or(Flag::RETRANSMIT_NOW));
        self.release_idle_recovery(cx);
    }

    /// The peer's ECE: the window is reduced as after a loss, once a round trip (RFC 3168, section
    /// 6.1.2).
    #[cold]
    pub(super) fn enter_congestion_recovery(&mut self, cx: &mut TcpContext<'_>) {
        if self.has(
            Flag::FAST_RECOVERY
                .or(Flag::BELOW_RECOVER)
                .or(Flag::CONGESTION_RECOVERY),
        ) {
            return;
        }
        let (flight, mss) = (self.snd_una.until(self.snd_max), u32::from(self.mss));
        let (algorithm, cold) = (cx.tunables.congestion, cx.recovery.cold.of(&mut self.cold));
        self.congestion
            .handle_congestion(algorithm, flight, mss, &mut cold.cubic);
        self.congestion.window_bytes = self.congestion.threshold_bytes;
        cold.recover = self.snd_max;
        self.set(Flag::SEND_CWR.or(Flag::CONGESTION_RECOVERY));
        cx.counters.ecn_rcwnd += 1;
    }
}
